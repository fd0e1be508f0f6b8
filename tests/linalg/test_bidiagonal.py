"""Penalised least squares of many penalties at once: the solutions of systems, on hostile columns."""

import numpy as np
import pytest

from mercer.linalg.bidiagonal import damped_images

ALPHAS = np.array([1e-8, 1e-3, 1.0, 1e6])


def drawn(kind, seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 40, 2)
    A = rng.normal(size=(n, d))
    match kind:
        case "copies":
            A = np.vstack([A, A, A * (1 + 1e-9)])
        case "line":
            A = np.outer(A[:, 0], A[0])
        case "scales":
            A *= 10.0 ** rng.uniform(-4, 4, d)
        case "far":
            A[:, 0] += 1e6
        case "one row":
            A = A[:1]
    return A, rng.normal(size=len(A))


def by_svd(A, b, alpha):
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return Vt.T @ (s / (s**2 + alpha) * (U.T @ b))


@pytest.mark.parametrize("kind", ["plain", "copies", "line", "scales", "far", "one row"])
def test_every_penalty_has_its_own_solution(kind):
    for seed in range(8):
        A, b = drawn(kind, seed)
        found, steps = damped_images(
            lambda v, A=A: (A @ v, A @ v), lambda u, A=A: A.T @ u, b, ALPHAS, 1e-10, 2000
        )
        assert found.shape == (len(A), len(ALPHAS))
        assert steps < 2000
        for f, alpha in zip(found.T, ALPHAS, strict=True):
            close = 1e-4 if alpha == 1e-8 and kind in ("far", "scales") else 1e-6
            assert np.linalg.norm(f - A @ by_svd(A, b, alpha)) <= close * np.linalg.norm(b)


def test_images_are_those_of_another_matrix():
    A, b = drawn("plain", 3)
    G = np.random.default_rng(0).normal(size=(5, A.shape[1]))
    found, _ = damped_images(lambda v: (A @ v, G @ v), lambda u: A.T @ u, b, ALPHAS, 1e-12, 500)
    for f, alpha in zip(found.T, ALPHAS, strict=True):
        np.testing.assert_allclose(f, G @ by_svd(A, b, alpha), atol=1e-8)


def test_nothing_to_fit_is_zero_in_no_step():
    A = np.zeros((3, 4))
    found, steps = damped_images(
        lambda v: (A @ v, v), lambda u: A.T @ u, np.ones(3), ALPHAS, 1e-6, 9
    )
    assert not found.any()
    assert steps == 0
    assert not damped_images(lambda v: (v, v), lambda u: u, np.zeros(3), ALPHAS, 1e-6, 9)[0].any()


def test_steps_are_at_most_those_asked_for():
    A, b = np.diag(np.linspace(1e-3, 1.0, 60)), np.ones(60)
    assert damped_images(lambda v: (A @ v, v), lambda u: A @ u, b, ALPHAS, 1e-12, 7)[1] == 7


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_no_penalty_gives_the_shortest_solution_where_directions_end(rank):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(30, rank)) @ rng.normal(size=(rank, 20))
        b, alphas = rng.normal(size=30), np.array([0.0, 1e-30, 1e-12, 1.0])
        found, steps = damped_images(
            lambda v, A=A: (A @ v, v), lambda u, A=A: A.T @ u, b, alphas, 1e-6, 500
        )
        exact = np.linalg.pinv(A, rcond=1e-10) @ b
        assert np.linalg.norm(found[:, :3] - exact[:, None]) <= 1e-5 * np.linalg.norm(exact)
        assert steps < 20
