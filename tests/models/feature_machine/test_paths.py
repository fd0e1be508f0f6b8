"""Paths of learnt metrics, against plain formulas."""

from itertools import islice

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer.kernels import Laplace
from mercer.models.feature_machine import dense, paths
from mercer.models.feature_machine.dense import PathRows, distances, kernel_values, solved, under
from mercer.models.feature_machine.paths import (
    FLOOR,
    FirstDistances,
    MetricPath,
    PathSetting,
    metric_of,
    outer_product,
    pulled_back,
    rounds,
    walked,
)

SHAPES = [(1, 1.0), (1, 0.7), (2, 1.0), (2, 2.0), (2, 1.4)]


def made(seed: int, n: int, d: int, q: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(n, q)).astype(np.float32)


@pytest.mark.parametrize(("norm", "exponent"), SHAPES)
def test_values_are_those_of_the_kernel(norm: int, exponent: float) -> None:
    U, _ = made(0, 37, 4)
    V, _ = made(1, 21, 4)
    R = distances(U, V, norm)
    np.testing.assert_allclose(R, cdist(U, V, "cityblock" if norm == 1 else "euclidean"), rtol=1e-4)
    K = kernel_values(R, 1.7, exponent)
    np.testing.assert_allclose(K, Laplace(1.7, norm, exponent)(U, V), rtol=1e-4, atol=1e-6)


def test_equations_with_an_intercept_and_weights() -> None:
    U, Y = made(2, 40, 3, 2)
    w = np.random.default_rng(0).uniform(0.5, 2, 40)
    K = kernel_values(distances(U, U, 2), 2.0, 1.0).astype(float)
    A, b = solved(K.astype(np.float32), PathRows(U, Y, w), 0.1)
    # K A + diag(penalty / w) A + b = Y, and the coefficients add to zero
    left = K @ A + (0.1 / w)[:, None] * A + b
    np.testing.assert_allclose(left, Y, atol=1e-3)
    np.testing.assert_allclose(A.sum(0), 0, atol=1e-3)


@pytest.mark.parametrize(("norm", "exponent"), SHAPES)
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_outer_products_are_those_of_plain_gradients(norm: int, exponent: float, form: str) -> None:
    n, d, L = 30, 4, 1.9
    U, _ = made(3, n, d)
    U[5] = U[4]  # a copy
    U[:, 2] = np.round(U[:, 2])  # equal differences
    U = U - U.mean(0)
    A = made(4, n, 2, 2)[1]
    at = np.arange(0, n, 3)
    R = distances(U, U, norm)
    K = kernel_values(R, L, exponent)
    got = outer_product(
        PathSetting("standard", norm, exponent, 1.0, form), R[at], K[at], at, U, A, L
    )
    total = np.zeros((d, d))
    for i in at:
        for t in range(2):
            g = np.zeros(d)
            for j in range(n):
                if i != j:
                    r = max(float(R[i, j]), FLOOR * L)
                    w = -exponent / L**exponent * r ** (exponent - norm) * float(K[i, j])
                    w *= float(R[i, j]) / r if norm == 1 else 1.0
                    gap = U[i].astype(float) - U[j]
                    g += A[j, t] * w * (np.sign(gap) if norm == 1 else gap)
            total += np.outer(g, g)
    want = total / len(at)
    np.testing.assert_allclose(
        got, want if form == "full" else want.diagonal(), rtol=2e-3, atol=1e-4 * np.abs(want).max()
    )


def test_many_outputs_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    U, A = made(5, 50, 3, 60)
    at, s = np.arange(50), PathSetting("standard", 2, 1.0, 1.0, "full")
    R = distances(U, U, 2)
    K = kernel_values(R, 2.0, 1.0)
    plain = sum(outer_product(s, R, K, at, U, A[:, [t]], 2.0) for t in range(60))
    np.testing.assert_allclose(
        outer_product(s, R, K, at, U, A[:, :32], 2.0),
        sum(outer_product(s, R, K, at, U, A[:, [t]], 2.0) for t in range(32)),
        rtol=1e-3,
        atol=1e-6,
    )
    draws = []
    for seed in range(20):  # sums with random signs have the same mean
        rng = np.random.default_rng(seed)
        monkeypatch.setattr(paths.np.random, "default_rng", lambda _, rng=rng: rng)
        draws.append(outer_product(s, R, K, at, U, A, 2.0))
    np.testing.assert_allclose(np.mean(draws, axis=0), plain, atol=0.15 * np.abs(plain).max())


