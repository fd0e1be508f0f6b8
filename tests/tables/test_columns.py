"""The treatment of tables: a messy file, missing values, roles, streams, bounded memory and
state."""

import gc
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mercer.ops.threads import limit
from mercer.tables import Columns, DataError, open_source
from tests.tables.examples import N, fitted, table, treatment

MESSY = Path(__file__).with_name("messy.csv")


@pytest.fixture(scope="module")
def messy():
    source = open_source(MESSY)
    return source, Columns("Preis").fit(source)


def test_a_messy_file(messy):
    source, found = messy
    assert (
        str(source.sniffed)
        == 'semicolon between fields, quote ", a header row, cp1252, decimal comma, thousands marked by "."'
    )
    assert (found.task_, found.n_rows_, found.n_dropped_) == ("regression", 175, 5)
    assert {t.name: t.kind for t in found.treatments_} == {
        "Nr": "id",
        "Objekt": "id",
        "Ort": "category",
        "Größe": "number",
        "Baujahr": "number",
        "Grundstück": "number",
        "verkauft am": "date",
        "Garage": "boolean",
        "Notiz": "category",
        "leer": "empty",
        "Land": "constant",
        "Klicks": "number",
        "Preis netto": "leak",
        "Größe (Kopie)": "excluded",
        "Preis": "target",
    }
    assert found.warnings_ == (
        '5 of 180 rows have no value of the target "Preis" and were left out.',
        '"Nr" looks like an identifier (a running number of the rows) and was left out.',
        '"Objekt" looks like an identifier (a different text in every row) and was left out.',
        '"Größe" holds numbers, but 2 of its values are text ("k.A."); they count as missing.',
        '"Preis netto" gives the target "Preis" away (each can be computed from the other in the sample) and was left out.',
        '"Größe (Kopie)" is a copy of "Größe" and was left out.',
        'columns left out since they say nothing: "Land" with one value in every row and "leer" without values.',
    )


def test_a_messy_file_in_numbers(messy):
    source, found = messy
    rows = found.transform(next(source.batches()))
    assert rows.X.dtype == np.float32
    assert rows.X.flags.c_contiguous
    assert rows.X.shape == (175, len(found.feature_names_)) == (len(rows), len(found.origin_))
    assert np.isfinite(rows.X).all()
    assert rows.y[0] == 437191.83
    assert rows.n_unread == {"Größe": 2}
    names = [t.name for t in found.treatments_]
    assert all(
        names[i] in feature for i, feature in zip(found.origin_, found.feature_names_, strict=True)
    )
    size = rows.X[:, found.feature_names_.index("Größe")]
    assert abs(size.mean()) < 0.05
    assert 0.9 < size.std() < 1.1


def test_every_column_has_a_plain_sentence(messy):
    for t in messy[1].treatments_:
        assert t.action[0].isupper() or t.action[0].isdigit()
        assert t.action.endswith(".")
        assert json.dumps(t.as_dict())


def test_missing_numbers_take_the_median_and_raise_an_indicator():
    column = np.where(np.arange(N) % 10 == 0, np.nan, np.arange(N) % 7)
    found, seen = fitted(column)
    assert seen.outputs == ("x", "x missing")
    assert seen.n_missing == N // 10
    assert (
        seen.action
        == "Standardised number; 40 missing values take the median 3 and raise an indicator."
    )
    X = found.transform(table(x=column)).X[:, [found.feature_names_.index(n) for n in seen.outputs]]
    assert np.allclose(X[::10, 1], 2**0.5)
    assert not X[1, 1]
    assert np.allclose(X[0, 0], X[3, 0])


