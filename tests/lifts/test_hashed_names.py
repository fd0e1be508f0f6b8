"""Rows with names: where scikit-learn's FeatureHasher puts them, crossed, and known by name again."""

import pickle
from collections import ChainMap, Counter, OrderedDict
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import murmurhash3_32

import mercer
from mercer.lifts import HashedFeatures
from mercer.ops.threads import limit
from mercer.store import decode, encode
from mercer.text.hashed_rows import canonical_rows, reference

WIDTHS = [1, 2, 7, 8192, 8193, 1_000_003, 2**31 - 1]
NAMES = ["", "a", "b", "=", "a=b", "a=", "\0", "a\0b", "é", "𝄞 &", "city"]


def csr(F):
    F = sp.csr_array(F)
    F.eliminate_zeros()
    F.sort_indices()
    return F


def assert_same(F, expected):
    """The same matrix, but for zeros of names that cancel each other."""
    F, expected = csr(F), csr(expected)
    assert F.shape == expected.shape
    np.testing.assert_array_equal(F.indptr, expected.indptr)
    np.testing.assert_array_equal(F.indices, expected.indices)
    np.testing.assert_allclose(F.data, expected.data, rtol=1e-12)


def drawn(seed, n=120, kinds=3):
    """Rows of strings and numbers: kind 0 all alike, 1 of few layouts, 2 of any."""
    rng = np.random.default_rng(seed)
    values = [
        "x",
        "",
        "=",
        "é\0",
        "12",
        1,
        -2.5,
        0,
        0.0,
        True,
        False,
        np.float32(0.1),
        np.int8(3),
        1e300,
    ]
    rows = []
    for _ in range(n):
        kind = rng.integers(kinds)
        names = NAMES if kind == 2 else NAMES[:4] if kind == 0 else NAMES[: rng.integers(5)]
        chosen = rng.permutation(names)[: rng.integers(len(names) + 1)] if kind == 2 else names
        picks = rng.integers(len(values), size=len(chosen))
        rows.append({str(c): values[v] for c, v in zip(chosen, picks, strict=True)})
    return rows


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("signed", [True, False])
def test_dicts_and_pairs_lie_where_feature_hasher_puts_them(n_features, kinds, signed):
    rows = drawn(n_features % 1000 + kinds, kinds=kinds)
    pairs = [[*row.items(), *list(row.items())[:2]] for row in rows]
    phi = HashedFeatures(n_features, signed=signed)
    for input_type, X in (("dict", rows), ("pair", pairs)):
        peer = FeatureHasher(n_features, input_type=input_type, alternate_sign=signed)
        F = phi.fit(X).transform(X)
        assert sp.issparse(F) == (n_features > 8192)
        assert_same(F, peer.transform(X))
        assert_same(phi.fit_transform(X), F)


@given(st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=3) | st.integers(-9, 9))))
def test_any_names_and_levels_are_those_of_feature_hasher(rows):
    rows = [*rows, {"a": 1}]
    assert_same(HashedFeatures(50).fit_transform(rows), FeatureHasher(50).transform(rows))


def test_records_of_one_layout_are_read_as_any_others():
    rows = [{"a": i % 3, "b": f"x{i % 5}", "c": i / 2 + 1} for i in range(200)]
    mixed = [*rows, *({f"n{i}": 1.0} for i in range(100))]  # too many layouts for columns
    F = HashedFeatures(10_000).fit_transform(mixed)
    assert_same(F, FeatureHasher(10_000).transform(mixed))
    assert_same(F[:200], HashedFeatures(10_000).fit_transform(rows))
    few = [r if i % 2 else dict(list(r.items())[1:]) for i, r in enumerate(rows)]
    assert_same(HashedFeatures(10_000).fit_transform(few), FeatureHasher(10_000).transform(few))


def test_a_name_may_have_strings_and_numbers():
    rows = [{"a": v} for v in ("1", 1, 1.0, True, "x", 2.5, np.str_("x"))]
    assert_same(HashedFeatures(10_000).fit_transform(rows), FeatureHasher(10_000).transform(rows))


def test_columns_of_features_are_canonical_csr():
    F = HashedFeatures(9000).fit_transform(drawn(3, 500))
    assert F.data.all()
    assert F.indices.dtype == F.indptr.dtype == np.int32
    for r in range(F.shape[0]):
        assert (np.diff(F.indices[F.indptr[r] : F.indptr[r + 1]]) > 0).all()


