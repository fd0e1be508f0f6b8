"""KernelSVR over sparse rows as they are: LIBSVM's objective on rows of every shape, a gap that is
told truly, odd targets."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

import mercer
from mercer import KernelSVR, kernels
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm import descent
from mercer.models.svm.machine import FeatureMachine
from mercer.models.svm.tube import TubeAbout, TubeDual, soft


def drawn(seed, n, D, density=0.05):
    return sp.random(n, D, density, "csr", random_state=seed)


def far(X):
    """With a dense column at 1e6."""
    rng = np.random.default_rng(5)
    return sp.hstack([X, sp.csr_array(1e6 + rng.normal(size=(X.shape[0], 1)))], format="csr")


def line(n):
    """Rows of one column, among many that are empty."""
    return sp.csr_array(np.outer(np.linspace(-1, 1, n), np.arange(40) == 7))


MARKET = {
    "wide": drawn(0, 60, 300),
    "tall": drawn(1, 200, 40, 0.1),
    "copies": sp.vstack([drawn(2, 40, 80)] * 3, format="csr"),
    "near-copies": sp.vstack([drawn(2, 40, 80), drawn(2, 40, 80) * (1 + 1e-9)], format="csr"),
    "far": far(drawn(5, 80, 100)),
    "line": line(50),
    "float32": drawn(6, 70, 120).astype(np.float32),
}


def targets(X, seed=0):
    rng = np.random.default_rng(seed)
    A = X.toarray().astype(np.float64)
    A = (A - A.mean(0)) / (A.std(0) + 1e-9)
    return A @ rng.normal(size=X.shape[1]) / 3 + rng.normal(size=len(A))


def value(m, X, y, c, e):
    """The objective of the model, plainly."""
    coef = m.coef_[0]
    f = X.toarray().astype(np.float64) @ coef + m.intercept_[0]
    return coef @ coef / 2 + c @ np.maximum(np.abs(y - f) - e, 0)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("name", MARKET)
def test_the_objective_is_that_of_libsvm(name, offset):
    X = MARKET[name]
    y, w = targets(X), np.random.default_rng(1).integers(0, 3, X.shape[0]).astype(float)
    m = KernelSVR("linear", C=5.0, epsilon=0.2, tol=1e-6).fit(X, y + offset, w)
    assert m.plan_.way == "sparse dual coordinate descent"
    assert m.gap_ <= 1e-7
    ours = value(m, X, y + offset, 5.0 * w, 0.2)
    assert m.objective_ == pytest.approx(ours, rel=1e-8)
    twin = SVR(kernel="linear", C=5.0, epsilon=0.2, tol=1e-8)
    A = X.toarray().astype(np.float64)
    A -= 1e6 * (A > 1e5)  # LIBSVM's own digits
    twin.fit(A, y, w)
    best = value(twin, sp.csr_array(A), y, 5.0 * w, 0.2)
    assert ours == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_it_is_the_exact_dual_over_rows(intercept):
    X = MARKET["tall"]
    y = targets(X) + 3
    settings = dict(C=2.0, epsilon=0.1, fit_intercept=intercept, tol=1e-6)
    own, exact = (KernelSVR("linear", via=via, **settings).fit(X, y) for via in ("auto", "exact"))
    assert isinstance(own.machine_, FeatureMachine)
    assert own.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    np.testing.assert_allclose(own.predict(X), exact.predict(X), atol=2e-3)
    np.testing.assert_allclose(own.gradient(X[:2].toarray()), exact.gradient(X[:2]), atol=2e-3)
    four = KernelSVR(4 * kernels.Linear(), **settings | {"C": 0.5}).fit(X, y)
    np.testing.assert_allclose(four.predict(X), own.predict(X), atol=2e-3)


@pytest.mark.parametrize(
    ("name", "intercept"), [("tall", False), ("copies", True), ("far", True), ("float32", False)]
)
def test_multipliers_close_the_gap_that_sweeps_leave(name, intercept, monkeypatch):
    monkeypatch.setattr(descent, "SQUARE", 0)
    monkeypatch.setattr(descent, "PATIENCE", 5)
    X = MARKET[name]
    y = targets(X)
    rows = SparseRows.of(X, intercept=intercept)
    dual = TubeDual(rows, y, np.full(len(y), 20.0), 0.1, intercept)
    called = []
    plain = dual._multiply
    monkeypatch.setattr(dual, "_multiply", lambda *of: called.append(1) or plain(*of))
    m = dual.solve(1e-6, 1000)
    assert called
    assert m.converged
    exact = KernelSVR("linear", 20.0, via="exact", fit_intercept=intercept, tol=1e-6).fit(X, y)
    assert m.value == pytest.approx(exact.objective_, rel=1e-5)


def test_the_smoothed_tube_has_the_slope_that_its_values_have():
    rng = np.random.default_rng(0)
    f, t = rng.normal(size=(200, 1)), rng.normal(size=(200, 1))
    w = np.stack([np.full(200, 2.0), rng.uniform(-0.5, 0.5, 200), np.full(200, 0.5)], axis=1)
    loss, h = TubeAbout(0.1), 1e-6
    for i in range(0, 200, 7):
        d = h * (np.arange(200) == i)[:, None]
        slope = (loss.value(f + d, t, w) - loss.value(f - d, t, w)) / (2 * h)
        assert loss.slope(f, t, w)[i, 0] == pytest.approx(slope, abs=1e-6)
    free = np.abs(soft(w[:, 1] + (t - f)[:, 0], 0.1))
    np.testing.assert_array_equal(loss.curvature(f, t, w) > 0, (free > 0) & (free <= 0.5))


def test_odd_targets():
    X = MARKET["wide"]
    m = KernelSVR("linear").fit(X, np.full(60, 3.0))
    assert not m.coef_.any()
    assert (m.objective_, m.gap_) == (0, 0)
    np.testing.assert_allclose(m.predict(X), 3.0, atol=0.1)
    wide = KernelSVR("linear", epsilon=100.0).fit(X, targets(X))
    assert not wide.coef_.any()
    one = KernelSVR("linear", C=1e3, epsilon=0.5).fit(X[:1], [2.0])
    assert one.predict(X[:1]) == pytest.approx([2.0], abs=0.51)
    free = KernelSVR("linear", C=1e3, epsilon=0.0, fit_intercept=False).fit(X[:1], [2.0])
    assert free.predict(X[:1]) == pytest.approx([2.0], abs=1e-3)
    assert free.intercept_ == [0.0]
    empty = KernelSVR("linear").fit(sp.csr_array((5, 30)), np.arange(5.0))
    np.testing.assert_allclose(empty.predict(sp.csr_array((2, 30))), 2.0, atol=0.11)
    with pytest.raises(ValueError, match="too large"), np.errstate(all="ignore"):
        KernelSVR("linear").fit(X * 1e200, targets(X))


@pytest.mark.parametrize("scale", [1e-8, 1e6])
def test_the_scale_of_y_does_not_matter(scale):
    X, settings = MARKET["tall"], dict(tol=1e-6)
    y = targets(X)
    plain = KernelSVR("linear", C=3.0, epsilon=0.1, **settings).fit(X, y)
    scaled = KernelSVR("linear", C=3.0 * scale, epsilon=0.1 * scale, **settings).fit(X, y * scale)
    np.testing.assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-3)


def test_weights_are_repetitions_and_rows_of_none_are_absent():
    X = MARKET["tall"]
    y, w = targets(X), np.random.default_rng(1).integers(0, 3, X.shape[0])
    weighted = KernelSVR("linear", tol=1e-6).fit(X, np.where(w > 0, y, 1e9), w)
    repeated = KernelSVR("linear", tol=1e-6).fit(X[np.repeat(np.arange(len(y)), w)], y.repeat(w))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_what_is_known_of_it_and_what_is_not(tmp_path):
    X = MARKET["wide"]
    m = KernelSVR("linear").fit(X, targets(X))
    (name, weight), *_ = m.coef_by_name(top=1)[0]
    assert weight == m.coef_[0, int(name[1:])]
    assert abs(weight) == np.abs(m.coef_).max()
    assert m.n_features_lifted_ == 300
    for said in ("support_", "dual_coef_"):
        with pytest.raises(AttributeError, match="over features"):
            getattr(m, said)
    with pytest.raises(ValueError, match="compress needs support vectors"):
        m.compress(3)
    with pytest.raises(AttributeError, match="dual_coef_"):
        KernelSVR("rbf").fit(X, targets(X)).coef_  # noqa: B018
    exact = KernelSVR("linear", via="exact", tol=1e-6).fit(X, targets(X))
    np.testing.assert_allclose(X @ exact.coef_[0] + exact.intercept_, exact.predict(X), atol=1e-9)
    m.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X), m.predict(X))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KernelSVR("linear", C=1e3, tol=1e-9, max_iter=5).fit(X, targets(X))


def test_rounds_that_end_by_rounding_tell_a_true_objective():
    X = far(drawn(3, 60, 40))
    X = sp.csr_array(X.toarray() * (np.arange(60) % 3 > 0)[:, None])
    y = targets(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        m = KernelSVR("linear", C=20.0).fit(X, y)
    assert m.objective_ == pytest.approx(value(m, X, y, np.full(60, 20.0), 0.1), rel=1e-5)
    assert 0 <= m.gap_ < 0.1
