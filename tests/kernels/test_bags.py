"""Kernels over bags, against plain loops over their members."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mercer import KernelRidge, check_psd
from mercer.inputs import Table
from mercer.kernels import Constant, Gaussian, Laplace, Linear, OverSets, Polynomial
from mercer.kernels.ways import value_ways
from mercer.pairs.bags import PIECE
from mercer.strings import Spectrum, SubTree
from mercer.testing import check_kernel

KERNELS = [
    Gaussian(1.5),
    Gaussian((1.0, 2.0, 3.0)),
    Linear() + Constant(),
    Polynomial(2).normalized(),
    Laplace().on_columns([0, 2]),
]


def drawn(seed, n=7, most=6, d=3, dtype=np.float64, offset=0.0):
    """Bags of rows: an empty one, a bag of copies, near-copies."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(int(m), d)) + offset for m in rng.integers(1, most, n)]
    more = [np.zeros((0, d)), np.repeat(bags[0][:1], 4, axis=0), bags[1] + 1e-9]
    return [b.astype(dtype) for b in bags + more]


def plainly(k, X, Z, how):
    of = np.mean if how == "mean" else np.sum
    return np.array([[of(k(a, b)) if len(a) and len(b) else 0.0 for b in Z] for a in X])


@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_all_pairs_of_members_count(k, how):
    X, Z = drawn(0), drawn(1, n=4)
    sets = k.over_sets(how)
    np.testing.assert_allclose(sets(X, Z), plainly(k, X, Z, how), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sets.diag(X), np.diag(plainly(k, X, X, how)), rtol=1e-10)
    assert sets.proof()
    assert not check_psd(sets, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_members_far_from_zero(dtype):
    offset = 1e6 if dtype == np.float64 else 1e3
    X = drawn(2, dtype=dtype, offset=offset)
    near = [(x.astype(np.float64) - offset) for x in X]
    found = Gaussian().over_sets()(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(
        found, plainly(Gaussian(), near, near, "mean"), rtol=1e-4 if dtype == np.float32 else 1e-7
    )


def test_bags_larger_than_a_piece():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(m, 2)) for m in (PIECE + 3, 1, 2 * PIECE, 5)]
    K = Gaussian().over_sets()(X)
    np.testing.assert_allclose(K, plainly(Gaussian(), X, X, "mean"), rtol=1e-10)
    np.testing.assert_allclose(Gaussian().over_sets().diag(X), np.diag(K), rtol=1e-10)
    np.testing.assert_allclose(Gaussian().over_sets()(X[:1], X[1:]), K[:1, 1:], rtol=1e-10)


def test_many_bags_are_cut_as_one():
    X = drawn(4, n=390, most=3)
    K = Gaussian().over_sets()(X)
    np.testing.assert_allclose(K[:5, -5:], plainly(Gaussian(), X[:5], X[-5:], "mean"), rtol=1e-10)
    np.testing.assert_allclose(K[-5:, :5], K[:5, -5:].T, rtol=1e-10)


def test_bags_of_any_form():
    X = np.random.default_rng(5).normal(size=(4, 3, 2))
    k = Gaussian().over_sets()
    K = k(X)
    for same in (
        list(X),
        X.tolist(),
        [pd.DataFrame(x, columns=["a", "b"]) for x in X],
        [sp.csr_array(x) for x in X],
        np.array([*list(X), None], dtype=object)[:-1],
    ):
        np.testing.assert_allclose(k(same), K, rtol=1e-12)


def test_bags_of_items():
    trees = ["(S a)", "(S (B a))", "(S (B a) (B b))"]
    X = [[], trees[:2], trees[2:], [trees[0]] * 3]
    k = SubTree(decay=0.5)
    np.testing.assert_allclose(k.over_sets()(X), plainly(k, X, X, "mean"), rtol=1e-12)
    again = k.over_sets("sum").over_sets()([[X[1], X[2]], [X[3]]])
    S = plainly(k, X, X, "sum")
    np.testing.assert_allclose(again[0], [S[1:3, 1:3].mean(), S[1:3, 3].mean()], rtol=1e-12)