def test_a_value_that_is_there_or_not():
    _, seen = fitted(pa.array(["x", None] * (N // 2)))
    assert (seen.kind, seen.outputs) == ("boolean", ("x missing",))


def test_rare_levels_are_pooled_and_levels_are_capped():
    rng = np.random.default_rng(0)
    found, seen = fitted(
        pa.array([f"town{int(k)}" for k in rng.exponential(20, N)]), max_categories=5
    )
    assert [o for o in seen.outputs if "=" in o][-1] == "x = other"
    assert len(seen.outputs) == 7
    assert "5 frequent values have a feature each" in seen.action
    X = found.transform(table(x=["never seen"] * N)).X
    assert (X[:, found.feature_names_.index("x = other")] == 1).all()
    _, rare = fitted(pa.array([f"t{i // 2}" for i in range(N)]))
    assert rare.outputs == ()
    assert "every value is rare" in rare.action.lower()


def test_wrong_settings():
    with pytest.raises(
        ValueError, match="task must be one of auto, regression, classification; it is 'guess'"
    ):
        Columns("y", task="guess")
    with pytest.raises(ValueError, match="max_categories must be at least 1; it is 0"):
        Columns("y", max_categories=0)
    with pytest.raises(
        TypeError, match=r"a Source, a pyarrow\.Table or record batches are expected, not int"
    ):
        Columns("y").fit(3)
    with pytest.raises(DataError, match="there are no rows to learn from"):
        Columns("y").fit([])


def test_roles():
    days = np.datetime64("2020-01-01") + np.arange(N)
    data = table(
        key=[f"k{i}" for i in range(N)],
        w=np.where(np.arange(N) == 3, np.nan, 2.0),
        g=np.arange(N) // 4,
        t=days.astype(str),
    )
    found = Columns("y", id="key", weight="w", group="g", time_column="t").fit(data)
    kinds = {t.name: t.kind for t in found.treatments_}
    assert kinds == {
        "a": "number",
        "b": "number",
        "key": "id",
        "w": "weight",
        "g": "group",
        "t": "time",
        "y": "target",
    }
    rows = found.transform(data)
    assert len(rows) == N - 1
    assert rows.id[3].as_py() == "k4"
    assert (rows.weight == 2).all()
    assert len(np.unique(rows.group)) == N // 4
    assert rows.time[0] == days[0].astype("datetime64[s]").astype(float)
    assert treatment(found, "t").outputs[0] == "t sin of year"
    assert not any("elapsed" in name for name in found.feature_names_)


def test_groups_hash_alike_whatever_their_type():
    data = table(g=np.arange(N) // 4)
    found = Columns("y", group="g").fit(data)
    as_text = data.set_column(2, "g", pa.array([str(i // 4) for i in range(N)]))
    assert np.array_equal(found.transform(data).group, found.transform(as_text).group)


def mixed(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    words = pa.array([f"w{int(k)}" for k in rng.exponential(8, n)])
    gaps = pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(0, 2, n)))
    return table(
        seed,
        n,
        words=words,
        gaps=gaps,
        day=(np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype(str),
    )


def test_a_stream_in_any_batches_and_threads_gives_the_same():
    data = mixed(12_000)
    whole = Columns("y").fit(data)
    for size in (500, 1237, 12_000):
        assert Columns("y").fit(iter(data.to_batches(max_chunksize=size))).state() == whole.state()
    with limit(1):
        assert Columns("y").fit(data).state() == whole.state()
    parts = [whole.transform(batch).X for batch in data.to_batches(max_chunksize=777)]
    assert np.array_equal(np.vstack(parts), whole.transform(data).X)


def test_state_survives_json(messy):
    source, found = messy
    back = Columns.from_state(json.loads(json.dumps(found.state())))
    assert back.state() == found.state()
    batch = next(source.batches())
    assert np.array_equal(back.transform(batch).X, found.transform(batch).X)
    assert back.drift([batch]) == found.drift([batch])
    assert (back.task_, back.classes_, back.feature_names_) == (
        found.task_,
        found.classes_,
        found.feature_names_,
    )


def test_the_schema_of_new_data_is_checked():
    data = mixed()
    found = Columns("y", exclude=["b"]).fit(data)
    report = found.check(
        data.drop_columns(["y", "b"]).append_column("new", pa.array([0] * 3000)).schema
    )
    assert (report.missing, report.extra, report.coerced) == (("b", "y"), ("new",), ())
    assert not found.check(
        data.set_column(0, "a", pa.array(["1"] * 3000)).schema
    ).coerced  # as csv files hold numbers
    changed = found.check(
        data.set_column(0, "a", pa.array(np.full(3000, "2024-01-31", "datetime64[D]"))).schema
    )
    assert changed.coerced == (("a", "number", "date"),)
    assert changed.sentences() == (
        '"a" is date, it was number in training; its values are converted.',
    )
    with pytest.raises(
        DataError, match=r'the table lacks "gaps", which the model uses; did you mean "gap"\?'
    ):
        found.check(data.rename_columns(["a", "b", "words", "gap", "day", "y"]).schema)
    with pytest.raises(
        DataError,
        match=r'the table lacks "a", "gaps", which the model uses; give a table with the columns of',
    ):
        found.transform(data.drop_columns(["a", "gaps"]))


def test_a_saved_treatment_does_not_carry_the_texts():
    notes = ["thank you very much for your message"] * 50 + [
        f"a secret of its own, number {i}" for i in range(N - 50)
    ]
    found = Columns("y").fit(table(note=notes))
    assert treatment(found, "note").outputs[0] == "note = thank you very much for your message"
    assert "secret" not in json.dumps(found.state())


def test_memory_stays_bounded_however_many_rows():
    """The pass holds counts and a sample, never the rows: of 45 more batches not a twentieth,
    between batches, where nothing is under way."""

    def batches(count):
        for i in range(count):
            rng = np.random.default_rng(i)
            keys = pa.array([f"{i}-{j}" for j in range(2000)])
            yield pa.record_batch(
                {"x": rng.normal(size=2000), "key": keys, "y": rng.normal(size=2000)}
            )

    def held(count):
        """Bytes of Arrow's memory, the median of the last ten batches: a thread may free late."""
        gc.collect()  # what other tests left would go on the way
        before, seen = pa.total_allocated_bytes(), []

        def watched():
            for batch in batches(count):
                yield batch
                seen.append(pa.total_allocated_bytes() - before)

        with limit(1):
            Columns("y").fit(watched())
        return float(np.median(seen[-10:]))

    more = 45 * next(batches(1)).nbytes
    assert held(60) - held(15) < more / 20


def test_a_column_that_cannot_be_read_at_all_is_refused():
    found = Columns("y").fit(mixed())
    watch = found.watch().add(mixed())
    watch.check()
    for cells in (["x1"] * 3000, ["x1", None] * 1500):
        watch = found.watch().add(mixed().set_column(0, "a", pa.array(cells)))
        with pytest.raises(
            DataError,
            match='no value of "a" reads as a number, which it was in training: "x1", for one',
        ):
            watch.check()
    found.watch().add(mixed().set_column(0, "a", pa.array(["x1"] * 2999 + ["1"]))).check()
    found.watch().add(
        mixed().set_column(0, "a", pa.nulls(3000, pa.float64()))
    ).check()  # missing is not unreadable


def test_columns_that_say_nothing_are_named_in_one_sentence():
    found = Columns("y").fit(table(c=[5] * N, d=["x"] * N, e=pa.nulls(N, pa.string())))
    assert found.warnings_ == (
        'columns left out since they say nothing: "c", "d" with one value in every row and "e" without values.',
    )


BLAMED = [
    (
        dict(weight="w"),
        dict(w=["red", "blue"] * (N // 2)),
        r'the weight "w" holds no numbers but values such as "red"',
    ),
    (dict(weight="w"), dict(w=[0.0] * N), r'the weight "w" is 0 in every row'),
    (dict(weight="w"), dict(w=pa.nulls(N, pa.float64())), r'no row with a target has a weight "w"'),
    (
        dict(time_column="w"),
        dict(w=["red", "blue"] * (N // 2)),
        r'the time column "w" holds neither numbers nor dates',
    ),
]


@pytest.mark.parametrize(
    ("settings", "more", "sentence"), BLAMED, ids=["text", "zero", "missing", "time"]
)
def test_the_column_at_fault_is_named(settings, more, sentence):
    with pytest.raises(DataError, match=sentence):
        Columns("y", **settings).fit(table(**more))


def test_rows_left_out_are_told_by_their_reason():
    data = table(w=[None] * 3 + [1.0] * (N - 3))
    y = data.column("y").to_numpy().copy()
    y[10:12], y[20] = np.inf, np.nan
    for column in (
        pa.array(y),
        pa.array([str(v) for v in y]),
    ):  # as numbers, and as a csv file has them
        found = Columns("y", weight="w").fit(data.set_column(3, "y", column))
        assert found.warnings_[:3] == (
            '1 of 400 rows has no value of the target "y" and was left out.',
            '2 of 400 rows have an infinite value of the target "y" and were left out.',
            '3 of 400 rows have no weight "w" and were left out.',
        )
        assert (found.n_rows_, found.n_dropped_) == (N - 6, 6)
