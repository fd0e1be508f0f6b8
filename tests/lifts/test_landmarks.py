"""The law of landmarks: whatever the choice, k - phi phi' is a kernel, zero at them and nowhere
above k(x, x), on rows that are hard."""

import itertools
from itertools import product

import numpy as np
import pytest

from mercer.kernels import Cauchy, Gaussian, Linear, Matern, Polynomial
from mercer.lifts import Nystrom
from mercer.lifts.landmarks import pivoted
from mercer.lifts.nystrom import MIN_RESIDUAL
from mercer.lifts.pivots import draw, greedy, pools, rpcholesky, rpcholesky_factor
from mercer.lifts.residual import Residual, inverse_of, times_upper
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.ops.philox import Stream
from tests.market import KERNELS

CHOICES = ["rpcholesky", "uniform", "leverage", "kmeans", "given", "all"]
MARKET = KERNELS | {"narrow": Gaussian(0.2), "wide": Gaussian(30.0), "quartic": Polynomial(4)}
CASES = [*product(CHOICES, (1, 2, 3, 10), (np.float64, np.float32))]
# An angle and a distance have half their digits where they are nearly zero, and so have these
# kernels, whose slope there is not zero.
HALF_THE_DIGITS = {
    "step",
    "laplace",
    "laplace ard",
    "matern 1/2",
    "matern bessel",
    "zero",
    "warped twice",
}


def hostile(d, seed=0, dtype=np.float64):
    """A line, groups of near-copies, duplicates, strays and the origin, in one table of 60 rows."""
    rng = np.random.default_rng(seed)
    line = np.linspace(0, 1, 20)[:, None] * rng.uniform(0.5, 1, size=d)
    apart = np.tile(10.0 ** np.arange(-10, 0, 2), 4)[:, None] * rng.normal(size=(20, d))
    near = np.repeat(rng.uniform(-1, 1, size=(4, d)), 5, axis=0) + apart
    X = np.vstack([line, near, line[::3], rng.uniform(-1, 1, size=(12, d)), np.zeros((1, d))])
    return rng.permutation(X).astype(dtype)


def takes(kernel, d):
    """Whether the kernel is one of rows of d columns; some of the market are of three."""
    try:
        return np.isfinite(kernel(np.ones((1, d)))).all()
    except (ValueError, IndexError):
        return False


def size_of(kernel, X):
    """sqrt k(x, x) in float64, 1 where that is zero."""
    k = kernel.diag(X.astype(float)).astype(float)
    return np.sqrt(np.where(k > 0, k, 1))


def left_out(kernel, phi, X):
    """k - phi phi' in units of k(x, x)."""
    F, s = phi.transform(X).astype(float), size_of(kernel, X)
    return (kernel(X.astype(float)) - F @ F.T) / s / s[:, None]


