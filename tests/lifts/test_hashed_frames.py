"""Frames: levels of categories and numbers by the name of their column, and crosses of them."""

import datetime
import sys
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

from mercer.lifts import HashedFeatures
from mercer.store import decode, encode
from tests.lifts.test_hashed_names import assert_same

N = 10_000
CITIES = ["Oslo", "Rome", None, "Oslo", "", "07", "é\0="]
JOBS = ["cook", None, "cook", "smith", "cook", "smith", "cook"]
AGES = [30.0, 0.0, 41.5, -2.0, 1e6, 7.0, 1.0]
MEMBERS = [True, False, True, True, False, True, False]


def plain(names=("city", "job", "age", "member")):
    """The same rows as dicts, without what is missing."""
    columns = dict(city=CITIES, job=JOBS, age=AGES, member=map(str, MEMBERS))
    rows = zip(*(columns[name] for name in names), strict=True)
    return [{k: v for k, v in zip(names, row, strict=True) if v is not None} for row in rows]


def expected(rows, n_features=N):
    return FeatureHasher(n_features).transform(rows)


def pandas_frame(kind):
    if kind == "str" and pd.__version__ < "3":
        kind = "string"  # where "str" turns what is missing into a word
    made = pd.DataFrame({"city": CITIES, "job": JOBS, "age": AGES, "member": MEMBERS})
    if kind == "nullable":
        return made.astype({"age": "Float64", "member": "boolean"})
    if kind == "arrow":
        text = pd.ArrowDtype(pa.string())
        return made.astype({"city": text, "job": text, "age": pd.ArrowDtype(pa.float64())})
    return made.astype({"city": kind, "job": kind})


def arrow_table(kind):
    types = {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view()}
    if kind == "dictionary":
        texts = [pa.array(v).dictionary_encode() for v in (CITIES, JOBS)]
    else:
        texts = [pa.array(v, types.get(kind, pa.string())) for v in (CITIES, JOBS)]
    table = pa.table({"city": texts[0], "job": texts[1], "age": AGES, "member": MEMBERS})
    if kind == "chunked":
        return pa.concat_tables([table[:2], table[2:3], table[3:]])
    if kind == "chunked dictionary":
        parts = [
            pa.table(
                {
                    "city": pa.array(CITIES[a:b]).dictionary_encode(),
                    "job": texts[1][a:b],
                    "age": AGES[a:b],
                    "member": MEMBERS[a:b],
                }
            )
            for a, b in ((0, 2), (2, 7))
        ]
        return pa.concat_tables(parts)
    return pa.concat_tables([table, table])[7:] if kind == "sliced" else table


FRAMES = {
    **{
        f"pandas {k}": (pandas_frame, k) for k in ("str", "object", "category", "nullable", "arrow")
    },
    **{
        f"arrow {k}": (arrow_table, k)
        for k in (
            "string",
            "large",
            "view",
            "dictionary",
            "chunked",
            "chunked dictionary",
            "sliced",
        )
    },
}


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES)
def test_frames_of_any_kind_are_dicts_without_what_is_missing(made):
    frame = made[0](made[1])
    phi = HashedFeatures(N).fit(frame)
    assert_same(phi.transform(frame), expected(plain()))
    assert phi.categories_ == ("city", "job", "member")
    assert phi.feature_names_in_.tolist() == ["city", "job", "age", "member"]
    assert len(phi.get_feature_names_out()) == N
    assert_same(phi.transform(plain()), expected(plain()))  # dicts, where a frame was fitted
    assert_same(HashedFeatures(N).fit(plain()).transform(frame), expected(plain()))


def test_polars_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"city": CITIES, "job": JOBS, "age": AGES, "member": MEMBERS})
    for f in (frame, frame.with_columns(polars.col("city").cast(polars.Categorical))):
        assert_same(HashedFeatures(N).fit_transform(f), expected(plain()))


@pytest.mark.parametrize("kind", ["str", "object", "category", "nullable"])
def test_arrow_is_not_needed(kind, monkeypatch):
    frame = pandas_frame(kind)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(HashedFeatures(N).fit_transform(frame), expected(plain()))


def test_a_dictionary_may_hold_what_is_missing():
    levels = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 2]), pa.array(["x", None, "y"])
    )
    F = HashedFeatures(N).fit_transform(pa.table({"c": levels}))
    assert_same(F, expected([{"c": "x"}, {}, {}, {"c": "y"}, {"c": "y"}]))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.uint32()])
def test_places_in_a_dictionary_may_be_of_any_kind(kind):
    codes = pa.array([0, None, 1], kind)
    X = pa.table({"a": pa.DictionaryArray.from_arrays(codes, ["x", "y"]), "n": [1, 2, 3]})
    rows = [{"a": "x", "n": 1}, {"n": 2}, {"a": "y", "n": 3}]
    assert_same(HashedFeatures(32).fit_transform(X), FeatureHasher(32).transform(rows))


