"""The exact ways of KernelRidge: scikit-learn's twin, identities, and what each way promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.lifts import Nystrom
from mercer.methods import Exact, Fourier, Landmarks
from mercer.models import KernelRidge

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=150)
w = rng.integers(0, 4, size=150).astype(float)
T = rng.normal(size=(40, 3))
TWINS = {
    "gaussian": (Gaussian.of(gamma=0.3), dict(kernel="rbf", gamma=0.3)),
    "laplace": (Laplace(2.0, norm=1), dict(kernel="laplacian", gamma=0.5)),
    "polynomial": (Polynomial(3, bias=1.0), dict(kernel="poly", degree=3, gamma=1.0, coef0=1.0)),
    "linear": (Linear(), dict(kernel="linear")),
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("via", ["auto", "exact", "iterative"])
@pytest.mark.parametrize("weight", [None, w], ids=["plain", "weighted"])
def test_twin_of_scikit_learns_kernel_ridge(name, via, weight):
    kernel, options = TWINS[name]
    ours = KernelRidge(kernel, 0.7, via, fit_intercept=False, tol=1e-9).fit(X, y, weight)
    keep = slice(None) if weight is None else weight > 0
    peer = Peer(alpha=0.7, **options).fit(
        X[keep], y[keep], None if weight is None else weight[keep]
    )
    np.testing.assert_allclose(ours.predict(T), peer.predict(T), rtol=1e-5, atol=1e-6)
    assert ours.residual_ <= 1e-9 or via != "iterative"


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_an_intercept_is_that_of_ridge_over_the_exact_features(via):
    k = Polynomial(2)
    primal = KernelRidge(k, 0.5, via=Exact()).fit(X, y + 50, w)
    dual = KernelRidge(k, 0.5, via=via, tol=1e-10).fit(X, y + 50, w)
    np.testing.assert_allclose(dual.predict(T), primal.predict(T), rtol=1e-6)
    assert dual.intercept_ + dual.dual_coef_ @ k(dual.X_fit_, T[:1])[:, 0] == pytest.approx(
        primal.predict(T[:1])[0]
    )


def test_many_outputs_and_penalties():
    Y = np.column_stack([y, y**2])
    both = KernelRidge(Gaussian(), [0.1, 10.0]).fit(X, Y)
    for j, a in enumerate([0.1, 10.0]):
        np.testing.assert_allclose(
            both.predict(T)[:, j], KernelRidge(Gaussian(), a).fit(X, Y[:, j]).predict(T), atol=1e-8
        )


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize("weight", [None, w], ids=["plain", "weighted"])
def test_leave_one_out_is_n_refits(via, weight):
    m = KernelRidge(Gaussian(), 0.3, via=via, tol=1e-10).fit(X, y, weight)
    for i in range(0, 150, 29):
        keep = np.arange(150) != i
        one = KernelRidge(Gaussian(), 0.3).fit(
            X[keep], y[keep], None if weight is None else weight[keep]
        )
        assert m.loo_predictions_[i] == pytest.approx(one.predict(X[i : i + 1])[0], abs=1e-7)
    assert m.loo_score_ < m.score(X, y, weight)


def test_leave_one_out_chooses_penalty_and_bandwidth():
    grid, factors = [1e-3, 1e-1, 10.0], [0.3, 1.0, 3.0]
    m = KernelRidge(Gaussian(1.0), via="exact", cv="loo", alphas=grid, bandwidths=factors).fit(X, y)
    scores = np.array(
        [
            [KernelRidge(Gaussian(f), a, via="exact").fit(X, y).loo_score_ for a in grid]
            for f in factors
        ]
    )
    np.testing.assert_allclose(m.loo_scores_, scores, atol=1e-8)
    i, j = np.unravel_index(scores.argmax(), scores.shape)
    assert (m.kernel_, m.alpha_) == (Gaussian(factors[i]), grid[j])


def test_leave_one_out_over_features_agrees_with_the_exact_way():
    grid = [1e-2, 1.0, 100.0]
    dual = KernelRidge(Polynomial(2), via="exact", cv="loo", alphas=grid).fit(X, y, w)
    primal = KernelRidge(Polynomial(2), via=Exact(), cv="loo", alphas=grid).fit(X, y, w)
    np.testing.assert_allclose(primal.loo_scores_, dual.loo_scores_, atol=1e-7)
    assert primal.alpha_ == dual.alpha_


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_folds_are_refits(via):
    split = KFold(3, shuffle=True, random_state=0)
    m = KernelRidge(Gaussian(), via=via, cv=split, alphas=[0.1, 1.0], tol=1e-9).fit(X, y, w)
    for j, (train, test) in enumerate(split.split(X)):
        for i, a in enumerate([0.1, 1.0]):
            one = KernelRidge(Gaussian(), a).fit(X[train], y[train], w[train])
            assert m.cv_scores([0.1, 1.0])[i, j] == pytest.approx(
                one.score(X[test], y[test], w[test]), abs=1e-6
            )


@pytest.mark.parametrize("weight", [None, w], ids=["plain", "weighted"])
def test_jackknife_plus_is_that_of_n_refits(weight):
    n = 40
    v = None if weight is None else weight[:n] + 0.5
    m = KernelRidge(Gaussian(), 0.5, via="exact").fit(X[:n], y[:n], v)
    low, high = m.predict_interval(T[:5], coverage=0.8, method="jackknife+")
    rest = [np.delete(np.arange(n), i) for i in range(n)]
    models = [
        KernelRidge(Gaussian(), 0.5, via="exact").fit(X[r], y[r], None if v is None else v[r])
        for r in rest
    ]
    r = np.array([abs(y[i] - f.predict(X[i : i + 1])[0]) for i, f in enumerate(models)])
    mu = np.array([f.predict(T[:5]) for f in models])
    rank = int(np.ceil((n + 1) * 0.8))
    np.testing.assert_allclose(high, np.sort(mu + r[:, None], axis=0)[rank - 1], atol=1e-7)
    np.testing.assert_allclose(low, np.sort(mu - r[:, None], axis=0)[n - rank], atol=1e-7)


def test_split_intervals_cover():
    covered = []
    for s in range(25):
        r = np.random.default_rng(s)
        A = r.normal(size=(240, 2))
        t = np.sin(2 * A[:, 0]) + 0.3 * r.standard_t(3, size=240)
        low, high = (
            KernelRidge(Gaussian(), 1.0, via="exact")
            .fit(A[:120], t[:120])
            .predict_interval(A[120:])
        )
        covered.append(np.mean((t[120:] >= low) & (t[120:] <= high)))
    assert np.mean(covered) >= 0.87


def test_a_gram_matrix_is_its_kernel():
    k = Matern(1.5, nu=1.5)
    ours, given = KernelRidge(k, 0.2).fit(X, y, w), KernelRidge("precomputed", 0.2).fit(k(X), y, w)
    np.testing.assert_allclose(given.predict(k(T, X)), ours.predict(T), atol=1e-10)
    np.testing.assert_allclose(given.loo_predictions_, ours.loo_predictions_, atol=1e-8)
    for method in ("split", "jackknife+"):
        np.testing.assert_allclose(
            given.predict_interval(k(T, X), method=method),
            ours.predict_interval(T, method=method),
            atol=1e-8,
        )
    chosen = [
        KernelRidge(kernel, via="exact", cv=KFold(3)).fit(rows, y).alpha_
        for kernel, rows in (("precomputed", k(X)), (k, X))
    ]
    assert chosen[0] == chosen[1]
    with pytest.raises(ValueError, match="must be a square Gram matrix"):
        KernelRidge("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="a Gram matrix has no features"):
        KernelRidge("precomputed", via="features").fit(k(X), y)


def test_landmarks_by_passes_are_landmarks_by_moments(monkeypatch):
    monkeypatch.setattr("mercer.models.ridge.problem.MOMENTS", 10)
    A = np.random.default_rng(1).normal(size=(500, 2))
    t, v = np.column_stack([np.sin(A[:, 0]), A[:, 1] ** 2]), np.arange(500.0) % 3
    passes = KernelRidge(Gaussian(), [1e-2, 1.0], Landmarks(60), random_state=0, tol=1e-8).fit(
        A, t, v
    )
    moments = KernelRidge(lift=Nystrom(Gaussian(), landmarks=passes.X_fit_), alpha=[1e-2, 1.0]).fit(
        A, t, v
    )
    assert (moments.plan_.way, passes.plan_.way) == ("features", "landmarks")
    np.testing.assert_allclose(passes.predict(A), moments.predict(A), atol=1e-6)
    assert passes.residual_ <= 1e-8
    with pytest.raises(ValueError, match="leave-one-out is in closed form over all rows"):
        _ = passes.loo_score_


@pytest.mark.parametrize("bandwidth", [1e-6, 1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e6])
def test_extreme_settings(bandwidth, alpha):
    twice = np.vstack(
        [X, X[:20], np.outer(np.arange(20.0), [1, 1, 1])]
    )  # duplicated and collinear rows
    t = np.concatenate([y, y[:20], np.arange(20.0)])
    K = Gaussian(bandwidth)(twice)
    n = len(t)
    bordered = np.block(
        [[K + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    right = K @ (s := np.linalg.solve(bordered, np.append(t, 0.0)))[:-1] + s[-1]
    for via in ("exact", "iterative"):
        np.testing.assert_allclose(
            KernelRidge(Gaussian(bandwidth), alpha, via).fit(twice, t).predict(twice),
            right,
            atol=3e-4,
        )


def test_the_rule_of_auto_is_by_shapes_and_settings():
    assert KernelRidge().fit(X, y).plan_.way == "cholesky"
    assert hasattr(KernelRidge(memory_limit=30_000).fit(X, y), "lift_")
    assert KernelRidge(cv=3).fit(X, y).plan_.way == "features"
    assert KernelRidge().partial_fit(X, y).plan_.way == "features"
    assert "conjugate gradients" in str(KernelRidge(via="iterative").fit(X, y).plan_)


def test_sparse_rows_float32_and_dense_float64_agree():
    dense = KernelRidge(Gaussian(), 0.1).fit(X, y).predict(T)
    np.testing.assert_allclose(
        KernelRidge(Gaussian(), 0.1).fit(sp.csr_array(X), y).predict(sp.csr_array(T)),
        dense,
        atol=1e-8,
    )
    single = KernelRidge(Gaussian(), 0.1).fit(X.astype("f4"), y).predict(T.astype("f4"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, dense, atol=1e-4)


def test_streams_are_for_features():
    for m in (KernelRidge(via="exact"), KernelRidge("precomputed")):
        assert not any(hasattr(m, name) for name in ("partial_fit", "merge", "forget"))
    both = KernelRidge(random_state=0).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    stream = KernelRidge(random_state=0).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(both.predict(T), stream.predict(T), atol=1e-10)
    assert sum(m.count for m in both.moments_) == 150


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: KernelRidge(via=Fourier(60), memory_limit=1e4).fit(X, y).partial_fit(X, y),
            "no statistics that batches could add to",
        ),
        (lambda: KernelRidge().fit(X, y).forget(X, y), "only a model over features"),
        (
            lambda: KernelRidge(lift=Gaussian().lift(10), via="exact").fit(X, y),
            "give a kernel instead of a lift",
        ),
        (lambda: KernelRidge(via="iterative", cv="loo").fit(X, y), "needs a factor of K"),
        (lambda: KernelRidge(bandwidths=[1.0]).fit(X, y), "bandwidths are chosen by leave-one-out"),
        (
            lambda: KernelRidge(Linear(), via="exact", cv="loo", bandwidths=[1.0]).fit(X, y),
            "has no bandwidth to choose",
        ),
        (
            lambda: KernelRidge(via="exact", memory_limit=1000).fit(X, y).loo_score_,
            "n x n arrays beyond memory_limit",
        ),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ValueError, match=says):
        make()


MODELS = {
    "exact": KernelRidge(via="exact"),
    "cg": KernelRidge(via="iterative", tol=1e-11),
    "gram": KernelRidge("precomputed"),
}


UNITS = [
    *(("exact", alpha, c) for alpha in (1e-2, 1e-4) for c in (1e-300, 1e-40, 1e-30, 1e39, 1e300)),
    *(("iterative", 1e-2, c) for c in (1e-100, 1e-40, 1e-30, 1e39, 1e100)),
]


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear()], ids=["gaussian", "linear"])
@pytest.mark.parametrize("columns", [1, 40])
@pytest.mark.parametrize(("via", "alpha", "c"), UNITS)
@pytest.mark.parametrize("n", [150, 400])
def test_the_unit_of_kernel_and_alpha_changes_nothing(n, via, alpha, c, columns, kernel):
    """By a factor of few rows, of K formed once, and by steps; in and out of float32's digits."""
    r = np.random.default_rng(0)
    A, B = r.normal(size=(n, 4)), r.normal(size=(n, columns))
    plain = KernelRidge(kernel, alpha, via="exact").fit(A, B).predict(A)
    m = KernelRidge(c * kernel, c * alpha, via=via, tol=1e-7).fit(A, B)
    assert m.residual_ <= 1e-7
    np.testing.assert_allclose(m.predict(A), plain, atol=1e-5 if via == "iterative" else 1e-8)