def test_a_metric_is_the_root_over_the_largest_entry() -> None:
    B = np.random.default_rng(0).normal(size=(5, 3))
    M = B @ B.T  # of rank three
    S = metric_of(M, 0.5)
    assert S is not None
    np.testing.assert_allclose(S @ S, M / np.abs(M).max(), atol=1e-12)
    np.testing.assert_allclose(metric_of(np.array([4.0, 1.0, 0.0]), 0.5), [1, 0.5, 0])
    assert metric_of(np.zeros(3), 0.5) is None
    assert metric_of(np.array([np.nan, 1.0]), 1.0) is None


def test_outer_products_come_back_through_the_metric() -> None:
    rng = np.random.default_rng(1)
    B, S = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    M, S = B @ B.T, S + S.T
    np.testing.assert_allclose(pulled_back(M, S), S.T @ M @ S)
    s = rng.uniform(size=4)
    np.testing.assert_allclose(pulled_back(M, s), np.diag(s) @ M @ np.diag(s))
    np.testing.assert_allclose(pulled_back(M.diagonal(), s), np.diag(s) ** 2 @ M.diagonal())


def test_a_direction_is_found() -> None:
    rng = np.random.default_rng(6)
    v = np.array([1.0, -2.0, 0.5, 0.0, 0.0, 1.0])
    X = rng.normal(size=(400, 6))
    Y = np.sin(X @ v / 1.5)[:, None]
    rows = PathRows(X.astype(np.float32), (Y - Y.mean()).astype(np.float32))
    s = PathSetting("standard", 2, 1.0, 1.0, "full")
    walk = list(
        rounds(s, rows.take(np.arange(240)), rows.take(np.arange(240, 400)), 3, 0, FirstDistances())
    )
    assert min(r.loss for r in walk[1:]) < 0.5 * walk[0].loss
    S = walk[-1].metric
    lead = np.linalg.eigh(S)[1][:, -1]
    assert abs(lead @ v) / np.linalg.norm(v) > 0.98


def test_near_copies_do_not_rule_the_metric() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    some = rng.permutation(300)[:60]
    X = np.vstack([X, X[some] + 1e-6 * rng.normal(size=(60, 8))])
    y = np.append(y, y[some]) + 0.1 * rng.normal(size=360)
    order = rng.permutation(360)
    rows = PathRows(
        X[order].astype(np.float32), ((y - y.mean()) / y.std())[order, None].astype(np.float32)
    )
    s = PathSetting("standard", 1, 0.7, 1.0, "diagonal", 1.0)
    walk = list(
        rounds(s, rows.take(np.arange(220)), rows.take(np.arange(220, 360)), 2, 0, FirstDistances())
    )
    S = walk[-1].metric
    assert S[:2].min() > 3 * S[2:].max()


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_path_walked_again_has_the_same_metric(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "GRADIENT_ROWS", 10**6)  # all rows, in whatever order
    U, _ = made(8, 120, 4)
    Y = (np.sin(U[:, :1]) + U[:, 1:2]).astype(np.float32)
    rows = PathRows(U, Y - Y.mean())
    s = PathSetting("standard", 2, 1.0, 1.0, form)
    walk = list(islice(rounds(s, rows, rows.take(np.arange(30)), 2, 0, FirstDistances()), 3))
    path = MetricPath(s, tuple(dense.PENALTIES[r.penalty] for r in walk))
    again = walked(path, rows, 0)
    np.testing.assert_allclose(again, walk[-1].metric, atol=0.02)


def test_constant_targets_and_equal_rows_have_paths() -> None:
    U = np.zeros((20, 3), np.float32)
    Y = np.zeros((20, 1), np.float32)
    for norm, exponent in SHAPES:
        s = PathSetting("standard", norm, exponent, 1.0, "diagonal")
        walk = list(rounds(s, PathRows(U, Y), PathRows(U, Y), 3, 0, FirstDistances()))
        assert len(walk) == 1
        assert walk[0].loss < 1e-12
        assert walk[0].metric is None


def test_rows_under_a_metric() -> None:
    U, _ = made(9, 5, 3)
    S = np.array([[2.0, 1, 0], [1, 3, 0], [0, 0, 1]])
    np.testing.assert_allclose(under(U, S), U @ S, rtol=1e-5)
    np.testing.assert_allclose(under(U, S.diagonal()), U * S.diagonal(), rtol=1e-6)
    assert under(U, None) is U