def test_digits_are_categories_as_strings_and_numbers_as_numbers():
    codes = ["01", "1", "1.0", "nan"]
    F = HashedFeatures(N).fit_transform(pd.DataFrame({"zip": codes}))
    assert_same(F, expected([{"zip": c} for c in codes]))
    levels = pd.DataFrame({"zip": pd.Categorical([1, 2, 1, None], categories=[7, 2, 1])})
    assert_same(
        HashedFeatures(N).fit_transform(levels),
        expected([{"zip": "1"}, {"zip": "2"}, {"zip": "1"}, {}]),
    )
    F = HashedFeatures(N).fit_transform(pd.DataFrame({"zip": [1, 2], "c": ["x", "y"]}))
    assert_same(F, expected([{"zip": 1, "c": "x"}, {"zip": 2, "c": "y"}]))


def test_levels_may_be_anything_that_prints():
    levels = [
        pd.cut([1, 5, 9], [0, 4, 10]),
        pd.Categorical([0.5, None, 2.0]),
        pd.Categorical([True, False, None]),
    ]
    frame = pd.DataFrame(dict(enumerate(levels)))
    rows = [
        {"0": "(0, 4]", "1": "0.5", "2": "True"},
        {"0": "(4, 10]", "2": "False"},
        {"0": "(4, 10]", "1": "2.0"},
    ]
    phi = HashedFeatures(N).fit(frame)
    assert_same(phi.transform(frame), expected(rows))
    assert phi.feature_names_in_.tolist() == ["0", "1", "2"]
    with pytest.raises(ValueError, match="same name"):
        HashedFeatures(N).fit(pd.DataFrame([["x", "y"]], columns=[1, "1"]))


