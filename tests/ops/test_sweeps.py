"""Sweeps against all products built, and their bounds against exact sums."""

import tracemalloc

import numpy as np
import pytest

from mercer.ops.monomials import expand, exponents, plan
from mercer.ops.sweeps import ROWS, Sweep, built, gamma
from mercer.ops.threads import limit
from mercer.ops.words import NONE, letters, places, tiles

PLANS = {
    "all": {},
    "distinct": {"interaction_only": True},
    "caps": {"degree_per_column": [3, 1, 0, 2, 4]},
    "no constant": {"include_bias": False},
}


def uniform(d, n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (d, n))


def hostile(name, d, n):
    """(d, n) columns that sums in few digits do not like."""
    rng = np.random.default_rng(len(name))
    X = rng.uniform(-1, 1, (d, n))
    match name:
        case "copies":
            X[1::2] = X[: len(X[1::2])]
        case "close":
            X[1:] = X[0] + 1e-9 * X[1:]
        case "offset":
            X = 1 + 1e-6 * X
        case "bits":
            X = (X > 0.6).astype(float)
        case "tiny":
            X = X * 1e-15
        case "huge":
            X = X * 1e9
        case "spread":
            X = X * 10.0 ** rng.integers(-3, 1, (d, 1))
    return X


HOSTILE = ["plain", "copies", "close", "offset", "bits", "tiny", "huge", "spread"]


def every(sweep):
    """Places and values x_j of all products of a sweep, by the exponents alone."""
    program = plan(
        len(sweep.caps),
        sweep.degrees.stop - 1,
        degree_per_column=[int(c) for c in np.minimum(sweep.caps, sweep.degrees.stop - 1)],
    )
    powers = exponents(program).toarray()
    powers = powers[np.isin(powers.sum(1), sweep.degrees)]
    F = np.prod(sweep.XT[None] ** powers[:, :, None], axis=1)
    words = np.array(
        [
            np.pad(
                np.repeat(np.arange(len(p)), p),
                (0, sweep.program.degree - p.sum()),
                constant_values=NONE,
            )
            for p in powers
        ]
    )
    return places(sweep.program, words.reshape(len(powers), -1)), F


def exact(sweep, r):
    """Places and |x_j'r| of all products that are not constant, in double double."""
    at, F = every(sweep)
    G = np.abs(np.asarray(F, np.longdouble) @ np.asarray(r, np.longdouble)).astype(float)
    if not sweep.unit:
        return at, G
    m = F @ sweep.w
    v = ((F - m[:, None]) ** 2) @ sweep.w
    real = v > 16 * gamma(len(r) + 8, np.dtype(float)) * (F**2 @ sweep.w)
    return at[real], G[real] / np.sqrt(v[real])


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_places_and_letters_are_those_of_the_program(name, degree):
    program = plan(5, degree, **PLANS[name])
    at = np.arange(program.D) + program.skip
    words = letters(program, at)
    counted = (words[:, :, None] == np.arange(5)).sum(axis=1)
    assert np.array_equal(counted, exponents(program).toarray())
    assert np.array_equal(places(program, words), at)
    padded = np.where(words == NONE, 5, words)
    assert (np.diff(padded, axis=1) >= 0).all()
    X = uniform(5, 7)
    assert np.allclose(built(X, words), expand(program, X.T.copy()).T, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_every_word_is_in_one_tile(name, degree, monkeypatch):
    monkeypatch.setattr("mercer.ops.words.TILE", 7)
    program = plan(5, degree, **PLANS[name])
    found = []
    for tile in tiles(program.caps, range(1, degree + 1)):
        odd = np.zeros((len(tile.heads), len(tile.tails)), bool)
        odd[tile.near :] = tile.strange(program.caps)
        found.append(places(program, tile.words(*np.nonzero(~odd))))
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(1, program.D + program.skip))


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_largest_are_the_largest_and_the_bound_holds(kind, unit):
    rng = np.random.default_rng(HOSTILE.index(kind))
    for degree, d, n in [(1, 1, 1), (2, 6, 40), (3, 7, 25), (4, 6, 33), (5, 4, 3)]:
        program = plan(d, degree)
        w = rng.dirichlet(np.ones(n))
        sweep = Sweep(hostile(kind, d, n), w, program, program.caps, range(1, degree + 1), unit)
        r = rng.normal(size=n) * 1e3
        r -= w * r.sum()
        at, G = exact(sweep, r)
        close = 1e-9 * G.max(initial=0) + (n + 9) * 1e-15 * np.abs(r).sum() * unit
        for k, above in [
            (3, 0.0),
            (10**4, np.median(G) if len(G) else 1.0),
            (5, 2 * G.max(initial=1)),
        ]:
            found, values, bound = sweep.largest(r, k, float(above))
            assert len(found) == len(set(found)) <= k
            assert set(found) <= set(at)
            mine = G[np.searchsorted(at, found)] if (np.diff(at) > 0).all() else None
            assert np.allclose(np.abs(values), mine, rtol=1e-7, atol=close)
            assert (np.abs(values) > above).all()
            assert (np.diff(np.abs(values)) <= 0).all()
            others = G[~np.isin(at, found)]  # but copies, which have the same products
            same = np.isclose(others[:, None], np.abs(values), rtol=1e-9, atol=close).any(axis=1)
            others = others[~same] if kind in ("copies", "bits") else others
            assert others.max(initial=0) <= max(bound, above) + close
            if len(found) < k:
                assert bound <= above + close


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_rounding_in_float32_is_within_its_bound(degree):
    rng = np.random.default_rng(degree)
    n, d = 700, 6
    program = plan(d, degree)
    for kind in ["plain", "offset", "bits", "close"]:
        sweep = Sweep(
            hostile(kind, d, n), np.full(n, 1 / n), program, program.caps, range(1, degree + 1)
        )
        assert sweep.dtype == np.float32
        r = rng.normal(size=n)
        for tile in sweep.tiles:
            V, error = sweep._values(tile, r.astype(np.float32), sweep._norms(r))
            H, T = built(sweep.XT, tile.heads.words), built(sweep.XT, tile.tails.words)
            off = np.abs(V - (H * r) @ T.T).max()
            assert 0 < off <= error or off == 0


