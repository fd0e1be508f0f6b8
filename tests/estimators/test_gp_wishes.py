"""What users say of hyper-parameters is what they get, in the units of y: fixed, tied, bounded, with priors."""
import numpy as np
import pytest

from mercer.estimators import GaussianProcessRegressor as GP
from mercer.kernels import Gaussian, Linear, Matern
from mercer.priors import LogNormal


def data(n=60, seed=0, size=10.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, size * (np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n))


def inner(m):
    return m.kernel_.get_params()


@pytest.mark.parametrize("size", [1e-3, 10.0, 1e6])
def test_amplitudes_are_in_the_units_of_y(size):
    X, y = data(size=size)
    for k, path in ((1.0 * Gaussian(0.7), "by"), (1.0 * Gaussian(0.7) + 0.5 * Linear(), "terms__1__by")):
        bounded = inner(GP(k, bounds={path: (0.2, 0.3)}, n_restarts=0).fit(X, y))[path]
        assert 0.2 - 1e-9 <= bounded <= 0.3 + 1e-9
        assert inner(GP(k, priors={path: LogNormal(5.0, 1e-4)}, n_restarts=0).fit(X, y))[path] == pytest.approx(5.0, rel=0.05)
        assert inner(GP(k, fixed=(path,), n_restarts=0).fit(X, y))[path] == k.get_params()[path]


def test_the_rest_is_learnt_beside_a_bounded_amplitude():
    """As well as without the bounds, where they let it."""
    X, y = data(size=1e6)
    k = 1.0 * Gaussian(0.7) + 0.5 * Linear()
    free, held = (GP(k, bounds=b, n_restarts=0).fit(X, y) for b in (None, {"terms__1__by": (1e-3, 1e16)}))
    assert held.log_marginal_likelihood_ == pytest.approx(free.log_marginal_likelihood_, abs=0.1)


def test_fixed_scale_and_all():
    X, y = data()
    assert GP(Gaussian(0.7), fixed=("scale",), n_restarts=0).fit(X, y).scale_ == pytest.approx(1.0)
    m = GP(2.0 * Gaussian(0.7), fixed=True).fit(X, y)
    assert m.kernel_ == 2.0 * Gaussian(0.7)
    assert m.scale_ == pytest.approx(1.0)
    assert m.log_marginal_likelihood_ >= GP(2.0 * Gaussian(0.7), 1.01 * m.noise_, prior_mean="y").fit(X, y).log_marginal_likelihood_
    shaped = GP(Gaussian(0.7), fixed="all").fit(X, y)
    assert shaped.kernel_ == shaped.scale_ * Gaussian(0.7)
    assert shaped.scale_ > 30
    assert GP(2.0 * Gaussian(0.7), 0.1, fixed=True).fit(X, y).kernel_ == 2.0 * Gaussian(0.7)


def test_several_outputs_share_what_is_said():
    X, y = data()
    Y = np.column_stack([y, 50 * y])
    for options in (dict(bounds={"by": (0.2, 0.3)}), dict(fixed=("by",)), dict(fixed=True)):
        m = GP(0.25 * Gaussian(0.7), n_restarts=0, **options).fit(X, Y)
        np.testing.assert_allclose(m.scale_, 1.0)
        assert 0.2 - 1e-9 <= m.process_.kernel.by <= 0.3 + 1e-9


def test_tied_to_what_is_fixed():
    X, y = data()
    m = GP(Matern((0.5, 2.0, 1.0)), fixed=("bandwidth__1",), tied=[("bandwidth__0", "bandwidth__1"), ("bandwidth__2", "bandwidth__0")])
    assert m.fit(np.column_stack([X, X[:, 0]]), y).kernel_.kernel.bandwidth == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("n", [50, 250])
def test_a_name_of_the_kernels_that_are_tried(n):
    X, y = data(n)
    m = GP(fixed=("bandwidth",), n_restarts=0).fit(X, y)
    np.testing.assert_allclose(m.kernel_.kernel.bandwidth, X.std(0) * np.sqrt(2))


@pytest.mark.parametrize(("options", "match"), [
    (dict(fixed=True), "give a kernel"), (dict(fixed=3), "fixed must be"), (dict(fixed=("noise",)), "give the noise as a number"),
    (dict(bounds=(1, 2)), "bounds must be by name"), (dict(priors=[1.0]), "priors must be by name"),
    (dict(tied=("bandwidth__0", "bandwidth__1")), "groups of two"), (dict(tied=[()]), "groups of two"),
    (dict(kernel=Matern(), bounds={"nu": (1, 2)}), "it chooses a formula"),
    (dict(kernel=Gaussian(), noise=0.1, fixed=(), bounds={"noise": (1, 2)}), "the noise is given"),
    (dict(kernel=2.0 * Gaussian(), bounds={"by": (1, 2), "scale": (1, 2)}), "'scale' has bounds or a prior, but is not learnt"),
    (dict(noise=-np.ones(60)), r"got array\(\[-1., -\.\.\."),
])  # fmt: skip
def test_one_sentence_errors(options, match):
    with pytest.raises(ValueError, match=match) as e:
        GP(**options).fit(*data())
    assert len(str(e.value)) < 250
