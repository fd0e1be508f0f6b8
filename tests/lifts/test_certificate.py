import json

import numpy as np
import pandas as pd
import pytest

from mercer.inputs import table
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.lifts import Identity, KernelLift, Nystrom
from mercer.lifts.certificate import Certificate, draw_pairs, errors, order
from mercer.lifts.fourier import RandomFourier

X = np.random.default_rng(0).normal(size=(120, 4))


def true_quantile(phi, q):
    """Of the errors over all pairs of different rows."""
    F = phi.transform(X)
    return np.quantile(
        np.abs(F @ F.T - phi.kernel_(X))[~np.eye(len(X), dtype=bool)], q, method="inverted_cdf"
    )


def test_at_99_percent_few_certificates_fail():
    """At most 7 failures in 200 are seen with probability 0.999 where each fails with probability
    0.01."""
    failures = 0
    for seed in range(200):
        phi = RandomFourier(Gaussian(2.0), 32, random_state=seed).fit(X)
        error, _ = errors(
            phi, table(X), *draw_pairs(len(X), 1500, np.random.default_rng(10_000 + seed))
        )
        failures += np.sort(np.abs(error))[order(1500, 0.99, 0.99)] < true_quantile(phi, 0.99)
    assert failures <= 7


def test_the_bound_is_not_much_above_the_quantile():
    phi = RandomFourier(Gaussian(2.0), 64, random_state=0).fit(X)
    c = phi.certify(X, quantile=0.95, random_state=0)
    assert true_quantile(phi, 0.95) <= c.bound <= 1.2 * true_quantile(phi, 0.95)
    assert c.rms <= c.bound <= c.max


def test_the_spectral_statement_is_what_it_says():
    phi = RandomFourier(Gaussian(2.0), 512, random_state=0).fit(X)
    c = phi.certify(X, alpha=0.5, random_state=0)
    K, F = Gaussian(2.0)(X), phi.transform(X)
    A, B = K + 0.5 * np.eye(len(X)), F @ F.T + 0.5 * np.eye(len(X))
    e = c.spectral * (1 + 1e-9)
    assert np.linalg.eigvalsh(B - (1 - e) * A)[0] >= -1e-9
    assert np.linalg.eigvalsh((1 + e) * A - B)[0] >= -1e-9
    assert (
        np.linalg.eigvalsh((1 + 0.9 * e) * A - B)[0] < 0
        or np.linalg.eigvalsh(B - (1 - 0.9 * e) * A)[0] < 0
    )
    assert c.effective_dimension == pytest.approx(np.trace(K @ np.linalg.inv(A)))


def test_an_exact_map_has_no_error():
    c = Identity().fit(X).certify(X)
    assert c.max < 1e-12
    assert c.bias == 0
    assert c.spectral < 1e-12


def test_relative_distances_of_a_kernel_that_is_not_smooth():
    near = np.concatenate([X, X + 1e-3])
    kernels = Gaussian(2.0), Laplace(2.0)
    c = {
        k: RandomFourier(k, 512, random_state=0)
        .fit(near)
        .certify(near, quantile=0.999, random_state=0)
        for k in kernels
    }
    assert c[Laplace(2.0)].distance_bound > 2 * c[Gaussian(2.0)].distance_bound


def test_a_biased_map_is_found_out():
    class Doubled(RandomFourier):
        def _map(self, X):
            return 1.1 * super()._map(X)

    good, bad = (
        kind(Gaussian(2.0), 64, random_state=0).fit(X).certify(X, random_state=0).bias
        for kind in (RandomFourier, Doubled)
    )
    assert abs(good) < 5
    assert bad > 8


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_unbiased_map_scaled_to_the_data_is_not_accused(dtype):
    Z = np.concatenate([X, 30 + X[:6]]).astype(dtype)
    for phi in (RandomFourier(None, 128, random_state=0), KernelLift(None, 128, random_state=0)):
        assert abs(phi.fit(Z).certify(Z, random_state=0).bias) < 5


def test_landmarks_are_biased_away_from_their_rows():
    assert Nystrom(Gaussian(0.7), 40, random_state=0).fit(X).certify(X, random_state=0).bias < -5


def test_float32_rows_have_the_distances_of_their_values():
    near = np.concatenate([X, X + 1e-2]).astype(np.float32)
    phi = RandomFourier(Gaussian(2.0), 512, random_state=0).fit(near)
    single, double = (
        phi.certify(Z, random_state=0).distance_bound for Z in (near, near.astype(np.float64))
    )
    assert single < 2 * double + 0.02


def test_named_columns():
    frame = pd.DataFrame(X, columns=list("abcd"))
    phi = KernelLift(Gaussian().on_columns(["b"]), 64, random_state=0).fit(frame)
    assert phi.certify(frame, random_state=0).bound < 0.2


def test_it_prints_serialises_and_repeats():
    phi = RandomFourier(Gaussian(2.0), 64, random_state=0).fit(X)
    c = phi.certify(X, random_state=0)
    assert Certificate(**json.loads(json.dumps(c.as_dict()))) == c == phi.certify(X, random_state=0)
    assert str(c).startswith("With 0.99 confidence the kernel error is at most")
    assert phi.certify(X[:1], n_pairs=2000).max < 1e-12


@pytest.mark.parametrize(
    ("options", "says"),
    [({"confidence": 2}, "between 0 and 1"), ({"n_pairs": 50}, "give a larger n_pairs")],
)
def test_refusals(options, says):
    with pytest.raises(ValueError, match=says):
        Identity().fit(X).certify(X, **options)


def test_plot():
    class Axis:
        def bar(self, names, values):
            self.values = values

        def set_ylabel(self, text):
            self.label = text

        def set_title(self, text):
            self.title = text

    c = Identity().fit(X).certify(X)
    assert c.plot(Axis()).values == [c.rms, c.bound, c.max]
    assert Linear() == Identity().fit(X).kernel_
