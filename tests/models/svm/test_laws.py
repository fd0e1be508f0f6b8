"""Laws of exact SVMs on hostile data: a gap that holds in exact arithmetic, bounds and sums of
duals, and at most nu outside."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from mercer import KernelSVC, KernelSVR, OneClassSVM
from mercer.kernels import Cauchy, Gaussian, Laplace, Linear, Polynomial, RationalQuadratic


def exactly(A):
    """Rows as fractions, which lose nothing."""
    return np.array([[Fraction(float(v)) for v in row] for row in np.atleast_2d(A)], dtype=object)


def gram(kernel, X, about):
    """The kernel matrix in exact arithmetic; about the mean of the rows where the duals sum to
    zero. (Gaussians in long double.)"""
    if isinstance(kernel, Gaussian):
        D = np.square((X[:, None] - X[None]).astype(np.longdouble)).sum(2)
        K = np.expm1(-D / 2) + (0 if about else 1)
        return K.astype(object)
    E = exactly(X)
    p = sum(E) / len(E)
    of = (
        (lambda K: K)
        if isinstance(kernel, Linear)
        else (lambda K: (Fraction(kernel.bias) + K) ** kernel.degree)
    )
    if not about:
        return of(E @ E.T)
    return (
        of(E @ E.T) - of(E @ p)[:, None] - of(E @ p)[None] + of(np.array([p @ p], dtype=object))[0]
    )


def rows(kind, n, d, scale, offset, dtype, seed):
    """Plain rows, with copies, with near copies, or all on a line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    half = n // 2
    if kind == "copies":
        X[half:] = X[: n - half]
    elif kind == "near":
        X[half:] = X[: n - half] + 1e-9 * rng.normal(size=(n - half, d))
    elif kind == "line":
        X = X[:, :1] * np.ones(d)
    y = X[:, 0] + 0.5 * rng.normal(size=n) > 0
    y[:2] = [False, True]
    return ((X + offset) * scale).astype(dtype), y