def test_rows_of_huge_and_tiny_numbers():
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(150, 2))
    plain = KernelRidge(Linear(), 1e-2, via="exact").fit(X, Y).predict(T)
    for c in (1e-140, 1e-20, 1e20, 1e140):
        m = KernelRidge(Linear(), 1e-2 * c**2, via="exact").fit(c * X, Y)
        np.testing.assert_allclose(m.predict(c * T), plain, atol=1e-8)


def test_coefficients_that_are_no_numbers_are_refused():
    A = rng.normal(size=(300, 3))
    with pytest.raises(ValueError, match="beyond the range of float64; raise alpha"):
        KernelRidge(1e-305 * Linear(), 1e-312, via="exact").fit(A, rng.normal(size=300))


def test_linear_rows_far_from_zero_are_to_be_centred():
    far = X + 1e8
    with pytest.warns(ConvergenceWarning, match="centre the columns of X"):
        KernelRidge(2 * Linear(), via="exact").fit(far, y)
    centred = KernelRidge(2 * Linear(), via="exact").fit(far - far.mean(axis=0), y)
    near = KernelRidge(2 * Linear(), via="exact").fit(X, y)
    np.testing.assert_allclose(
        centred.predict(far - far.mean(axis=0)), near.predict(X), atol=1e-6
    )  # rows are told to 1e-8
    with pytest.warns(ConvergenceWarning, match="raise alpha; K is singular"):
        KernelRidge(2 * Linear(), via="exact", fit_intercept=False).fit(far, y)