def test_lists_of_strings_count_one_by_one():
    rows = [{"tag": ["a", "b", "a"], "n": 2}, {"tag": ()}, {"tag": {"b"}}, {"tag": "b"}]
    same = [[("tag=a", 2), ("tag=b", 1), ("n", 2)], [], [("tag=b", 1)], [("tag=b", 1)]]
    expected = FeatureHasher(10_000, input_type="pair").transform(same)
    assert_same(HashedFeatures(10_000).fit_transform(rows), expected)


@pytest.mark.parametrize(
    "rows",
    [
        [OrderedDict(a=1), Counter("aab")],
        [ChainMap({"a": 1}), {"b": "x"}],
        ({"a": 1}, {"b": "x"}),
        np.array([{"a": 1}, {"b": "x"}], object),
        pd.Series([{"a": 1}, {"b": "x"}], index=[5, 2]),
        [{"a": Decimal(1)}, {"b": Fraction(1, 2), "c": np.bool_(True)}],
        [{}, {}],
        [{}],
        [[], [("a", 1)]],
        [[]],
        [(("a", 1), ["b", "x"]), []],
        [{"a": 2**1000, "b": -(10**300)}],
    ],
    ids=lambda r: f"{type(r).__name__} {r!r:.40}".replace("\n", " "),
)
def test_rows_of_many_kinds(rows):
    kind = "dict" if isinstance(next(iter(rows)), ChainMap | dict) else "pair"
    plain = [dict(r) if kind == "dict" else r for r in rows]
    plain = (
        [
            {k: float(v) if isinstance(v, Decimal | Fraction) else v for k, v in r.items()}
            for r in plain
        ]
        if kind == "dict"
        else plain
    )
    expected = FeatureHasher(10_000, input_type=kind).transform(plain)
    assert_same(HashedFeatures(10_000).fit_transform(rows), expected)
    assert_same(HashedFeatures(10_000).fit(rows).transform(iter(list(rows))), expected)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"a": 1}, {"b": None}], "'b' must be a finite number or a string, got None in row 1"),
        ([{"a": 1}, {"b": np.nan}], "'b' must be a finite number or a string, got nan in row 1"),
        ([{"a": 1}, {"a": -np.inf}], "'a' must be a finite number or a string, got -inf in row 1"),
        ([{"a": 10**400}], "'a' must be a finite number or a string, got 1000"),
        ([{"a": 1}, {"a": "x", "b": 10**400}], "'b' must be a finite number.*in row 1"),
        ([{"a": b"x"}], "'a' must be a finite number or a string, got b'x'"),
        ([{"a": ["x", 1]}], r"'a' must be a finite number or a string, got \['x', 1\]"),
        ([{"a": {"b": 1}}], "'a' must be a finite number or a string, got {'b': 1}"),
        ([{"a": 1j}], "'a' must be a finite number or a string, got 1j"),
        ([{1: 2.0}], "Names must be strings, got 1"),
        ([[("a", 1)], [(["b"], 1)]], "row 1 is .*; give pairs with a string first"),
        ([{"a": 1}, {None: "x"}], "Names must be strings, got None"),
        ([{"\ud800": 1}], "no UTF-8"),
        ([{"a": "\ud800"}], "no UTF-8"),
        ([{"a": 1}, [("a", 1)]], "row 1 is list"),
        ([{"a": 1}, None], "row 1 is NoneType"),
        ([[("a", 1)], {"a": 1}], "row 1 is {'a': 1}"),
        ([[("a", 1)], ["ab"]], r"row 1 is \['ab'\]"),
        ([[("a", 1)], [("a", 1, 2)]], r"row 1 is \[\('a', 1, 2\)\]"),
        ([[("a", 1e308), ("a", 1e308)]], "sums are not finite"),
    ],
)
def test_what_is_no_row_is_refused(rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        HashedFeatures(1).fit_transform(rows)


@pytest.mark.parametrize("X", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_no_rows_are_refused(X):
    with pytest.raises(ValueError, match=r"Expected 2D array|0 sample"):
        HashedFeatures(4).fit(X)


def test_names_have_31_bits_of_columns():
    with pytest.raises(ValueError, match=r"n_features must be from 1 to 2\*\*31 - 1"):
        HashedFeatures(2**31).fit([{"a": 1}])


def test_the_seed_is_that_of_the_hash():
    rows = [{"a": 1, "b": "x"}]
    names, values = ["a", "b=x"], [1.0, 1.0]
    F = HashedFeatures(10_000, random_state=7).fit_transform(rows)
    for name, value in zip(names, values, strict=True):
        h = murmurhash3_32(name, 7)
        assert F[0, abs(h) % 10_000] == value * (1 if h >= 0 else -1)
    apart = HashedFeatures(10_000, random_state=np.random.default_rng(3)).fit(rows)
    again = HashedFeatures(10_000, random_state=np.random.default_rng(3)).fit(rows)
    assert_same(apart.transform(rows), again.transform(rows))


def test_several_entries_keep_inner_products_on_average():
    rows = [{"a": 1, "b": -2}, {"a": 3, "c": "x"}]
    F = [HashedFeatures(12, 4, random_state=seed).fit_transform(rows) for seed in range(300)]
    G = np.array([f @ f.T for f in F])
    assert all(
        (np.abs(f[:, block]).sum(1) > 0).any()
        for f in F[:20]
        for block in np.split(np.arange(12), 4)
    )
    error = np.abs(G.mean(0) - [[5, 3], [3, 10]])
    assert (error < 5 * G.std(0) / np.sqrt(300) + 1e-12).all()
    phi = HashedFeatures(12, 4).fit(rows)
    assert sum(len(phi.names(c)) for c in range(12)) == 3 * 4  # each of three names in four blocks


@pytest.mark.parametrize("n_features", [16, 20_000])
def test_inner_products_without_the_features(n_features):
    rows = drawn(5, 40, kinds=2)
    rows = [{k: v for k, v in r.items() if str(v) != "1e+300"} for r in rows]
    phi = HashedFeatures(n_features).fit(rows)
    w = np.random.default_rng(0).normal(size=n_features)
    np.testing.assert_allclose(phi.inner(rows, w), phi.transform(rows) @ w, atol=1e-12)


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    rows = [{f"n{k}": float(v) for k, v in enumerate(rng.normal(size=3))} for _ in range(20_000)]
    out = []
    for n in (1, 2, 7):
        with limit(n):
            out.append(HashedFeatures(2, signed=False).fit_transform(rows))
    np.testing.assert_array_equal(out[0], out[1])
    np.testing.assert_array_equal(out[0], out[2])


@pytest.mark.parametrize("s", [1, 3])
@pytest.mark.parametrize("k", [1, 60, 5000, 20_000])
def test_rows_are_those_of_the_reference(s, k):
    rng = np.random.default_rng(k)
    sizes = rng.integers(0, 9, 9000)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    codes = rng.integers(0, k, indptr[-1]).astype(np.int32)
    values, factors = rng.normal(size=len(codes)), rng.choice([-1.0, 1.0], (s, k))
    values[rng.random(len(codes)) < 0.3] = 1.0
    columns = rng.integers(0, max(1, k // 2), (s, k)).astype(np.int32)
    data, indices, out = canonical_rows(indptr, codes, values, columns, factors)
    rows = [
        list(zip(codes[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in pairwise(indptr)
    ]
    expected = reference(rows, columns, factors)
    assert np.diff(out).tolist() == [len(row) for row in expected]
    assert indices.tolist() == [c for row in expected for c in row]
    assert data.tolist() == [v for row in expected for v in row.values()]


# names back
def test_names_of_a_feature_come_back():
    rows = [{"city": "Oslo", "age": 3}, {"city": "Oslo", "age": 0}, {"city": "Rome"}]
    phi = HashedFeatures(2).fit(rows)
    found = {name: (count, sign) for c in range(2) for name, count, sign in phi.names(c)}
    assert {name: count for name, (count, _) in found.items()} == {
        "city=Oslo": 2,
        "city=Rome": 1,
        "age": 1,
    }
    for c in range(2):
        for name, _, sign in phi.names(c):
            assert FeatureHasher(2).transform([{name: 1}]).toarray()[0, c] == sign
    assert phi.collisions_.names == 1.0
    assert HashedFeatures(2**20).fit(rows).collisions_ == (0.0, 0.0)
    for again in (decode(*encode(phi)), pickle.loads(pickle.dumps(phi))):
        assert [again.names(c) for c in range(2)] == [phi.names(c) for c in range(2)]
        np.testing.assert_array_equal(again.transform(rows), phi.transform(rows))
    assert phi.names_.merge(again.names_).names(1)[0][:2] == ("city=Oslo", 4)
    assert not hasattr(clone(phi), "names_")


def test_names_within_a_memory():
    rows = [{"id": f"{i}", "city": "Oslo"} for i in range(500)]
    phi = HashedFeatures(1, memory_limit=1000).fit(rows)
    assert phi.names(0)[0] == ("city=Oslo", 500 - phi.names_.error_bound, phi.names(0)[0][2])
    assert 0 < phi.names_.error_bound <= 1000 / 28
    none = HashedFeatures(8, memory_limit=0).fit(rows)
    assert_same(none.transform(rows), HashedFeatures(8).fit_transform(rows))
    with pytest.raises(AttributeError, match="memory_limit=0 kept no names"):
        none.names(0)
    with pytest.raises(ValueError, match="memory_limit"):
        HashedFeatures(8, memory_limit=-1).fit(rows)


def test_numbers_have_no_names():
    phi = HashedFeatures(4).fit(np.eye(3))
    assert not hasattr(phi, "collisions_")
    with pytest.raises(AttributeError, match="rows with names alone"):
        phi.names(0)
    with pytest.raises(ValueError, match="column"):
        HashedFeatures(4).fit([{"a": 1}]).names(4)


def test_names_and_numbers_are_not_taken_for_each_other():
    numbers, named = HashedFeatures(8).fit(np.eye(3)), HashedFeatures(8).fit([{"a": 1}])
    with pytest.raises(ValueError, match="fitted to 3 columns of numbers"):
        numbers.transform([{"a": 1}])
    with pytest.raises(ValueError, match="fitted to rows with names"):
        named.transform(np.eye(3))
    assert named.fit(np.eye(3)).transform(np.eye(3)).shape == (3, 8)
    assert not hasattr(named, "names_")
    assert (
        HashedFeatures(8)
        .fit(pd.DataFrame({"a": ["x"]}))
        .fit([{"a": 1}])
        .transform([[("b", 1)]])
        .any()
    )


# files of before
def test_dicts_of_a_file_of_before_lie_where_they_did():
    phi = mercer.load(Path(__file__).parent / "old" / "hashed-dicts.mercer")
    rows = [
        {"a": 2.0, "city": "Oslo"},
        {"city": "Bergen", "b": -1.5},
        {},
        {"a": 3, "b": 1, "c": True},
    ]
    before = np.zeros((4, 8))
    before[0, [0, 3, 6]] = -1, -2, 3
    before[1, [1, 3, 6, 7]] = 1.5, -1, 1, 1.5
    before[3, [1, 3, 6, 7]] = -1, -2, 3, -2
    for model in (phi, decode(*encode(phi))):
        np.testing.assert_allclose(model.transform(rows), before / np.sqrt(2), rtol=1e-12)
    new = phi.fit(rows)
    assert np.abs(new.transform(rows) - before / np.sqrt(2)).max() > 0.1
    assert new.names_.occurrences == 2 * 7


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[1, 2], [3]], "row 1 is of length 1, row 0 of length 2"),
        ([np.ones(2), np.ones(1)], "row 1 is of length 1"),
        ([[1.0, [2]], [3, 4]], r"row 0 holds \[2\]"),
        ([[1, 2], [3, "x"]], "row 1 holds 'x'"),
        ([["a", "b"], ["c"]], "row 0 holds 'a'"),
        (["a", "b"], "row 0 is 'a'"),
        (np.array([[1, 2], [3, "x"]], object), "row 1 holds 'x'"),
        (np.array([["1", "b"]]), "row 0 holds '1'"),
        (np.array([[1, 2], [3]], object), "row 1 is of length 1, row 0 of length 2"),
        (np.array(["a", "b"], object), "row 0 is 'a'"),
        ([{"a"}], "row 0 is {'a'}"),
        ([None], "row 0 is None"),
        ([], "0 rows"),
        (iter([]), "0 rows"),
        ({}, "one dict"),
        ({"a": 1}, "one dict.*list of dicts"),
        ("abc", "one text"),
        (None, "got NoneType"),
        (pd.DataFrame(), "without columns"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_what_is_no_table_is_refused_in_a_sentence(X, match):
    with pytest.raises(ValueError, match=match) as refused:
        HashedFeatures(16).fit_transform(X)
    assert str(refused.value).endswith(".")
    assert "give" in str(refused.value)
