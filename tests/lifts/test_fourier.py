import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from mercer import bounds
from mercer.kernels import (
    Cauchy,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    Sinc,
)
from mercer.lifts import fourier
from mercer.lifts.fourier import RandomFourier
from mercer.lifts.spectral import spectrum
from mercer.testing import check_lift
from tests.market import rows

STATIONARY = {
    "gaussian": Gaussian(0.7),
    "laplace": Laplace(0.7),
    "laplace 1-norm": Laplace(0.7, norm=1),
    "laplace .7": Laplace(0.7, exponent=0.7),
    "laplace 1.3": Laplace(0.7, exponent=1.3),
    "laplace 2": Laplace(0.7, exponent=2.0),
    "laplace 1-norm .7": Laplace(0.7, norm=1, exponent=0.7),
    "matern 1/2": Matern(0.7, nu=0.5),
    "matern 3/2": Matern(0.7),
    "matern 2.2": Matern(0.7, nu=2.2),
    "cauchy": Cauchy(0.7),
    "rational": RationalQuadratic(0.7, mixture=0.6),
    "sinc": Sinc(0.7),
    "periodic": Periodic(0.9, period=1.3),
    "product": Gaussian(0.8) * Laplace(2.0),
    "power": 2.0 * Matern(1.5) ** 2,
    "scaled": 3.0 * Gaussian(0.7).normalized(),
}
COMPOSED = {
    "columns": Gaussian(0.8).on_columns([0, 2]) * Periodic(0.9).on_columns([1]),
    "ard": Gaussian((0.5, 1.0, 2.0)) * Matern((1.0, 2.0, 3.0)),
    "laplace ard": Laplace((0.5, 1.0, 2.0), exponent=1.3) * Laplace((1.0, 2.0, 3.0), 1, 0.7),
    "mapped": Gaussian((0.5, 1.0)).mapped([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]]),
    "mapped 1-norm": 2.0 * Laplace((1.0, 2.0), 1, 0.7).mapped([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]]),
    "mapped by factors": Laplace(exponent=0.7).mapped([0.5, 0.0, 2.0]) * Matern(),
    "mapped columns": (Gaussian().on_columns([1]) * Laplace())
    .mapped([[1.0, 0.5], [0.25, 1.0]])
    .mapped([[1.0, 1.0], [0.0, 2.0]])
    .on_columns([2, 0]),
    "inner columns": (Gaussian(0.5).on_columns([1]) * Laplace()).on_columns([2, 0]),
}


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", ["iid", "auto"])
def test_unbiased_for_every_leaf(name, d, kind):
    check_lift(
        RandomFourier(STATIONARY[name], 64, frequencies=kind, random_state=0),
        rows(6, d),
        exact=False,
    )


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("form", ["pairs", "shift"])
def test_unbiased_for_composed_kernels(name, form):
    check_lift(RandomFourier(COMPOSED[name], 64, form=form, random_state=0), rows(6), exact=False)


@pytest.mark.parametrize("kind", ["orthogonal", "qmc", "design", "structured"])
def test_unbiased_for_every_kind(kind):
    check_lift(
        RandomFourier(Matern(0.7), 48, frequencies=kind, random_state=0), rows(6), exact=False
    )


def test_slip_independent_draws_are_wrong_for_radial_kernels():
    """Matern-3/2 at (1, 1, 1): 0.199; independent t draws a column would give 0.113."""
    X = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    F = RandomFourier(Matern(nu=1.5), 200_000, frequencies="iid", random_state=0).fit_transform(X)
    assert F[0] @ F[1] == pytest.approx(0.1992, abs=0.01)


