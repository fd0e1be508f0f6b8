"""KernelLogistic: scikit-learn's objective on the same features, whatever the way that the rounds
took."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear
from mercer.lifts import Monomials, RandomFourier
from mercer.models.logistic import KernelLogistic


def data(n=300, d=4, classes=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = np.sin(2 * X @ rng.normal(size=(d, classes))) + 0.5 * rng.normal(size=(n, classes))
    return X.astype(dtype), scores.argmax(1)


def objective(F, y, coef, intercept, alpha, w=None):
    F = F.astype(np.float64)
    f = F @ coef.T.astype(np.float64) + intercept
    f = np.hstack([np.zeros_like(f), f]) if f.shape[1] == 1 else f
    losses = np.logaddexp.reduce(f, axis=1) - f[np.arange(len(y)), y]
    return (
        np.average(losses, weights=w) * (len(y) if w is None else w.sum())
        + alpha / 2 * np.square(coef, dtype=float).sum()
    )


def rings(n=400, seed=0):
    """Note 002's rings: radius about 1, and about 2."""
    rng = np.random.default_rng(seed)
    inside, angle = rng.random(n) < 0.5, rng.uniform(0, 2 * np.pi, n)
    radius = np.where(inside, 1.0, 2.0) + rng.uniform(-0.3, 0.3, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), inside


def test_scikit_learn_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_estimator(KernelLogistic(random_state=0), on_skip=None)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [40, 700])  # features: fewer and more than the rows
def test_twin_of_scikit_learn(classes, alpha, dtype, size):
    X, y = data(classes=classes, dtype=dtype)
    m = KernelLogistic(alpha=alpha, lift=RandomFourier(Gaussian(1.0), size, random_state=0)).fit(
        X, y
    )
    F = m.lift_.transform(X)
    assert F.dtype == dtype
    twin = LogisticRegression(C=1 / alpha, tol=1e-9, max_iter=20_000, solver="newton-cg").fit(
        F.astype(np.float64), y
    )
    ours, theirs = (objective(F, y, e.coef_, e.intercept_, alpha) for e in (m, twin))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert m.objective_ == pytest.approx(ours, rel=1e-5 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(
        m.predict_proba(X), twin.predict_proba(F), atol=2e-3 if dtype == np.float32 else 1e-4
    )


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("n", "size"), [(9000, 30), (1500, 520)])
def test_sampled_curvature_finds_the_same_minimum(classes, n, size):
    X, y = data(n, classes=classes, dtype=np.float32)
    m = KernelLogistic(lift=RandomFourier(Gaussian(0.7), size, random_state=0)).fit(X, y)
    assert m.plan_.way == "preconditioned quasi-newton"
    assert m.n_iter_ < 40
    F = m.lift_.transform(X).astype(np.float64)
    twin = LogisticRegression(tol=1e-5, max_iter=2000).fit(F, y)
    assert m.objective_ <= objective(F, y, twin.coef_, twin.intercept_, 1.0) * (1 + 1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_recomputed_features_give_the_model_of_kept_ones(classes):
    X, y = data(600, classes=classes)
    lift = RandomFourier(Gaussian(1.0), 700, random_state=0)
    kept = KernelLogistic(lift=lift).fit(X, y)
    streamed = KernelLogistic(lift=lift, memory_limit=100_000).fit(X, y)
    assert "kept in memory" in str(kept.plan_)
    assert "again at every pass" in str(streamed.plan_)
    np.testing.assert_allclose(streamed.decision_function(X), kept.decision_function(X), atol=1e-4)
    assert streamed.objective_ == pytest.approx(kept.objective_, rel=1e-9)


def test_wide_maps_never_take_a_square_array():
    X, y = data(40)
    m = KernelLogistic(
        lift=RandomFourier(Gaussian(1.0), 60_000, random_state=0), memory_limit="10MB"
    ).fit(X, y)
    assert m.plan_.bytes < 8 * 60_000**2 / 100
    assert m.score(X, y) > 0.9


def test_the_same_fit_twice():
    X, y = data(1200)
    a, b = (KernelLogistic(random_state=3, max_iter=30).fit(X, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5}])
def test_weights_are_repetitions(classes, class_weight):
    X, y = data(120, classes=classes)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    make = lambda: KernelLogistic(
        lift=RandomFourier(Gaussian(1.0), 200, random_state=0), class_weight=class_weight
    )
    weighted, repeated = make().fit(X, y, w), make().fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-5
    )


def test_balanced_is_scikit_learns():
    X, y = data(200)
    y[20:] = 1
    m = KernelLogistic(Linear(), class_weight="balanced").fit(X, y)
    twin = LogisticRegression(class_weight="balanced", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(m.coef_, twin.coef_, atol=1e-5)


@pytest.mark.parametrize("alpha", [1e-8, 1e-3])
def test_separable_rows(alpha):
    X = np.concatenate([np.linspace(-2, -1, 30), np.linspace(1, 2, 30)])[:, None]
    m = KernelLogistic(Linear(), alpha=alpha).fit(X, X[:, 0] > 0)
    assert m.score(X, X[:, 0] > 0) == 1
    assert np.isfinite(m.coef_).all()
    assert np.isfinite(m.predict_log_proba(100 * X)).all()


def test_the_rings_of_note_002():
    X, inside = rings()
    m = KernelLogistic(alpha=1e-3, lift=Monomials(degree=2)).fit(X, inside)
    assert m.score(X, inside) == 1
    assert KernelLogistic(Linear()).fit(X, inside).score(X, inside) < 0.75


def test_columns_far_from_zero():
    X, y = data(400, dtype=np.float32)
    near, far = (KernelLogistic(Linear()).fit(A, y) for A in (X, X + np.float32(1000)))
    np.testing.assert_allclose(far.coef_, near.coef_, atol=2e-3)


def test_sparse_rows_are_the_dense_ones():
    import scipy.sparse as sp

    X, y = data(200)
    X[np.abs(X) < 0.7] = 0
    dense, sparse = (
        KernelLogistic(Gaussian(1.0), random_state=0).fit(A, y) for A in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(
        dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)), atol=1e-6
    )


def test_what_is_refused():
    X, y = data(20)
    with pytest.raises(ValueError, match="alpha must be a number > 0"):
        KernelLogistic(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        KernelLogistic().fit(X, np.ones(20))
    with pytest.raises(ValueError, match="class_weight must be"):
        KernelLogistic(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="a kernel or a lift, not both"):
        KernelLogistic(Linear(), lift=Monomials()).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or alpha"):
        KernelLogistic(max_iter=1, random_state=0).fit(X, y)
    for name in ("partial_fit", "merge", "forget"):
        assert not hasattr(KernelLogistic(), name)


def test_weights_of_classes_that_are_not_there_are_refused():
    X = np.linspace(-1, 1, 20)[:, None]
    with pytest.raises(ValueError, match="class_weight names 'c', which y does not have"):
        KernelLogistic(class_weight={"a": 2.0, "c": 1.0}).fit(X, np.where(X[:, 0] > 0, "a", "b"))