@pytest.mark.parametrize("n_features", [16, 20_000])
def test_frames_of_numbers_alone_are_hashed_by_position_as_ever(n_features):
    X = np.random.default_rng(0).normal(size=(9, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    phi = HashedFeatures(n_features).fit(frame)
    F, G = phi.transform(frame), HashedFeatures(n_features).fit_transform(X)
    np.testing.assert_array_equal(*(f.toarray() if sp.issparse(f) else f for f in (F, G)))
    assert not hasattr(phi, "names_")
    objects = HashedFeatures(n_features).fit(frame.astype(object)).transform(frame)
    np.testing.assert_array_equal(*(f.toarray() if sp.issparse(f) else f for f in (objects, G)))


def test_the_order_of_columns_does_not_matter():
    frame = pandas_frame("str")
    phi = HashedFeatures(N).fit(frame)
    assert_same(phi.transform(frame[["age", "member", "job", "city"]]), phi.transform(frame))
    one = phi.transform(frame[3:4])
    assert_same(one, phi.transform(frame)[3:4])


def test_a_batch_may_lack_all_levels():
    frame = pandas_frame("object")
    phi = HashedFeatures(N).fit(frame)
    gone = frame.assign(city=None)
    assert_same(phi.transform(gone), expected(plain(("job", "age", "member"))))
    unknown = pa.table({"city": pa.nulls(1), "job": ["new"], "age": [1], "member": [None]})
    assert_same(phi.transform(unknown), expected([{"job": "new", "age": 1}]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            dict(age=[1.0, np.nan] + [0.0] * 5),
            "'age' of numbers has a missing value .NaN. in row 1",
        ),
        (dict(age=[1.0, 2, -np.inf] + [0.0] * 4), "'age' of numbers has infinity in row 2"),
        (
            dict(age=pd.array([1, None] * 3 + [1], "Int64")),
            "'age' of numbers has a missing value .NaN. in row 1",
        ),
        (dict(age=["1"] * 7), "'age' held numbers at `fit`, and is String now"),
        (dict(city=range(7)), "'city' held categories at `fit`, and numbers now"),
        (
            dict(city=pd.Series([1, "x"] * 3 + [None], dtype=object)),
            "'city' holds int, str; give strings alone",
        ),
        (dict(city=[datetime.date(2020, 1, 1)] * 7), "'city' holds"),
        (dict(city=pd.Timestamp("2020-01-01")), "'city' holds Datetime"),
        (dict(new=1), "'new' is in one of them alone"),
    ],
)
def test_what_a_column_cannot_be_is_refused(change, sentence):
    frame = pandas_frame("str")
    phi = HashedFeatures(N).fit(frame)
    with pytest.raises(ValueError, match=sentence):
        phi.transform(frame.assign(**change))


def test_other_frames_that_cannot_be():
    frame = pandas_frame("str")
    phi = HashedFeatures(N).fit(frame)
    with pytest.raises(ValueError, match="'job' is in one of them alone"):
        phi.transform(frame.drop(columns="job"))
    with pytest.raises(ValueError, match="0 rows"):
        phi.transform(frame[:0])
    with pytest.raises(ValueError, match="0 rows"):
        HashedFeatures(N).fit(frame[:0])
    with pytest.raises(ValueError, match="same name"):
        phi.transform(pd.concat([frame, frame], axis=1))


# crosses
def crossed(rows, *crosses):
    """The rows with their crosses as names of their own."""

    def entries(row, name):
        value = row.get(name, [])
        if isinstance(value, list):
            return [(f"{name}={v}", 1.0) for v in value]
        return [(f"{name}={value}", 1.0)] if isinstance(value, str) else [(name, value)]

    out = []
    for row in rows:
        pairs = [entry for name in row for entry in entries(row, name)]
        for cross in crosses:
            products = product(*(entries(row, name) for name in cross))
            pairs += [
                (" & ".join(n for n, _ in p), float(np.prod([v for _, v in p]))) for p in products
            ]
        out.append(pairs)
    return FeatureHasher(N, input_type="pair").transform(out)


CROSSES = [[("city", "job")], [("job", "city"), ("age", "job")], [("member", "age", "city")]]


@pytest.mark.parametrize("crosses", CROSSES, ids=str)
@pytest.mark.parametrize("kind", ["str", "category"])
def test_crosses_of_columns_are_names_more(crosses, kind):
    phi = HashedFeatures(N, crosses=crosses)
    assert_same(phi.fit_transform(pandas_frame(kind)), crossed(plain(), *crosses))
    assert_same(phi.fit_transform(plain()), crossed(plain(), *crosses))
    assert_same(phi.fit_transform([list(r.items()) for r in plain()]), crossed(plain(), *crosses))
    again = decode(*encode(phi))
    assert_same(again.transform(plain()), crossed(plain(), *crosses))


def test_crosses_of_lists_and_repeated_names_are_all_products():
    rows = [
        {"tag": ["a", "b"], "n": 3, "m": -2},
        {"tag": ["a"]},
        {},
        {"n": 1.5, "tag": ["c", "a", "b"]},
    ]
    crosses = [("tag", "n"), ("n", "m"), ("m", "tag", "n")]
    assert_same(HashedFeatures(N, crosses=crosses).fit_transform(rows), crossed(rows, *crosses))
    phi = HashedFeatures(N, crosses=[("n", "tag")]).fit([[("n", 1), ("n", 2), ("tag", "a")]])
    names = [
        name
        for c in np.flatnonzero(phi.transform([{"n": 1, "tag": "a"}]).toarray())
        for name in phi.names(c)
    ]
    assert sorted(names)[1][:2] == ("n & tag=a", 2)


def test_frames_of_numbers_are_crossed_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 0.0]})
    phi = HashedFeatures(N, crosses=[("a", "b")])
    rows = frame.to_dict("records")
    assert_same(phi.fit_transform(frame), crossed(rows, ("a", "b")))
    assert phi.categories_ == ()


@pytest.mark.parametrize(
    ("crosses", "sentence"),
    [
        ("ab", "crosses must be tuples"),
        (None, "crosses must be tuples"),
        (5, "crosses must be tuples"),
        (["ab"], "crosses must be tuples"),
        ([("a",)], "crosses must be tuples"),
        ([("a", "a")], "crosses must be tuples"),
        ([("a", 1)], "crosses must be tuples"),
        ([("a", "c")], "crosses names 'c'"),
    ],
)
def test_crosses_that_cannot_be_are_refused(crosses, sentence):
    phi = HashedFeatures(N, crosses=crosses)
    for X in ([{"a": 1, "b": 2}], pd.DataFrame({"a": ["x"], "b": ["y"]})):
        with pytest.raises(ValueError, match=sentence):
            phi.fit(X)


def test_crosses_need_names():
    with pytest.raises(ValueError, match="needs rows with names"):
        HashedFeatures(N, crosses=[("a", "b")]).fit(np.eye(3))
    phi = HashedFeatures(N, crosses=[("a", "b")]).fit([{"a": 1, "b": 2}])
    assert_same(phi.transform([{"a": 1}]), expected([{"a": 1}]))  # a row may lack them


def test_names_of_frames_come_back():
    phi = HashedFeatures(1, crosses=[("city", "job")]).fit(pandas_frame("str"))
    found = {name: count for name, count, _ in phi.names(0)}
    assert found["city=Oslo"] == found["job=smith"] == 2
    assert found["age"] == 6  # but for a zero
    assert found["city=Oslo & job=cook"] == 1
    assert "city=None" not in found
