"""Active sets over a Gram matrix: every condition of the minimum, on columns of any rank."""

import numpy as np
import pytest
from sklearn.linear_model import enet_path

from mercer.ops import lasso
from mercer.ops.lasso import independent, lasso_minimum, lasso_path, stepped_path
from mercer.ops.lasso_loops import MANY, active_path, factor

RNG = np.random.default_rng(0)
NOTHING = np.empty((0, 0))  # known of a factor


def near_copies(X):
    return np.hstack([X, X[:, :3] + 1e-7 * RNG.normal(size=(len(X), 3))])


X60 = RNG.normal(size=(60, 12))
COLUMNS = {
    "plain": X60,
    "copies": np.hstack([X60, X60[:, ::-1], -X60[:, :2]]),
    "near copies": near_copies(X60),
    "sums": np.hstack([X60, X60 @ RNG.normal(size=(12, 8))]),
    "wide": RNG.normal(size=(15, 80)),
    "one row of signs": np.sign(RNG.normal(size=(30, 40))),
    "a line": np.outer(RNG.normal(size=40), RNG.normal(size=9)),
    "scales": X60 * np.logspace(-6, 6, 12),
    "offset": X60[:, :8] + 1e6,
    "small": X60[:3, :1],
    "ladder": np.tril(np.ones((40, 40))),
}


def problem(X, seed=0):
    rng = np.random.default_rng(seed)
    y = X @ np.where(rng.random(X.shape[1]) < 0.3, 1.0, 0.0) / np.abs(X).max()
    y = y + 0.3 * rng.normal(size=len(X))
    C, r = X - X.mean(0), y - y.mean()
    return C, r, C.T @ C / len(X), C.T @ r / len(X), float(r @ r) / len(X)


def looped_path(G, c, yy, alphas, ratio, b, rounds=10_000):
    return active_path(G, c, yy, alphas, ratio, b, rounds, NOTHING)


WAYS = pytest.mark.parametrize("way", [stepped_path, looped_path], ids=["steps", "loops"])


def solved(way, G, c, yy, alphas, ratio=1.0):
    return way(G, c, yy, np.asarray(alphas, float), ratio, np.zeros(len(c)))


@WAYS
@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_condition_of_the_minimum_holds(way, name, ratio):
    C, r, G, c, yy = problem(COLUMNS[name])
    alphas = np.abs(c).max() / ratio * np.logspace(0.1, -3, 25)
    B, gaps, _ = solved(way, G, c, yy, alphas, ratio)
    assert (B[0] == 0).all()  # above the largest penalty nothing enters
    assert (gaps <= 1e-11 * yy).all()
    for a, b in zip(alphas, B, strict=True):
        l1, l2 = a * ratio, a * (1 - ratio)
        q = C.T @ (r - C @ b) / len(r) - l2 * b  # from the columns, not from G
        tol = 1e-7 * l1 + 1e-12 * np.abs(G).max() * np.abs(b).sum()
        assert (np.abs(q) <= l1 + tol).all()
        assert np.abs(q - l1 * np.sign(b))[b != 0].max(initial=0.0) <= tol


@WAYS
@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("name", ["plain", "copies", "sums", "wide"])
def test_the_objective_is_that_of_scikit_learn(way, name, ratio):
    C, r, G, c, yy = problem(COLUMNS[name])
    alphas = np.abs(c).max() / ratio * np.logspace(0, -2, 8)
    B, _, _ = solved(way, G, c, yy, alphas, ratio)
    _, theirs, _ = enet_path(C, r, alphas=alphas, l1_ratio=ratio, tol=1e-13, max_iter=500_000)

    def value(b, a):
        smooth = np.mean((r - C @ b) ** 2) / 2 + a * (1 - ratio) / 2 * b @ b
        return smooth + a * ratio * np.abs(b).sum()

    for a, b, t in zip(alphas, B, theirs.T, strict=True):
        assert value(b, a) == pytest.approx(value(t, a), rel=1e-8)
        assert value(b, a) <= value(t, a) + 1e-13 * yy


@WAYS
def test_gaps_bound_what_an_end_short_of_the_minimum_lacks(way):
    C, r, G, c, yy = problem(COLUMNS["sums"])
    alphas = np.abs(c).max() * np.array([0.1])
    best, _, _ = solved(way, G, c, yy, alphas)

    def value(b):
        return np.mean((r - C @ b) ** 2) / 2 + alphas[0] * np.abs(b).sum()

    short = []
    for rounds in (1, 2, 3, 4):
        B, gaps, took = way(G, c, yy, alphas, 1.0, np.zeros(len(c)), rounds)
        assert took[0] <= rounds
        lacks = value(B[0]) - value(best[0])
        assert -1e-14 <= lacks <= gaps[0] + 1e-14
        short.append(lacks)
    assert short[0] > 1e-4  # the first ends are far off, so that the bound says something


