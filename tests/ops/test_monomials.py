"""The monomials against scikit-learn and against plain references: values, order, dense and
sparse."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures

from mercer.ops import monomials, monomials_csr
from mercer.ops.monomials import expand, exponents, plan, reference_expand
from mercer.ops.monomials_csr import expand_csr, reference_expand_csr
from mercer.ops.threads import limit

SHAPES = [
    (0, 3, 2),
    (1, 1, 1),
    (7, 1, 6),
    (33, 2, 0),
    (65, 2, 1),
    (70, 2, 2),
    (5, 3, 5),
    (40, 5, 3),
    (9, 13, 3),
    (3, 40, 2),
]
OPTIONS = {
    "all": {},
    "no bias": dict(include_bias=False),
    "interactions": dict(interaction_only=True),
    "interactions, no bias": dict(interaction_only=True, include_bias=False),
    "ordered": dict(ordered=True),
    "ordered, no bias": dict(ordered=True, include_bias=False),
}

cases = pytest.mark.parametrize(("n", "d", "degree"), SHAPES)
options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(autouse=True, params=["loops", "slices"])
def way(request, monkeypatch):
    """Every test, by compiled loops and by NumPy."""
    few = 0 if request.param == "loops" else 1 << 40
    monkeypatch.setattr(monomials, "FEW_VALUES", few - 1)
    monkeypatch.setattr(monomials, "FEW_SLICES", few)


def table(n, d, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, (n, d)).astype(dtype)


def sparse_table(n, d, dtype=np.float64, density=0.4):
    rng = np.random.default_rng(n + d)
    return sp.csr_array(np.where(rng.random((n, d)) < density, table(n, d, dtype), 0).astype(dtype))


def close(dtype):
    return dict(rtol=16 * np.finfo(dtype).eps, strict=True)


def same_sparse(F, G, dtype):
    assert type(F) is type(G)
    assert F.shape == G.shape
    assert F.dtype == dtype
    np.testing.assert_array_equal(F.indptr, G.indptr)
    np.testing.assert_array_equal(F.indices, G.indices)
    np.testing.assert_allclose(F.data, G.data, **close(dtype))


def capped(d):
    """A mixture of caps: none, some, of degree zero."""
    return tuple([1, 3, 0, 2, 5][j % 5] for j in range(d))


@cases
@options
@dtypes
def test_dense_equals_reference(n, d, degree, options, dtype):
    program, X = plan(d, degree, **options), table(n, d, dtype)
    out = np.full((n, program.D), np.nan, dtype)
    assert expand(program, X, out=out) is out
    np.testing.assert_allclose(out, reference_expand(program, X), **close(dtype))


@cases
@options
@dtypes
def test_weights(n, d, degree, options, dtype):
    program, X = plan(d, degree, **options), table(n, d, dtype)
    w = np.random.default_rng(1).uniform(1, 2, program.D)
    out = np.full((n, program.D), np.nan, dtype)
    np.testing.assert_allclose(
        expand(program, X, w, out), expand(program, X) * w.astype(dtype), **close(dtype)
    )
    S = sparse_table(n, d, dtype)
    same_sparse(expand_csr(program, S, w), reference_expand_csr(program, S, w), dtype)


@cases
@options
@dtypes
def test_loops_and_slices_have_the_same_bits(n, d, degree, options, dtype, monkeypatch):
    rng = np.random.default_rng(n)
    program, X = plan(d, degree, **options), rng.normal(size=(n, d)).astype(dtype)
    X[: n // 3] *= rng.choice([0, 1e-30, 1e6, 1e30, np.inf, np.nan], size=(n // 3, d))
    found = []
    for few in (-1, 1 << 40):
        monkeypatch.setattr(monomials, "FEW_VALUES", few)
        monkeypatch.setattr(monomials, "FEW_SLICES", few)
        wide = np.zeros((n, program.D + 3), dtype)
        expand(program, X, None, wide[:, 1:-2])
        found.append([wide, expand(program, X, np.cos(np.arange(program.D)))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@cases
@options
@dtypes
def test_csr_equals_reference(n, d, degree, options, dtype):
    program, X = plan(d, degree, **options), sparse_table(n, d, dtype)
    F = expand_csr(program, X)
    same_sparse(F, reference_expand_csr(program, X), dtype)
    assert sp.csr_array(
        (F.data, F.indices, F.indptr), shape=F.shape
    ).has_canonical_format  # looks; F believes its flag


@pytest.mark.parametrize(("n", "d", "degree"), [case for case in SHAPES if case[0] and case[2]])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
def test_scikit_learn(n, d, degree, interaction_only, include_bias):
    theirs = PolynomialFeatures(
        degree, interaction_only=interaction_only, include_bias=include_bias
    )
    program = plan(d, degree, interaction_only=interaction_only, include_bias=include_bias)
    X, S = table(n, d), sparse_table(n, d)
    np.testing.assert_allclose(expand(program, X), theirs.fit_transform(X), **close(float))
    np.testing.assert_allclose(
        expand_csr(program, S).toarray(), theirs.fit_transform(S.toarray()), **close(float)
    )
    np.testing.assert_array_equal(exponents(program).toarray(), theirs.powers_)


@pytest.mark.parametrize("d", [1, 2, 5, 6])
@pytest.mark.parametrize("degree", [0, 1, 2, 4, 7])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_degree_per_column(d, degree, interaction_only):
    """The monomials of the plain plan whose exponents stay below the bounds, in the same order."""
    caps = np.minimum(capped(d), 1 if interaction_only else degree)
    program = plan(d, degree, degree_per_column=capped(d), interaction_only=interaction_only)
    every = exponents(plan(d, degree)).toarray()
    np.testing.assert_array_equal(exponents(program).toarray(), every[(every <= caps).all(axis=1)])
    X, S = table(6, d), sparse_table(20, d, density=0.7)
    np.testing.assert_allclose(expand(program, X), reference_expand(program, X), **close(float))
    same_sparse(expand_csr(program, S), reference_expand_csr(program, S), float)


def test_ordered_monomials():
    program, x = plan(3, 3, ordered=True), table(1, 3)
    expected = [np.prod(x[0, list(v)]) for k in range(4) for v in product(range(3), repeat=k)]
    np.testing.assert_allclose(expand(program, x)[0], expected, rtol=1e-15)


def test_both_loops_agree(monkeypatch):
    program, X, w = plan(6, 3), table(100, 6), np.arange(84.0)
    results = []
    for short in (0, 10**9):
        monkeypatch.setattr(monomials, "SHORT_RUN", short)
        results.append([expand(program, X), expand(program, X, w)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-15)


@pytest.mark.parametrize("threads", [1, 3])
def test_tiles_and_threads_do_not_matter(threads, monkeypatch):
    program, X, S = plan(7, 3), table(200, 7), sparse_table(200, 7)
    whole, sparse = expand(program, X), expand_csr(program, S)
    monkeypatch.setattr(monomials, "TILE_BYTES", 1 << 12)
    monkeypatch.setattr(monomials_csr, "TILE_ENTRIES", 37)
    monkeypatch.setattr(monomials_csr, "COUNTED_ROWS", 9)
    with limit(threads):
        np.testing.assert_array_equal(expand(program, X), whole)
        assert (expand_csr(program, S) != sparse).nnz == 0


def test_any_layout_of_X_is_read_and_none_is_changed():
    program, X = plan(4, 3), table(50, 4)
    expected = expand(program, X)
    for view in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_array_equal(expand(program, view), expected)
    X.flags.writeable = False
    np.testing.assert_array_equal(expand(program, X), expected)


def test_stored_zeros_unsorted_columns_and_duplicates():
    S = sp.csr_matrix(([0.0, 2.0, 1.0, 3.0, 1.0], [1, 2, 0, 2, 2], [0, 3, 5]), shape=(2, 3))
    before = S.copy()
    F = expand_csr(plan(3, 2), S)
    assert isinstance(F, sp.csr_matrix)
    assert F.indices.tolist() == [0, 1, 3, 4, 6, 9, 0, 3, 9]
    assert F.data.tolist() == [1, 1, 2, 1, 2, 4, 1, 4, 16]
    np.testing.assert_array_equal(S.data, before.data)
    np.testing.assert_array_equal(S.indices, before.indices)


def test_nan_and_infinity_go_through():
    X = np.array([[np.nan, 2.0], [np.inf, 3.0]])
    program = plan(2, 2)
    np.testing.assert_array_equal(
        expand(program, X), [[1, np.nan, 2, np.nan, np.nan, 4], [1, np.inf, 3, np.inf, np.inf, 9]]
    )
    np.testing.assert_array_equal(
        expand_csr(program, sp.csr_array(X)).toarray(), expand(program, X)
    )


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_indices_beyond_32_bits(index):
    """200,000 columns have 2e10 monomials of degree 2."""
    d = 200_000
    S = sp.csr_array(
        ([2.0, 3.0], np.array([5, d - 1], index), np.array([0, 2], index)), shape=(1, d)
    )
    F = expand_csr(plan(d, 2), S)
    assert F.indices.dtype == np.int64
    assert F.data.tolist() == [1, 2, 3, 4, 6, 9]
    assert F.indices[-1] == F.shape[1] - 1 == (d + 1) * (d + 2) // 2 - 1
    powers = exponents(plan(d, 2), F.indices)
    assert powers.indices.tolist() == [5, d - 1, 5, 5, d - 1, d - 1]
    assert powers.data.tolist() == [1, 1, 2, 1, 1, 2]
    assert (
        expand_csr(
            plan(10_000, 2), sp.csr_array(([2.0], ([0], [3])), shape=(1, 10_000))
        ).indices.dtype
        == np.int32
    )


def test_exponents_of_a_million_monomials_are_sparse():
    program = plan(200, 3)
    powers = exponents(program)
    assert powers.shape == (1_373_701, 200)
    assert powers.nnz <= 3 * program.D
    some = np.array([0, 1, 200, 201, 5_000, program.D - 1])
    assert (exponents(program, some) != powers[some]).nnz == 0
    last = list(combinations_with_replacement(range(200), 2))
    assert (powers[[201 + last.index((3, 8))]].toarray() == np.eye(200)[[3, 8]].sum(0)).all()


@pytest.mark.parametrize("caps", [(1,), (1, -1, 2), (1, 2.5, 1), "abc"])
def test_bad_caps(caps):
    with pytest.raises(ValueError, match="degree_per_column must hold 3"):
        plan(3, 2, degree_per_column=caps)


def test_impossible_plans():
    with pytest.raises(ValueError, match=r"more than 2\^62"):
        plan(10_000, 10)
    with pytest.raises(ValueError, match="leave out"):
        plan(3, 2, ordered=True, interaction_only=True)
    assert plan(40, 40, interaction_only=True).D == 2**40