def fitted(kernel, choice, X, seed=0):
    """A map and the landmarks that it was given; two thirds of the rows, but for all of them."""
    m = len(X) if choice == "all" else max(2 * len(X) // 3, 1)
    if choice == "given":
        points = np.random.default_rng(seed).permutation(X)[:m]
        return Nystrom(kernel, landmarks=points).fit(X), points
    phi = Nystrom(kernel, m, "rpcholesky" if choice == "all" else choice, random_state=seed).fit(X)
    return phi, X if choice == "all" else phi.landmarks_


def check(kernel, choice, X, *, half=False, seed=0):
    eps, cut = float(np.finfo(X.dtype).eps), MIN_RESIDUAL[X.dtype]
    phi, points = fitted(kernel, choice, X, seed)
    kernel_rounding = 10 * eps**0.5 if half else 0.0
    near = 10 * eps / cut**0.5 + kernel_rounding  # a feature is rounded by eps / sqrt(cut)
    far = 10 * (np.finfo(float).eps / cut + eps / cut**0.5) + kernel_rounding / cut**0.5 * eps**0.25
    E = left_out(kernel, phi, X)
    assert np.linalg.eigvalsh(E)[0] > -(
        near * len(X) + (choice != "all") * np.finfo(float).eps / cut
    )  # rows beyond near-copies
    assert E.diagonal().max() < 1 + near
    assert np.abs(left_out(kernel, phi, points)).max() < cut + near
    rng = np.random.default_rng(seed)
    new = np.vstack([X + 0.3 * rng.normal(size=X.shape), 2 * X - X.mean(0)]).astype(X.dtype)
    assert (
        np.square(phi.transform(new), dtype=float).sum(1) < size_of(kernel, new) ** 2 * (1 + far)
    ).all()


def laws(name, cases):
    for i, (choice, d, dtype) in enumerate(cases):
        if takes(MARKET[name], d):
            check(MARKET[name], choice, hostile(d, i, dtype), half=name in HALF_THE_DIGITS, seed=i)


@pytest.mark.parametrize("name", MARKET)
def test_the_error_is_a_kernel(name):
    laws(name, CASES[[*MARKET].index(name) % 5 :: 5])


@pytest.mark.long
@pytest.mark.parametrize("name", MARKET)
def test_the_error_is_a_kernel_in_all_cases(name):
    laws(name, CASES)


LINE = np.linspace(0, 1, 100)[:, None]
NORMAL = np.random.default_rng(0).normal(size=(200, 1))


@pytest.mark.parametrize(
    ("phi", "X"),
    [
        (Nystrom(Gaussian(0.2)), LINE),
        (Nystrom(Gaussian(0.3), 200), NORMAL),
        (Nystrom(Gaussian(0.3), 199, random_state=0), NORMAL),
        (Nystrom(Gaussian(0.2), landmarks=np.linspace(0, 1, 50)[:, None]), LINE),
        (Nystrom(Gaussian(0.2), 100, "uniform", random_state=0), np.linspace(0, 1, 200)[:, None]),
        (Nystrom(Gaussian(0.2), 100, "leverage", random_state=0), np.linspace(0, 1, 200)[:, None]),
        (Nystrom(Gaussian(0.2), 80, "kmeans", random_state=0), LINE),
        (Nystrom("precomputed", 100), Gaussian(0.2)(LINE)),
    ],
    ids=["all", "normal", "all but one", "given", "uniform", "leverage", "kmeans", "precomputed"],
)
def test_a_smooth_kernel_is_told_on_a_line(phi, X):
    F = phi.fit_transform(X)
    K = X if phi.kernel == "precomputed" else phi.kernel(X)
    assert np.abs(F @ F.T - K).max() < 1e-9


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Gaussian(1.0), Cauchy(), Matern(nu=5.5), Polynomial(4)], ids=repr
)
def test_drawn_pivots_in_their_order(kernel):
    """Random pivots follow what is left to tell, so their own order is sound under any seed: down
    to the last row but one."""
    for seed, X in product(range(5), (np.linspace(-1, 1, 150)[:, None], hostile(2, 3))):
        E = left_out(kernel, Nystrom(kernel, len(X) - 1, random_state=seed).fit(X), X)
        assert np.abs(E).max() < 1e-9


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "X",
    [hostile(2) + 1e6, hostile(3)[:1], hostile(10)[:4], np.ones((7, 2))],
    ids=["offset", "one", "few", "equal"],
)
def test_offsets_and_few_rows(X, choice, dtype):
    check(Gaussian(), choice, X.astype(dtype))


@pytest.mark.parametrize("choice", CHOICES[:4])
def test_weights_that_differ_much(choice):
    X = hostile(2)
    weight = 10.0 ** np.random.default_rng(0).uniform(-12, 0, size=len(X))
    phi = Nystrom(Gaussian(), 40, choice, random_state=0).fit(X, sample_weight=weight)
    E = left_out(Gaussian(), phi, X)
    assert np.linalg.eigvalsh(E)[0] > -1e-4
    assert np.abs(left_out(Gaussian(), phi, phi.landmarks_)).max() < 1e-9


@pytest.mark.parametrize("choice", CHOICES[:4])
def test_a_kernel_that_is_zero(choice):
    phi = Nystrom(KERNELS["anova too high"], 5, choice, random_state=0).fit(hostile(3))
    assert not phi.transform(hostile(3)).any()