@WAYS
def test_copies_are_kept_once_and_the_first_of_them(way):
    _, _, G, c, yy = problem(COLUMNS["copies"])
    B, _, _ = solved(way, G, c, yy, np.abs(c).max() * np.logspace(0, -3, 20))
    assert (B[:, 12:] == 0).all()
    assert (B[-1, :12] != 0).any()


@WAYS
def test_a_start_elsewhere_arrives_at_the_same_place(way):
    _, _, G, c, yy = problem(COLUMNS["plain"])
    alphas = np.abs(c).max() * np.array([0.05])
    B, _, _ = solved(way, G, c, yy, alphas)
    start = RNG.normal(size=len(c))
    other, gaps, _ = way(G, c, yy, alphas, 1.0, start)
    np.testing.assert_allclose(other, B, atol=1e-12)
    assert gaps[0] < 1e-13


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_a_factor_that_is_known_changes_nothing(l2):
    _, _, G, c, yy = problem(RNG.normal(size=(500, MANY + 20)))
    start = RNG.normal(size=len(c))
    known = factor(G, l2, start)
    assert known.shape == G.shape
    np.testing.assert_allclose(known @ known.T, G + l2 * np.eye(len(c)), atol=1e-12)
    alphas = np.array([0.1 * np.abs(c).max() + l2])
    ratio = 1 - l2 / alphas[0]
    ends = [active_path(G, c, yy, alphas, ratio, start.copy(), 10_000, k) for k in (known, NOTHING)]
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-12)
    assert ends[0][1][0] < 1e-13
    copied = np.hstack([G, G[:, :1]])
    copied = np.vstack([copied, copied[:1]])
    assert factor(copied, 0.0, np.ones(len(copied))).shape == (0, 0)  # one is another


def test_features_that_others_make_up():
    X = RNG.normal(size=(30, 4))
    X = np.hstack([X, X[:, [0]] - 2 * X[:, [1]], RNG.normal(size=(30, 1)), X[:, [3]]])
    assert independent(X.T @ X).tolist() == [True] * 4 + [False, True, False]


@pytest.mark.parametrize("name", COLUMNS)
def test_steps_and_loops_arrive_at_the_same_place(name):
    _, _, G, c, yy = problem(COLUMNS[name], seed=1)
    alphas = np.abs(c).max() * np.logspace(0.1, -3, 60)
    (B, gaps, took), (other, _, _) = (
        solved(w, G, c, yy, alphas) for w in (stepped_path, looped_path)
    )
    assert (gaps <= 1e-11 * yy).all()
    values = [
        [b @ G @ b / 2 - c @ b + a * np.abs(b).sum() for a, b in zip(alphas, one, strict=True)]
        for one in (B, other)
    ]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-12 * yy)
    if name == "plain":  # while the features stay the same no step is taken
        assert (took == 0).sum() > 30


@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_by_size_steps_or_loops(l2, monkeypatch):
    def none(*_):
        raise AssertionError("compiled")

    _, _, G, c, yy = problem(COLUMNS["sums"])
    wide = np.full((30, 30), np.nan)
    wide[: len(c), : len(c)] = G  # of more rows and columns than count
    l1, start = 0.05 * np.abs(c).max(), RNG.normal(size=len(c))
    alphas = np.array([2 * l1, l1])
    monkeypatch.setattr(lasso, "SMALL", len(c) - 1)
    large = lasso_minimum(wide, c, l1, l2, start), lasso_path(G, c, yy, alphas, 0.7)[0]
    monkeypatch.setattr(lasso, "SMALL", len(c))
    monkeypatch.setattr(lasso, "active_path", none)
    small = lasso_minimum(wide, c, l1, l2, start), lasso_path(G, c, yy, alphas, 0.7)[0]
    np.testing.assert_allclose(lasso_path(G, c, yy, alphas, 0.7)[1], 0, atol=1e-13)
    np.testing.assert_allclose(small[1], large[1], atol=1e-10)
    value = [
        b @ (G + l2 * np.eye(len(c))) @ b / 2 - c @ b + l1 * np.abs(b).sum()
        for b in (small[0], large[0])
    ]
    assert value[0] == pytest.approx(value[1], abs=1e-13)


def test_features_that_many_others_make_up_are_found_in_blocks():
    X = RNG.normal(size=(60, 20))
    X = np.hstack([X, X @ RNG.normal(size=(20, 50)), RNG.normal(size=(60, 10)), X[:, ::-1]])
    found = independent(X.T @ X)
    assert np.flatnonzero(found).tolist() == [*range(20), *range(70, 80)]