def fitted(model, *data):
    """The model and what it warned of; None where its kernel values were refused as too large."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            model.fit(*data)
        except ValueError as e:
            if "scale the columns" in str(e):
                return None, []
            raise
    assert all(issubclass(w.category, ConvergenceWarning) for w in seen)
    return model, [str(w.message) for w in seen]


def everywhere(m, n):
    b = np.zeros(n)
    b[m.support_] = m.dual_coef_[0]
    return b


def true_gap(K, b, t, e, c, sign, bias):
    """Primal less dual in exact arithmetic, at the best intercept: sign is None for a
    regression."""
    b, t = (
        np.array([Fraction(float(v)) for v in b], dtype=object),
        np.array([Fraction(float(v)) for v in t], dtype=object),
    )
    e, c = Fraction(float(e)), Fraction(float(c))
    f = K @ b
    square = b @ f
    dual = t @ b - e * np.abs(b).sum() - square / 2

    def loss(a):
        left = t - f - a
        losses = np.abs(left) - e if sign is None else left * sign
        return c * sum(max(v, 0) for v in losses)

    turns = [0] if not bias else list(t - f) if sign is not None else [*(t - f - e), *(t - f + e)]
    return float(square / 2 + min(map(loss, turns)) - dual), float(dual)


CASES = [
    (kernel, offset, scale, bias, kind, dtype)
    for k, kernel in enumerate((Linear(), Polynomial(2), Polynomial(3), Gaussian()))
    for i, offset in enumerate((0.0, 10.0, 1e3, 1e6))
    for j, scale in enumerate((1e-6, 1.0, 1e6))
    for m, bias in enumerate((True, False))
    for kind, dtype in [
        list(zip(("plain", "copies", "near", "line"), (np.float64, np.float32) * 2, strict=True))[
            (k + i + j + m) % 4
        ]
    ]
    if not (isinstance(kernel, Gaussian) and offset)
]


@pytest.mark.parametrize(("kernel", "offset", "scale", "bias", "kind", "dtype"), CASES, ids=str)
def test_the_gap_of_a_classifier_holds(kernel, offset, scale, bias, kind, dtype):
    X, y = rows(kind, 24, 2, scale, offset, dtype, seed=len(str(kernel)))
    m, said = fitted(KernelSVC(kernel, fit_intercept=bias, via="exact", max_iter=50), X, y)
    if m is None:
        assert float(kernel.diag(X.astype(float)).max()) > 1e30
        return
    b, s = everywhere(m, len(y)), np.where(y, 1.0, -1.0)
    assert (b * s >= 0).all()
    assert (b * s <= 1).all()
    assert abs(b.sum()) <= 1e-12 * np.abs(b).sum() or not bias
    gap, _ = true_gap(gram(kernel, X.astype(float), bias), b, s, 0, 1, s, bias)
    assert gap <= 1.01 * m.gap_ * abs(m.objective_) + 1e-12 * len(y)
    assert m.gap_ <= 2 * m.tol or said  # of the duals and of rounding, each at most tol


@pytest.mark.parametrize(
    ("kernel", "offset", "scale", "bias", "kind", "dtype"), CASES[::3], ids=str
)
def test_the_gap_of_a_regression_holds(kernel, offset, scale, bias, kind, dtype):
    X, _ = rows(kind, 20, 2, scale, offset, dtype, seed=len(str(kernel)) + 1)
    y = np.random.default_rng(0).normal(size=20) + np.where(X[:, 0] > np.median(X[:, 0]), 1.0, 0.0)
    m, said = fitted(KernelSVR(kernel, epsilon=0.2, fit_intercept=bias, max_iter=50), X, y)
    if m is None:
        assert float(kernel.diag(X.astype(float)).max()) > 1e30
        return
    b = everywhere(m, len(y))
    assert (np.abs(b) <= 1).all()
    assert abs(b.sum()) <= 1e-12 * np.abs(b).sum() or not bias
    gap, _ = true_gap(gram(kernel, X.astype(float), bias), b, y, 0.2, 1, None, bias)
    assert gap <= 1.01 * m.gap_ * abs(m.objective_) + 1e-12 * len(y)
    assert m.gap_ <= 2 * m.tol or said  # of the duals and of rounding, each at most tol


@pytest.mark.parametrize("c", [1.0, 1e10, 1e14])
@pytest.mark.parametrize("kind", ["plain", "near"])
@pytest.mark.parametrize("kernel", [Cauchy(1e6), Cauchy(1e3), RationalQuadratic(1e6, 1.0)], ids=str)
def test_the_gap_holds_for_quotients_near_one(kernel, kind, c):
    X, y = rows(kind, 24, 2, 1.0, 0.0, np.float64, seed=3)
    m, said = fitted(KernelSVC(kernel, C=c, via="exact", max_iter=50), X, y)
    b, s, E = everywhere(m, len(y)), np.where(y, 1.0, -1.0), exactly(X)
    width = Fraction(kernel.bandwidth) ** 2 * (2 if isinstance(kernel, RationalQuadratic) else 1)
    E = np.vstack([E, sum(E) / len(E)])
    K = 1 / (1 + ((E[:, None] - E[None]) ** 2).sum(2) / width)
    gap, _ = true_gap(K[:-1, :-1] - K[:-1, -1:] - K[-1:, :-1] + K[-1, -1], b, s, 0, c, s, True)
    assert gap <= 1.01 * m.gap_ * abs(m.objective_) + 1e-12 * c * len(y)
    assert m.gap_ <= 2 * m.tol or said


FAR = [
    (Gaussian() + 10, 1.0),
    (3.0 * Gaussian(3.0) + 100, 1.0),
    (Gaussian(), 1e-3),
    (Cauchy(1e3) + 1, 1.0),
    (RationalQuadratic(1e3, 0.1), 1.0),
    (Linear() + 100, 1.0),
    (Laplace(1e3), 1.0),
    (Gaussian(2.0) * Cauchy(5.0) + 20, 1.0),
]


@pytest.mark.parametrize(("kernel", "spread"), FAR, ids=str)
@pytest.mark.parametrize("model", [KernelSVC, KernelSVR])
def test_scores_of_far_queries_are_those_of_plain_kernel_values(model, kernel, spread):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=60))
    X = X * spread
    m = model(kernel).fit(X, y)
    Z = np.concatenate(
        [s * np.array([[1.0, 0.0], [-0.6, 0.8]]) for s in (0.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e8)]
    )
    found = m.decision_function(Z) if model is KernelSVC else m.predict(Z)
    K, b = kernel(Z, X[m.support_]), np.ravel(m.dual_coef_)
    want = K @ b + m.intercept_
    assert np.isfinite(found).all()
    assert (np.abs(found - want) <= 1e-9 * (1 + np.abs(K) @ np.abs(b))).all()


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_linear_kernel_with_a_bias_does_not_see_an_offset(offset, dtype):
    X, y = rows("plain", 300, 4, 1.0, 0.0, np.float64, 0)
    X = (X + offset).astype(dtype)
    m, said = fitted(KernelSVC(Linear(), via="exact", tol=1e-5), X, y)
    centred = X.astype(float) - X.astype(float).mean(0)
    twin = SVC(kernel="linear", tol=1e-6).fit(centred, y)
    b, best = everywhere(m, 300), everywhere(twin, 300)
    values = [np.abs(v).sum() - np.square(v @ centred).sum() / 2 for v in (b, best)]
    assert values[1] - values[0] <= m.gap_ * m.objective_ + 1e-7 * values[1]
    assert m.objective_ == pytest.approx(values[0], rel=1e-6)
    assert m.gap_ <= 1e-4
    assert m.n_iter_ <= 6
    assert not said
    near = (
        2e-3 if dtype == np.float64 else 2e-3 + 4e-7 * offset * np.abs(b @ centred).sum()
    )  # what the rows of float32 themselves lose
    np.testing.assert_allclose(m.decision_function(X), twin.decision_function(centred), atol=near)
    r, _ = fitted(KernelSVR(Linear(), tol=1e-6), X, y * 1.0)
    same = SVR(kernel="linear", tol=1e-6).fit(centred, y * 1.0)
    np.testing.assert_allclose(r.predict(X), same.predict(centred), atol=near)


@pytest.mark.parametrize(
    ("offset", "gap"), [(10.0, 1e-3), (30.0, 1e-3), (100.0, 1e-3), (300.0, 0.1), (1000.0, np.inf)]
)
def test_a_polynomial_far_from_the_origin_ends(offset, gap):
    X, _ = rows("plain", 300, 4, 1.0, 0.0, np.float64, 0)
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * np.random.default_rng(1).normal(size=300) > 0
    m, said = fitted(KernelSVC(Polynomial(3), via="exact"), X + offset, y)
    assert m.n_iter_ <= 15
    assert m.gap_ <= gap
    assert m.gap_ <= m.tol or "scale the columns of X" in said[0]
    if offset <= 100:
        assert m.score(X + offset, y) > 0.85


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_offsets_change_nothing_for_pairs_of_classes_given_matrices_warm_starts_and_blocks(
    monkeypatch, offset
):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(240, 3)), rng.integers(0, 3, 240)
    X[:, 0] += y
    far = X + offset
    plain, m = (
        KernelSVC(Linear(), via="exact").fit(X, y),
        KernelSVC(Linear(), via="exact", warm_start=True).fit(far, y),
    )
    assert m.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    assert np.mean(m.predict(far) == plain.predict(X)) > 0.98
    m.set_params(C=2.0).fit(far, y)
    assert m.objective_ == pytest.approx(
        KernelSVC(Linear(), C=2.0, via="exact").fit(X, y).objective_, rel=1e-4
    )
    K = X @ X.T + offset  # a constant, which duals that sum to zero do not see
    given = KernelSVC("precomputed", multiclass="ovr").fit(K, y)
    assert given.objective_ == pytest.approx(
        KernelSVC(Linear(), via="exact", multiclass="ovr").fit(X, y).objective_, rel=1e-4
    )
    assert (
        np.mean(
            given.predict(K)
            == KernelSVC("precomputed", multiclass="ovr").fit(X @ X.T, y).predict(X @ X.T)
        )
        > 0.98
    )
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 60)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 64)
    blocks = KernelSVC(Linear(), via="exact").fit(far, y > 0)
    assert blocks.gap_ <= 1e-3
    assert (
        np.mean(blocks.predict(far) == KernelSVC(Linear(), via="exact").fit(X, y > 0).predict(X))
        > 0.97
    )


def test_fewer_vectors_of_rows_far_away():
    X, y = rows("plain", 120, 3, 1.0, 100.0, np.float64, 0)
    m = KernelSVC(Linear(), via="exact").fit(X, y)
    small = m.compress(5, X)  # whose coefficients need not sum to zero
    np.testing.assert_allclose(small.decision_function(X), m.decision_function(X), atol=1e-2)


# one class
@pytest.mark.parametrize(
    "kernel", [None, Gaussian(0.3), Laplace(1.0), Linear(), Polynomial(2)], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_most_nu_of_the_weight_lies_outside(kernel, dtype):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, nu = int(rng.integers(2, 200)), float(rng.choice([0.01, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0]))
        X = [
            rng.normal(size=(n, 2)),
            rng.integers(0, 3, (n, 2)),
            np.ones((n, 2)),
            rng.normal(size=(n, 2)) + 1e3,
        ][seed % 4].astype(dtype)
        w = rng.integers(0, 4, n) + np.eye(n)[0] if seed % 2 else np.ones(n)
        m, _ = fitted(OneClassSVM(kernel, nu=nu), X, None, w)
        outside = m.decision_function(X) < 0
        assert w[outside].sum() <= nu * w.sum() * (1 + 1e-12)
        np.testing.assert_array_equal(m.predict(X) < 0, outside)
        assert w[m.support_].sum() >= nu * w.sum() * (1 - 1e-9)


def test_rows_that_are_all_equal_are_all_inside():
    for nu in (0.1, 0.5, 1.0):
        m, _ = fitted(OneClassSVM(Gaussian(), nu=nu), np.full((30, 2), 0.3))
        assert (m.predict(np.full((7, 2), 0.3)) == 1).all()


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.5])
@pytest.mark.parametrize(("n", "d"), [(60, 1), (200, 2), (1000, 3)])
def test_rows_around_the_origin_of_a_linear_kernel_have_an_optimum_of_zero(n, d, nu):
    X = np.random.default_rng(n).normal(size=(n, d))
    m, said = fitted(OneClassSVM(Linear(), nu=nu), X)
    assert not said
    assert m.n_iter_ <= 15
    assert m.gap_ <= 1e-3
    b = everywhere(m, n)
    assert np.square(b @ X).sum() / 2 <= 1e-5 * nu * n * np.square(X).sum(1).mean()
    assert b.sum() == pytest.approx(nu * n)
    assert np.mean(m.predict(X) == -1) <= nu


def test_the_remedies_are_those_of_the_estimator(monkeypatch):
    monkeypatch.setattr("mercer.ops.smo.pairs", lambda *problem: 0)  # a step that leads nowhere
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol, or scale the columns of X"):
        OneClassSVM(Gaussian(3.0), max_iter=1).fit(np.random.default_rng(0).normal(size=(300, 2)))