def shared(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_block_pivots_have_the_law_of_single_ones():
    """The frequency of the second pivot against its probability under one-at-a-time sampling."""
    X = np.array([[0.0], [0.1], [2.0], [2.2], [5.0]])
    K = Gaussian()(X)
    law = (
        sum(
            np.maximum(np.diag(K) - K[i] ** 2, 0) / np.maximum(np.diag(K) - K[i] ** 2, 0).sum()
            for i in range(5)
        )
        / 5
    )
    draws = 800
    found = (
        np.bincount(
            [
                rpcholesky(GivenOperator(K), 2, Stream(s), np.ones(5), 1e-12)[1]
                for s in range(draws)
            ],
            minlength=5,
        )
        / draws
    )
    np.testing.assert_array_less(np.abs(found - law), 4.5 * np.sqrt(law * (1 - law) / draws))


def test_pivots_of_a_residual_have_the_law_of_single_ones():
    """The same of pivots that follow a first one that is there, from the residual's diagonal."""
    X = np.array([[0.0], [0.1], [2.0], [2.2], [5.0]])
    op, K, one = GivenOperator(Gaussian()(X)), Gaussian()(X), np.eye(1)
    left = np.maximum(1 - K[0] ** 2, 0)
    draws, law, found = 800, left / left.sum(), np.zeros(5)
    for s in range(draws):
        state = Residual.told(op, 2, 1e-12, np.array([0]), one, 0)
        draw(state, np.ones(5), 2, Stream(s))
        found[state.pivots[1]] += 1 / draws
    np.testing.assert_array_less(np.abs(found - law), 4.5 * np.sqrt(law * (1 - law) / draws) + 1e-9)


def test_rough_kernels_take_rows_by_their_weights_alone():
    """All that is proposed is taken, so that the choice is one of uniform rows, each once."""
    X = shared(3000, 200)
    op = KernelOperator(Gaussian(3.0), X)
    found, root = rpcholesky_factor(op, 300, Stream(0), np.ones(3000), 1e-11)
    few, _ = rpcholesky_factor(op, 40, Stream(0), np.ones(3000), 1e-11)
    np.testing.assert_array_equal(found[:40], few)
    assert len(set(found.tolist())) == 300
    np.testing.assert_allclose(root @ root.T, Gaussian(3.0)(X[found]), atol=1e-13)
    assert abs(found.mean() / 3000 - 0.5) < 5 * 0.29 / 300**0.5


def test_pivoted_rows():
    A = shared(300, 6) * np.geomspace(1e-6, 1e6, 300)[:, None]
    A[1], A[2] = A[0], 0
    K = A @ A.T
    kept, root = pivoted(K, 1e-12)
    size = np.linalg.norm(A[kept], axis=1)
    told = np.linalg.solve(root, K[kept])
    assert len(kept) == 6
    np.testing.assert_allclose(
        root @ root.T / np.outer(size, size),
        K[np.ix_(kept, kept)] / np.outer(size, size),
        atol=1e-14,
    )
    np.testing.assert_allclose(np.square(told).sum(0), K.diagonal(), rtol=1e-12)
    left = root.diagonal() / size  # what those before each leave of it
    assert (np.diff(left) < 1e-12).all()


@pytest.mark.parametrize("n", [1024, 1025, 3000])
def test_pools_are_parts_of_each_other_and_end_with_all_rows(n):
    weight = np.ones(n)
    weight[::5] = 0
    found = [(set(pool.rows().tolist()), pool.most) for pool in pools(weight, 7, Stream(0))]
    sizes = [len(rows) for rows, _ in found]
    assert sizes == sorted(sizes)
    assert sizes[-1] == n
    assert found[-1][1] == 7
    for (small, most), (large, _) in itertools.pairwise(found):
        assert small < large
        assert len(small) == 4 * most
        assert (weight[sorted(small)] > 0).all()
    weight[0] = 3  # of other weights all rows are drawn from, as a pool would miss the heavy ones
    assert [pool.size for pool in pools(weight, 7, Stream(0))] == [n]


def test_pivots_of_growing_pools_factor_their_block():
    X = shared(3000, 4)
    op = KernelOperator(Gaussian(1.0), X)
    some, many = (rpcholesky_factor(op, m, Stream(3), np.ones(3000), 1e-11) for m in (200, 700))
    np.testing.assert_array_equal(some[0], many[0][:200])  # whatever the number that is wanted
    assert len(set(many[0].tolist())) == 700
    K = Gaussian(1.0)(X[many[0]])
    np.testing.assert_allclose(many[1] @ many[1].T, K, atol=1e-12)
    np.testing.assert_allclose(many[1][:200, :200], some[1], atol=1e-12)


def test_pivots_are_found_outside_of_small_pools():
    """Two rows of 5,000 span all of the kernel: no pool but the last is sure to hold both."""
    A = np.zeros((5000, 2))
    A[17, 0] = A[4000, 1] = 1
    found, root = rpcholesky_factor(KernelOperator(Linear(), A), 5, Stream(0), np.ones(5000), 1e-11)
    assert set(found.tolist()) == {17, 4000}
    np.testing.assert_array_equal(root, np.eye(2))


@pytest.mark.parametrize(("d", "dtype"), [(1, np.float64), (2, np.float64), (2, np.float32)])
def test_a_smooth_kernel_is_told_to_rounding_through_all_pools(d, dtype):
    """Rounding does not grow from pool to pool: the error stays a kernel, zero at the landmarks."""
    X, kernel = shared(5000, d, 1).astype(dtype), Gaussian(1.5)
    for seed in range(3):
        cut = MIN_RESIDUAL[np.dtype(dtype)]
        op = KernelOperator(kernel, X)
        found, root = rpcholesky_factor(op, 400, Stream(seed), np.ones(5000), cut)
        L = X[found].astype(np.float64)
        np.testing.assert_allclose(root @ root.T, kernel(L), atol=1e-13)
        np.testing.assert_array_equal(root, np.tril(root))
        assert len(found) < 400
        told = np.linalg.solve(root, kernel(L, X.astype(np.float64)))
        left = 1 - np.square(told).sum(0)
        assert left.max() < 2 * cut  # of all rows, not of those in the pools alone
        assert left.min() > -1e-6


def test_a_stray_is_found_behind_rows_that_are_told():
    """A pool is told by some ten pivots, and so are all rows but one."""
    X = np.linspace(-1, 1, 6000)[:, None]
    X[4321] = 50
    op = KernelOperator(Gaussian(1.0), X)
    for seed in range(5):
        found, _ = rpcholesky_factor(op, 40, Stream(seed), np.ones(6000), 1e-11)
        assert 4321 in found
        assert len(found) < 40


def test_greedy_pivots_are_those_of_a_plain_search():
    """Each tells most of the diagonal of the others, found by eliminating every one of them."""
    X = np.vstack([shared(40, 3), shared(5, 3), shared(40, 3)[:6]])  # some rows twice
    C = Gaussian(1.0)(X)
    found, left = greedy(C, 12, 0.01)
    R = C.copy()
    for j in found:
        gain = (np.square(R).sum(0) - np.square(R.diagonal())) / np.maximum(R.diagonal(), 0.01)
        assert gain[j] >= gain[R.diagonal() > 0.01].max() - 1e-12
        R -= np.outer(R[j], R[j]) / R[j, j]
    assert left == pytest.approx(R.diagonal().sum() / (len(C) - len(found)))
    assert len(greedy(C, 51, 0.3)[0]) < 51


def test_few_pivots_leave_less_than_rows_at_random():
    """By a twentieth or more on average, of 24 rows of kernels of every roughness."""
    ratios = []
    for d, seed in product((8, 20, 60), range(3)):
        X, kernel = shared(3000, d, seed), Gaussian(1.2 * d**0.5)
        mean = [
            np.mean([left_of(kernel, choice, X, s) for s in range(4)])
            for choice in ("rpcholesky", "uniform")
        ]
        ratios.append(mean[0] / mean[1])
    assert np.mean(ratios) < 0.95
    assert max(ratios) < 1.01


def left_of(kernel, choice, X, seed):
    F = Nystrom(kernel, 24, choice, random_state=seed).fit_transform(X)
    return 1 - np.square(F).sum(1).mean()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [1, 5, 64, 131])