def test_the_bound_on_rounding_can_be_met():
    assert gamma(1, np.dtype(np.float32)) >= 2.0**-24
    n = 1000
    one = np.full((1, n), 1 + 2.0**-24)  # rounds to 1: each term is off by half a unit
    sweep = Sweep(one, np.full(n, 1 / n), plan(1, 1), np.ones(1, int), range(1, 2))
    V, error = sweep._values(sweep.tiles[0], np.ones(n, np.float32), sweep.norms)
    assert 0 < n * (1 + 2.0**-24) - V[0, 0] <= error


@pytest.mark.parametrize("unit", [False, True])
def test_what_is_found_depends_on_neither_threads_nor_pieces(unit, monkeypatch):
    monkeypatch.setattr("mercer.ops.words.TILE", 16)
    monkeypatch.setattr("mercer.ops.sweeps.SPARE", 3)
    X = hostile("copies", 12, 50)
    program, r = plan(12, 3), np.random.default_rng(0).normal(size=50)
    sweep = Sweep(X, np.full(50, 1 / 50), program, program.caps, range(1, 4), unit)
    found = []
    for threads in [1, 2, 5]:
        with limit(threads):
            found.append(sweep.largest(r, 20, 0.0))
    for at, values, bound in found[1:]:
        assert np.array_equal(at, found[0][0])
        assert np.array_equal(values, found[0][1])
        assert bound == found[0][2]


def test_rows_come_in_pieces(monkeypatch):
    X, r = uniform(4, 100), np.random.default_rng(1).normal(size=100)
    program = plan(4, 3)
    for unit in [False, True]:
        sweep = Sweep(X, np.full(100, 0.01), program, program.caps, range(1, 4), unit)
        at, values, bound = sweep.largest(r, 5, 0.0)
        monkeypatch.setattr("mercer.ops.sweeps.ROWS", 7)
        again = Sweep(X, np.full(100, 0.01), program, program.caps, range(1, 4), unit)
        other = again.largest(r, 5, 0.0)
        assert np.array_equal(at, other[0])
        assert np.allclose(values, other[1], rtol=1e-12)
        assert np.isclose(bound, other[2], rtol=1e-5)
        monkeypatch.setattr("mercer.ops.sweeps.ROWS", ROWS)


@pytest.mark.parametrize("unit", [False, True])
def test_the_bound_holds_for_what_was_never_computed_anew(unit, monkeypatch):
    monkeypatch.setattr("mercer.ops.sweeps.SPARE", 1)
    monkeypatch.setattr("mercer.ops.words.TILE", 8)
    program, w = plan(9, 3), np.full(80, 1 / 80)
    sweep = Sweep(uniform(9, 80), w, program, program.caps, range(1, 4), unit)
    for seed in range(5):
        r = np.random.default_rng(seed).normal(size=80)
        r -= r.mean()
        at, G = exact(sweep, r)
        for k in [1, 4, 30]:
            found, values, bound = sweep.largest(r, k, 0.0)
            others = G[~np.isin(at, found)].max()
            assert np.isclose(np.sort(G)[::-1][:k], np.abs(values), rtol=1e-9).all()
            assert others <= bound <= others * (1 + 1e-3)


def test_no_vector_finds_nothing():
    program = plan(3, 2)
    sweep = Sweep(uniform(3, 4), np.full(4, 0.25), program, program.caps, range(1, 3))
    at, values, bound = sweep.largest(np.zeros(4), 5, 0.5)
    assert not len(at)
    assert not len(values)
    assert bound == 0.5


@pytest.mark.parametrize("unit", [False, True])
def test_memory_is_that_of_a_few_tiles(unit):
    d, n = 60, 300  # 39,710 products: 95 MB in float64
    program = plan(d, 3)
    sweep = Sweep(uniform(d, n), np.full(n, 1 / n), program, program.caps, range(1, 4), unit)
    r = np.random.default_rng(0).normal(size=n)
    sweep.largest(r, 10, 1e9)
    tracemalloc.start()
    sweep.largest(r, 10, 1e9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6
