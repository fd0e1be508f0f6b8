"""KernelSVR: LIBSVM's objective and predictions, optimality, odd data."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from mercer.kernels import Callable, Gaussian, Linear
from mercer.models.svm.regressor import KernelSVR
from tests.contract import keeps_contract

EQUIVALENCE = (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)


def data(n=200, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def everywhere(m, n):
    coef = np.zeros(n)
    coef[m.support_] = m.dual_coef_[0]
    return coef


def objective(K, y, e, coef):
    return y @ coef - e * np.abs(coef).sum() - coef @ K @ coef / 2


def test_scikit_learn_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        digits = {f.__name__: "compares to 1e-7; see below" for f in EQUIVALENCE}
        keeps_contract(KernelSVR(), digits)
        for check in EQUIVALENCE:
            check("KernelSVR", KernelSVR(tol=1e-12))


@pytest.mark.parametrize("C", [1e-6, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("e", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_is_that_of_libsvm(C, e, dtype):
    X, y = data()
    K = Gaussian()(X)
    m = KernelSVR(Gaussian(), C=C, epsilon=e).fit(X.astype(dtype), y)
    twin = SVR(kernel="precomputed", C=C, epsilon=e, tol=1e-6).fit(K, y)
    ours, theirs = (objective(K, y, e, everywhere(v, len(y))) for v in (m, twin))
    assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-12)
    assert m.objective_ == pytest.approx(ours, rel=1e-4, abs=1e-12)
    if len(twin.support_):
        np.testing.assert_allclose(m.predict(X.astype(dtype)), twin.predict(K), atol=0.02)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimality_conditions_hold(fit_intercept):
    X, y = data()
    m = KernelSVR(Gaussian(), C=2.0, epsilon=0.1, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    coef, left = everywhere(m, len(y)), y - m.predict(X)
    inside = (np.abs(coef) > 0) & (np.abs(coef) < 2)
    np.testing.assert_allclose(left[inside], 0.1 * np.sign(coef[inside]), atol=1e-4)
    assert (np.abs(left[coef == 0]) <= 0.1 + 1e-4).all()
    assert (np.abs(left[np.abs(coef) == 2]) >= 0.1 - 1e-4).all()
    assert abs(coef.sum()) < 1e-9 or not fit_intercept


def test_weights_are_repetitions():
    X, y = data(100)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = KernelSVR(Gaussian(), tol=1e-6).fit(X, y, w)
    repeated = KernelSVR(Gaussian(), tol=1e-6).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


def test_many_rows_go_by_blocks(monkeypatch):
    X, y = data(600)
    whole = KernelSVR(Gaussian(), C=5.0, tol=1e-4).fit(X, y)
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 100)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 128)
    blocks = KernelSVR(Gaussian(), C=5.0, tol=1e-4).fit(X, y)
    assert blocks.n_iter_ > 1
    assert blocks.objective_ == pytest.approx(whole.objective_, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_y_does_not_matter(scale):
    X, y = data(100)
    plain = KernelSVR(Gaussian(), C=1.0, epsilon=0.1).fit(X, y)
    scaled = KernelSVR(Gaussian(), C=scale, epsilon=0.1 * scale, tol=1e-3 * scale).fit(X, y * scale)
    np.testing.assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=2e-3)


def test_a_given_matrix_constant_targets_one_row_and_fewer_vectors():
    X, y = data(120)
    own, given = KernelSVR(Gaussian()).fit(X, y), KernelSVR("precomputed").fit(Gaussian()(X), y)
    np.testing.assert_allclose(given.predict(Gaussian()(X)), own.predict(X), atol=2e-3)
    small = own.compress(20, X)
    assert len(small.support_) == 20
    assert np.sqrt(np.mean((small.predict(X) - own.predict(X)) ** 2)) == pytest.approx(
        small.compression_.rms, rel=1e-6
    )
    drawn = [own.compress(20, X, random_state=s).compression_.rms for s in range(7)]
    assert np.median(drawn) < 0.05
    np.testing.assert_allclose(KernelSVR().fit(X, np.full(120, 3.0)).predict(X), 3, atol=0.11)
    assert KernelSVR(epsilon=0.5).fit([[1.0]], [2.0]).predict([[5.0]])[0] == pytest.approx(
        2, abs=0.51
    )


def test_what_is_refused():
    X, y = data(20)
    with pytest.raises(ValueError, match="epsilon must be a number >= 0"):
        KernelSVR(epsilon=-1).fit(X, y)
    with pytest.raises(ValueError, match="via must be one of auto, exact"):
        KernelSVR(via="features").fit(X, y)
    with pytest.raises(ValueError, match="scale y first"):
        KernelSVR().fit(X, y * 1e150)
    with pytest.raises(ValueError, match="too large"):
        KernelSVR(Linear()).fit(X * 1e150, y)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0])
def test_tol_counts_in_the_unit_of_y(scale):
    X, y = data(150)
    m = KernelSVR(Gaussian(), C=10 * scale, epsilon=0.01 * scale).fit(X, y * scale)
    assert m.gap_ <= 1e-3
    assert m.score(X, y * scale) > 0.95


def test_a_gap_of_nothing_is_nothing():
    X, y = data(50)
    m = KernelSVR(epsilon=100.0).fit(X, y)
    assert (m.gap_, m.objective_, len(m.support_)) == (0, 0, 0)
    with pytest.raises(ValueError, match="a constant, has none"):
        m.compress(3)


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y = data(50)
    m = KernelSVR(Gaussian()).fit(X, y)
    before = m.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        m.fit(X[:, :1], np.append(y[1:], np.nan))
    np.testing.assert_array_equal(m.predict(X), before)


def test_targets_of_items_and_odd_ways_are_checked():
    kernel, words = (
        Callable(lambda A, B: np.array([[float(a == b) for b in B] for a in A])),
        ["a", "b", "c"],
    )
    assert KernelSVR(kernel, epsilon=0.0, C=1e3).fit(words, [1, 2, 3]).predict(["a"])[
        0
    ] == pytest.approx(1, abs=0.01)
    for y, text in (
        ([1.0, np.nan, 2.0], "NaN"),
        (np.ones((3, 2)), "1d array"),
        (["x", "y", "z"], "could not convert"),
    ):
        with pytest.raises(ValueError, match=text):
            KernelSVR(kernel).fit(words, y)
    with pytest.raises(ValueError, match="via must be one of auto, exact"):
        KernelSVR(via=np.zeros(3)).fit([[0.0], [1.0]], [0, 1])