def test_products_with_a_triangle_in_place(m, dtype):
    rng = np.random.default_rng(0)
    F, root = rng.normal(size=(300, m)).astype(dtype), np.triu(rng.normal(size=(m, m)))
    root = root.astype(dtype)
    plain, part = F @ root, F[17:200]
    times_upper(part, root)
    np.testing.assert_allclose(part, plain[17:200], atol=100 * np.finfo(dtype).eps * m)
    L = np.tril(rng.normal(size=(m, m)) / m) + np.eye(m)
    np.testing.assert_allclose(inverse_of(L) @ L, np.eye(m), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("d", "m", "n"), [(1, 100, 6000), (2, 300, 20000)])
def test_features_of_a_look_are_those_of_transform(d, m, n, dtype):
    """Pools are told, and so are most rows: what was found of them is not computed again."""
    X = shared(n, d, 2).astype(dtype)
    X[17] += 30  # a stray, found after the look
    phi = Nystrom(Gaussian(1.5 * d), m, random_state=0)
    F = phi.fit_transform(X)
    assert F.dtype == dtype
    assert F.shape == (n, phi.n_features_out_)
    assert phi.n_features_out_ < m
    G = phi.transform(X)  # features are rounded by eps / sqrt(cut) and more, their products less
    exact = dtype == np.float64
    np.testing.assert_allclose(F, G, atol=1e-7 if exact else 1e-3)
    np.testing.assert_allclose(F[:300] @ F.T, G[:300] @ G.T, atol=1e-10 if exact else 1e-4)
    np.testing.assert_allclose(np.square(F, dtype=float).sum(1), 1, atol=1e-3)
    assert 17 in phi.landmark_indices_
