"""Seeds and steps on squared distances against plain ones, on points that are apart, equal, on a
line, few or of other weights."""

import numpy as np
import pytest

from mercer.ops import sample

SETS = {
    "blobs": lambda rng: rng.normal(size=(90, 3)) + 3 * rng.integers(0, 3, (90, 1)),
    "duplicates": lambda rng: rng.integers(0, 3, (60, 2)).astype(float),
    "a line": lambda rng: np.outer(rng.normal(size=50), [1.0, 2.0]),
    "fewer points than clusters": lambda rng: np.repeat([[0.0], [1.0], [5.0]], 4, axis=0),
    "as many rows as clusters": lambda rng: rng.normal(size=(5, 2)),
}


@pytest.fixture(params=SETS)
def points(request):
    X = SETS[request.param](np.random.default_rng(0))
    return X, squared(X, X), np.random.default_rng(1).uniform(0.5, 2, len(X))


def squared(X, Z):
    return np.square(X[:, None] - Z).sum(-1)


def drawn(mass, u):
    total = np.cumsum(mass)
    return min(int(np.searchsorted(total, u * total[-1], side="right")), len(mass) - 1)


def plain_seeds(D, w, u, k):
    def cost(chosen):
        return w @ D[chosen].min(0)

    chosen = [drawn(w, u[0, 0])]
    for r in range(1, len(u) if k > 1 else 1):  # one seed is as good as another
        first, ways = D[chosen].min(0), []
        for v in u[r] if cost(chosen) > 0 else ():
            i = drawn(w * first, v)
            less = [chosen] if r < k else [chosen[:c] + chosen[c + 1 :] for c in range(k)]
            c = int(np.argmin([cost([*rest, i]) for rest in less]))
            ways.append((cost([*less[c], i]), c, i))
        best, c, i = min(ways, key=lambda way: way[0], default=(0.0, 0, r % len(D)))
        if r < k:
            chosen.append(i)
        elif best < cost(chosen) * (1 - 1e-9):
            chosen[c] = i
    return np.array(chosen)


def plain_steps(X, w, at, k, most, close):
    before, total = np.inf, np.inf
    for _ in range(most):
        there = np.unique(at)
        means = np.stack([w[at == c] @ X[at == c] / w[at == c].sum() for c in there])
        D = squared(X, means)
        total, found = w @ D.min(1), at
        if not total < before * (1 - close):
            break
        before, at = total, there[D.argmin(1)]
    return total, found


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("tries", [1, 3])
def test_seeds_are_those_of_a_plain_search(points, k, tries):
    _, D, w = points
    u = np.random.default_rng(2).uniform(size=(3 * k, tries))
    chosen, at = sample.seeds(D, w, u, k)
    plain = plain_seeds(D, w, u, k)
    assert w @ D[chosen].min(0) == pytest.approx(w @ D[plain].min(0), rel=1e-12)
    np.testing.assert_array_equal(D[chosen[at], np.arange(len(D))], D[chosen].min(0))
    if len(np.unique(D[0])) > 20:  # no ties
        np.testing.assert_array_equal(chosen, plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [1, 2, 30])
def test_steps_are_those_among_the_points(points, most, dtype):
    X, D, w = points
    at = np.arange(len(X)) % 4
    total, found = sample.steps(D.astype(dtype), w, at, 5, most, 1e-4)
    plain, labels = plain_steps(X, w, at, 5, most, 1e-4)
    scale = w @ squared(X, X.mean(0)[None])[:, 0]
    assert total == pytest.approx(plain, abs=scale * (1e-12 if dtype == np.float64 else 1e-5))
    if len(np.unique(D[0])) > 20:
        np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(at, np.arange(len(X)) % 4)  # not changed