@pytest.mark.parametrize("kind", ["orthogonal", "qmc", "design", "structured"])
@pytest.mark.parametrize("k", [Laplace(0.7, exponent=0.7), Laplace(exponent=1.3)], ids=repr)
def test_designed_frequencies_of_stable_laws(k, kind):
    mapped = k.mapped([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    check_lift(RandomFourier(mapped, 48, frequencies=kind, random_state=0), rows(6), exact=False)


def test_slip_stable_columns_are_not_independent():
    """exp(-(|x|_1)^.7) at (1, 1, 1): 0.116; independent stable columns would give exp(-3)."""
    X = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    k = Laplace(norm=1, exponent=0.7)
    F = RandomFourier(k, 200_000, frequencies="iid", random_state=0).fit_transform(X)
    assert F[0] @ F[1] == pytest.approx(np.exp(-(3**0.7)), abs=0.01)
    assert F[0] @ F[1] != pytest.approx(np.exp(-3), abs=0.03)


def test_frequencies_at_the_ends_are_those_of_other_kernels():
    X = rows(9)
    for k, other in (
        (Laplace((1.0, 2.0, 3.0), exponent=2.0), Gaussian(tuple(np.array([1, 2, 3]) / 2**0.5))),
        (Laplace(exponent=1.0), Matern(nu=0.5)),
    ):
        one, two = (RandomFourier(t, 64, random_state=0).fit(X) for t in (k, other))
        np.testing.assert_allclose(one.draw(), two.draw(), rtol=1e-12)
    assert (
        spectrum(Laplace(exponent=2.0) * Gaussian()).atoms
        == spectrum(Gaussian(2**-0.5) * Gaussian()).atoms
    )


def test_a_mapped_frequency_is_mapped_back():
    S, X = np.random.default_rng(0).normal(size=(2, 5)), rows(9, 5)
    for kind in ("auto", "structured"):
        phi = RandomFourier(Matern().mapped(S), 64, frequencies=kind, random_state=0).fit(X)
        plain = RandomFourier(Matern(), 64, frequencies=kind, random_state=0).fit(X @ S.T)
        np.testing.assert_allclose(phi.draw(), plain.draw() @ S, atol=1e-12)
        np.testing.assert_allclose(phi.transform(X), plain.transform(X @ S.T), atol=1e-9)
    with pytest.raises(ValueError, match="the map has 5 columns, but X has 3"):
        RandomFourier(Matern().mapped(S)).fit(rows(9, 3))


def test_slips_of_note_000():
    """w ~ N(0, 2/s^2) for exp(-r^2/s^2), and sqrt(2/D) for the shifted form: without the 2 the
    estimate is k/2."""
    X = np.array([[0.0], [0.5]])
    F = RandomFourier(
        Gaussian.of(b=0.49), 100_000, form="shift", frequencies="iid", random_state=0
    ).fit_transform(X)
    assert F[0] @ F[1] == pytest.approx(np.exp(-0.25 / 0.49), abs=0.02)
    assert F[0] @ F[1] / 2 != pytest.approx(np.exp(-0.25 / 0.49), abs=0.1)


def test_the_error_falls_as_one_over_the_number_of_features():
    X = np.random.default_rng(0).normal(size=(60, 6))
    K, k = Gaussian(2.0)(X), Gaussian(2.0)

    def mse(D):
        grams = (
            RandomFourier(k, D, frequencies="iid", random_state=s).fit_transform(X)
            for s in range(12)
        )
        return np.mean([np.square(F @ F.T - K).mean() for F in grams])

    assert mse(128) / mse(2048) == pytest.approx(16, rel=0.35)


def test_auto_is_better_than_iid():
    X = np.random.default_rng(0).normal(size=(60, 5))
    K = Gaussian(2.0)(X)
    errors = {
        kind: np.mean(
            [
                np.square(F @ F.T - K).mean()
                for F in (
                    RandomFourier(
                        Gaussian(2.0), 512, frequencies=kind, random_state=s
                    ).fit_transform(X)
                    for s in range(8)
                )
            ]
        )
        for kind in ("iid", "auto")
    }
    assert errors["auto"] < errors["iid"] / 10


def test_pairs_have_an_exact_diagonal():
    F = RandomFourier(2 * Matern(), 100, random_state=0).fit_transform(rows(20))
    np.testing.assert_allclose(np.square(F).sum(1), 2)


def test_a_slice_of_frequencies_alone_gives_the_same_bits():
    for k in (Gaussian(), Laplace(norm=1), Gaussian() * Laplace()):
        phi = RandomFourier(k, 400, random_state=3).fit(rows(5))
        np.testing.assert_array_equal(phi.draw(37, 91), phi.draw()[37:91])


def test_frequencies_too_large_to_keep_are_drawn_in_pieces(monkeypatch):
    X = rows(40)
    whole = RandomFourier(Gaussian(), 1000, random_state=0).fit_transform(X)
    monkeypatch.setattr(fourier, "KEPT_BYTES", 100)
    pieces = RandomFourier(Gaussian(), 1000, random_state=0).fit(X)
    np.testing.assert_allclose(pieces.transform(X), whole, rtol=1e-12, atol=1e-14)
    assert pieces._kept is None


def test_structured_frequencies_are_those_they_say():
    X = rows(30, 20)
    phi = RandomFourier(
        Gaussian(tuple(np.linspace(1, 3, 20).tolist())),
        600,
        frequencies="structured",
        random_state=0,
    ).fit(X)
    P = X @ phi.draw().T
    np.testing.assert_allclose(
        phi.transform(X), np.hstack([np.cos(P), np.sin(P)]) / np.sqrt(300), atol=1e-12
    )
    np.testing.assert_allclose(phi.transform(sp.csr_array(X)), phi.transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="structured frequencies need one stationary kernel"):
        RandomFourier(Gaussian() * Matern(), 64, frequencies="structured").fit(X)


def test_the_map_is_its_seed():
    phi = RandomFourier(Gaussian(), 4096, random_state=0).fit(rows(30, 50))
    phi.transform(rows(30, 50))
    assert len(pickle.dumps(phi)) < 5000


def test_sparse_and_frames():
    X = rows(20)
    phi = RandomFourier(Gaussian().on_columns(["b"]) * Matern(), 64, random_state=0).fit(
        pd.DataFrame(X, columns=list("abc"))
    )
    F = phi.transform(pd.DataFrame(X, columns=list("abc")))
    by_position = RandomFourier(Gaussian().on_columns([1]) * Matern(), 64, random_state=0).fit(X)
    np.testing.assert_array_equal(by_position.transform(X), F)
    np.testing.assert_allclose(by_position.transform(sp.csr_array(X)), F, atol=1e-12)
    assert phi.get_feature_names_out()[0] == "randomfourier0"


def test_the_default_kernel_is_scaled_to_the_data():
    X = 100 * np.random.default_rng(0).normal(size=(500, 4))
    assert RandomFourier(random_state=0).fit(X).kernel_.bandwidth == pytest.approx(
        100 * np.sqrt(2), rel=0.1
    )
    assert RandomFourier("rbf").fit(np.ones((3, 2))).kernel_ == Gaussian(np.sqrt(0.5))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RandomFourier(Gaussian(), 101), "n_features must be even with form='pairs'"),
        (lambda: RandomFourier(Gaussian(), 0), "n_features must be an integer >= 1, got 0"),
        (lambda: RandomFourier(Gaussian(), form="sin"), "form must be 'pairs' or 'shift'"),
        (
            lambda: RandomFourier(Gaussian(), frequencies="many"),
            "frequencies must be one of auto, iid",
        ),
        (lambda: RandomFourier(Linear()), "not a stationary kernel"),
        (
            lambda: RandomFourier(Laplace(norm=1), frequencies="orthogonal"),
            "no orthogonal frequencies",
        ),
        (
            lambda: RandomFourier(Gaussian((1.0, 2.0))),
            "bandwidth has 2 values, but X has 5 columns",
        ),
        (lambda: RandomFourier(Sinc()), "only for d <= 3"),
        (lambda: RandomFourier("gauss"), "kernel must be a kernel, None or one of rbf"),
        (lambda: RandomFourier(random_state="x"), "random_state must be None"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ValueError, match=says):
        make().fit(rows(9, 5))


def test_eps_and_delta_size_the_map():
    X = rows(12)
    phi = RandomFourier(3 * Gaussian(), eps=0.6, delta=0.1, frequencies="iid", random_state=0).fit(
        X
    )
    assert phi.n_features_out_ == bounds.fourier_features(12, 0.2, 0.1)
    F = phi.transform(X)
    assert np.abs(F @ F.T - 3 * Gaussian()(X)).max() <= 0.6
    with pytest.raises(ValueError, match=r"asks for .* features by the bound"):
        RandomFourier(Gaussian(), eps=0.001).fit(X)


def test_spectra():
    assert spectrum(Linear()) is None
    assert spectrum(Gaussian() + Gaussian()) is None
    assert len(spectrum(Gaussian() * Matern() * Gaussian(2.0)).atoms) == 2
    S = [[1.0, 2.0]]
    assert len(spectrum(Gaussian().mapped(S) * Gaussian().mapped(S)).atoms) == 1
    assert len(spectrum(Gaussian().mapped(S) * Gaussian()).atoms) == 2


@pytest.mark.parametrize("form", ["pairs", "shift"])
def test_scikit_learns_contract(form):
    check_estimator(RandomFourier(form=form, random_state=0), on_skip=None)