@pytest.mark.parametrize(
    "k",
    [
        Gaussian(1.3).over_sets(),
        Gaussian(0.8).over_sets("sum").normalized(),
        2.0 * (0.5 * Gaussian(0.7) + Linear()).over_sets() ** 2,
        Gaussian(1.3).over_sets() * Laplace(2.0).over_sets() + Gaussian(0.9).over_sets(),
    ],
    ids=repr,
)
def test_derivatives(k):
    X, h = drawn(6, n=4), 1e-6
    G = np.random.default_rng(0).normal(size=(len(X),) * 2)

    def value(path, v):
        return np.sum(G * k.clone().set_params(**{path: v})(X))

    at = k.parameters().items()
    slopes = [(value(path, v + h) - value(path, v - h)) / (2 * h) for path, v in at]
    np.testing.assert_allclose(k.gradient(X, G), slopes, rtol=1e-5, atol=1e-7)


def test_derivatives_by_a_bandwidth_a_column():
    X, b, h = drawn(6, n=4), np.array([1.0, 1.3, 2.0]), 1e-6
    G = np.random.default_rng(0).normal(size=(len(X),) * 2)

    def value(widths):
        return np.sum(G * Gaussian(tuple(widths)).over_sets("sum").normalized()(X))

    slopes = [(value(b + h * e) - value(b - h * e)) / (2 * h) for e in np.eye(3)]
    k = Gaussian(tuple(b)).over_sets("sum").normalized()
    np.testing.assert_allclose(k.gradient(X, G), slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("k", [Gaussian(0.8).over_sets(), SubTree().over_sets("sum").normalized()])
def test_the_contract_of_kernels(k):
    items = [["(S a)", "(S (B a))"], ["(S (B b))"], []] if "SubTree" in repr(k) else drawn(8)
    check_kernel(k, items)


def test_distance_is_that_of_mean_features():
    X = drawn(7)
    D = Linear().over_sets().distance(X)
    means = np.array([x.mean(0) if len(x) else np.zeros(3) for x in X])
    np.testing.assert_allclose(
        D, np.linalg.norm(means[:, None] - means, axis=2), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (["abc"], "one of them is no such: it is 'abc' of type str"),
        ([None], "it is None of type NoneType"),
        ([[["a"]]], "must hold numbers"),
        ([[1.0, 2.0]], "got rows of numbers"),
        ([np.ones((2, 2)), np.ones((2, 3))], "bags of rows of 2 and of 3 columns"),
        ([np.ones((2, 2)), np.array([[np.nan, 1.0]])], "contains NaN"),
        ([np.ones((2, 2)), 5], "it is 5 of type int"),
        ([np.ones((2, 2)), np.array(5.0)], r"it is array\(5.\) of type ndarray"),
    ],
)
def test_what_is_no_bag(X, words):
    with pytest.raises(ValueError, match=words):
        Gaussian().over_sets()(X)


def test_settings():
    with pytest.raises(ValueError, match="how must be 'mean' or 'sum', got 'max'"):
        Gaussian().over_sets("max")
    with pytest.raises(ValueError, match="takes a kernel of the members, got 'rbf'"):
        OverSets("rbf")
    assert (
        repr((Gaussian() + 1.0).over_sets("sum"))
        == "(Gaussian() + 1.0 * Constant()).over_sets('sum')"
    )


def test_a_plan_tells_of_the_strings_in_bags():
    k = Spectrum(2, alphabet="dna").over_sets()
    model = KernelRidge(k).fit([["ACGT", "AC"], [], ["GGTA"]], [0.0, 1.0, 2.0])
    assert "words" in model.plan_.settings["values of Spectrum(k=2)"]
    assert value_ways(k, Table([[], []])) == {}