@pytest.mark.parametrize("low", [-1e-1, -1e-4, -1e-7])
def test_matrices_of_no_kernel_are_told_and_solved(low):
    """K with one eigenvalue below -alpha, however small: the equations are solved, and it is said
    that nothing is minimised."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 60)))[0]
    K = (Q * np.append(np.linspace(0.5, 1, 59), low)) @ Q.T
    K, z = (K + K.T) / 2, np.random.default_rng(1).normal(size=60)
    with pytest.warns(UserWarning, match="of no kernel.*raise alpha"):
        m = KernelRidge("precomputed", alpha=-low / 3, fit_intercept=False).fit(K, z)
    np.testing.assert_allclose(K @ m.dual_coef_ - low / 3 * m.dual_coef_, z, atol=1e-6)
    assert m.residual_ <= m.tol
    KernelRidge("precomputed", alpha=-3 * low).fit(K, z)  # positive again, and silent


def test_a_matrix_without_a_diagonal_is_of_no_kernel():
    with pytest.warns(UserWarning, match="of no kernel"):
        m = KernelRidge("precomputed", alpha=1e-3, fit_intercept=False).fit(
            np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, 2.0]
        )
    np.testing.assert_allclose(
        m.dual_coef_, np.linalg.solve([[1e-3, 1.0], [1.0, 1e-3]], [1.0, 2.0])
    )


@pytest.mark.filterwarnings(
    "ignore:K . alpha . weight has eigenvalues below zero:UserWarning"
)  # some checks give tables as Gram matrices
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_scikit_learns_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize(
    ("dtype", "size", "alpha"),
    [(float, 1e-290, 0.0), (float, 1e-160, 1e-320), (np.float32, 1e-30, 1e-60)],
)
def test_kernel_values_that_vanish_beside_alpha_are_refused(via, dtype, size, alpha):
    """They would give the mean of y."""
    X, y = scaled_rows(size, dtype)
    with pytest.raises(ValueError, match=r"k\(x, x\) of all rows is too small for float.*alpha="):
        KernelRidge(Linear(), alpha, via).fit(X, y)
    m = KernelRidge(Linear(), 1.0, via).fit(X, y)  # the penalty leaves nothing but the mean
    np.testing.assert_allclose(m.predict(X), y.mean(), rtol=1e-6)
    zero = KernelRidge(Linear(), 0.5, via).fit(0 * X, y)
    np.testing.assert_allclose(zero.predict(X), y.mean(), rtol=1e-6)


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize(
    ("size", "unit"),
    [(1, 1e-290), (1, 1e290), (1e-290, 1), (1e290, 1), (1e-290, 1e-290), (1e290, 1e290)],
)
def test_tiny_and_huge_rows_and_targets(via, size, unit):
    X, y = scaled_rows(1.0, float)
    wanted = KernelRidge(Gaussian(2.0), 0.01, via).fit(X, y).predict(X)
    m = KernelRidge(Gaussian(2.0 * size), 0.01, via).fit(size * X, unit * y)
    np.testing.assert_allclose(m.predict(size * X) / unit, wanted, rtol=1e-5, atol=1e-6)


def test_linear_kernels_of_tiny_rows():
    X, y = scaled_rows(1.0, float)
    wanted = KernelRidge(Linear(), 1.0, "exact").fit(X, y).predict(X)
    m = KernelRidge(Linear(), 1e-200, "iterative").fit(1e-100 * X, 1e-290 * y)
    np.testing.assert_allclose(1e290 * m.predict(1e-100 * X), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="scale the columns of X first"):
        KernelRidge(Linear(), 1.0, "iterative").fit(1e290 * X, y)


def scaled_rows(size, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return (size * X).astype(dtype), X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80) + 3
