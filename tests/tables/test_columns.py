"""The treatment of tables: a messy file, every kind of column, targets, roles, streams, drift and state."""
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mercer.ops.threads import limit
from mercer.tables import Columns, DataError, open_source

MESSY = Path(__file__).with_name("messy.csv")
N = 400


def table(seed=0, n=N, **more):
    """Two honest columns, a target, and what a test adds."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    return pa.table({"a": a, "b": b, **more, "y": a + np.sin(b) + 0.1 * rng.normal(size=n)})


def treatment(found, name):
    return next(t for t in found.treatments_ if t.name == name)


def fitted(column, **settings):
    """The treatment of a column `x` beside two honest ones."""
    found = Columns("y", **settings).fit(table(x=column))
    return found, treatment(found, "x")


@pytest.fixture(scope="module")
def messy():
    source = open_source(MESSY)
    return source, Columns("Preis").fit(source)


def test_a_messy_file(messy):
    source, found = messy
    assert str(source.sniffed) == 'semicolon between fields, quote ", a header row, cp1252, decimal comma, thousands marked by "."'
    assert (found.task_, found.n_rows_, found.n_dropped_) == ("regression", 175, 5)
    assert {t.name: t.kind for t in found.treatments_} == {
        "Nr": "id", "Objekt": "id", "Ort": "category", "Größe": "number", "Baujahr": "number", "Grundstück": "number",
        "verkauft am": "date", "Garage": "boolean", "Notiz": "category", "leer": "empty", "Land": "constant", "Klicks": "number",
        "Preis netto": "leak", "Größe (Kopie)": "excluded", "Preis": "target",
    }  # fmt: skip
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
    assert all(names[i] in feature for i, feature in zip(found.origin_, found.feature_names_, strict=True))
    size = rows.X[:, found.feature_names_.index("Größe")]
    assert abs(size.mean()) < 0.05
    assert 0.9 < size.std() < 1.1


def test_every_column_has_a_plain_sentence(messy):
    for t in messy[1].treatments_:
        assert t.action[0].isupper() or t.action[0].isdigit()
        assert t.action.endswith(".")
        assert json.dumps(t.as_dict())


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([f"{i / 7:.3f}" for i in range(N)], "number"),
        (["yes", "No"] * (N // 2), "boolean"),
        ([True, False, None, True] * (N // 4), "boolean"),
        ([0, 1] * (N // 2), "boolean"),
        (["u", "v", "w", ""] * (N // 4), "category"),
        ([f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)], "date"),
        ([20200101 + i % 28 for i in range(N)], "date"),
        (np.datetime64("2020-01-01") + np.arange(N), "date"),
        ([f"a few words that differ in {i} ways" for i in range(N)], "text"),
        (["same"] * N, "constant"),
        (["5"] * (N - 1) + ["oops"], "constant"),
        (["12:30", "23:55", "07:00", "00:05"] * (N // 4), "date"),
        ([3.0] * N, "constant"),
        ([None] * N, "empty"),
        (["NA", ""] * (N // 2), "empty"),
        ([np.inf] * N, "empty"),
        (range(5, 5 + N), "id"),
        ([f"key-{i}" for i in range(N)], "id"),
        ([[1, 2]] * N, "excluded"),
        ([f"{i % 40}" for i in range(N - 40)] + ["many"] * 40, "category"),
    ],
    ids=["numbers as text", "yes and no", "booleans", "0 and 1", "words", "days", "day numbers", "typed days", "sentences", "one word",
         "one number but for a slip", "times", "one number", "nulls", "missing words", "infinities", "running number", "keys", "lists",
         "numbers and text"],
)  # fmt: skip
def test_kinds(column, kind):
    found, seen = fitted(pa.array(column))
    assert seen.kind == kind
    assert bool(seen.outputs) == (kind in ("number", "boolean", "category", "date", "text"))
    assert np.isfinite(found.transform(table(x=pa.array(column))).X).all()


def test_identifiers_go_by_order_or_by_name():
    numbers = np.random.default_rng(0).permutation(10 * N)[:N]
    assert fitted(pa.array(numbers))[1].kind == "number"
    for name, kind in {"customer_id": "id", "customerId": "id", "Unnamed: 0": "id", "paid": "number", "year": "number"}.items():
        assert treatment(Columns("y").fit(table(**{name: numbers})), name).kind == kind
    years = treatment(Columns("y").fit(table(year=np.arange(N))), "year")
    assert years.kind == "number"  # a running year is no identifier


def test_missing_numbers_take_the_median_and_raise_an_indicator():
    column = np.where(np.arange(N) % 10 == 0, np.nan, np.arange(N) % 7)
    found, seen = fitted(column)
    assert seen.outputs == ("x", "x missing")
    assert seen.n_missing == N // 10
    assert seen.action == "Standardised number; 40 missing values take the median 3 and raise an indicator."
    X = found.transform(table(x=column)).X[:, [found.feature_names_.index(n) for n in seen.outputs]]
    assert np.allclose(X[::10, 1], 2**0.5)
    assert not X[1, 1]
    assert np.allclose(X[0, 0], X[3, 0])


def test_a_value_that_is_there_or_not():
    _, seen = fitted(pa.array(["x", None] * (N // 2)))
    assert (seen.kind, seen.outputs) == ("boolean", ("x missing",))


def test_rare_levels_are_pooled_and_levels_are_capped():
    rng = np.random.default_rng(0)
    found, seen = fitted(pa.array([f"town{int(k)}" for k in rng.exponential(20, N)]), max_categories=5)
    assert [o for o in seen.outputs if "=" in o][-1] == "x = other"
    assert len(seen.outputs) == 7
    assert "5 frequent values have a feature each" in seen.action
    X = found.transform(table(x=["never seen"] * N)).X
    assert (X[:, found.feature_names_.index("x = other")] == 1).all()
    _, rare = fitted(pa.array([f"t{i // 2}" for i in range(N)]))
    assert rare.outputs == ()
    assert "every value is rare" in rare.action.lower()


def test_late_text_among_numbers():
    seen = fitted(pa.array([f"{i % 9}" for i in range(N - 1)] + ["oops"]))[1]
    assert seen.kind == "number"
    assert seen.warnings == ('"x" holds numbers, but one of its values is text ("oops"); it counts as missing.',)


def test_columns_that_tell_the_target():
    data = table()
    y = data.column("y").to_numpy()
    found = Columns("y").fit(data.append_column("x", pa.array(np.exp(y))))
    assert treatment(found, "x").kind == "leak"
    assert '"x" gives the target "y" away' in found.warnings_[0]
    labels = pa.array(np.where(y > 0, "good", "bad"))
    codes = data.set_column(2, "y", labels).append_column("x", pa.array((y > 0).astype(int)))
    assert treatment(Columns("y").fit(codes), "x").kind == "leak"
    alone = Columns("y").fit(pa.table({"x": np.arange(50.0) ** 2 + 0.5, "y": np.arange(50.0) / 3}))
    assert treatment(alone, "x").kind == "number"
    assert alone.warnings_[0].endswith("it was kept, since no other column is left.")


def test_whole_numbers_that_act_as_codes_become_categories():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 2000)
    y = np.array([0.0, 5, 1, 4, -3, 2])[x] + rng.normal(size=2000)
    found = Columns("y").fit(pa.table({"x": x, "y": y}))
    assert found.treatments_[0].kind == "category"
    assert found.treatments_[0].action.startswith("Whole numbers that act as codes. Category: 6 frequent values")
    assert found.transform(pa.table({"x": ["4", "4.0", "9", ""]})).X.shape == (4, 6)


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (["a", "b"] * (N // 2), "classification", "has two distinct values."),
        (["a", "b", "c", "d"] * (N // 4), "classification", "holds text."),
        ([2.5, 7.5] * (N // 2), "classification", "has two distinct values."),
        (np.arange(N) % 7, "classification", "holds whole numbers with only 7 distinct values (up to 20 count as classes)."),
        (np.arange(N) % 7 + 0.5, "regression", "holds numbers that are not whole."),
        (np.arange(N) % 30, "regression", "holds whole numbers with 30 distinct values."),
        ([True, False] * (N // 2), "classification", "has two distinct values."),
        ([f"{i % 3}" for i in range(N)], "classification", "holds whole numbers with only 3 distinct values (up to 20 count as classes)."),
    ],
    ids=["two words", "words", "two numbers", "few whole", "not whole", "many whole", "booleans", "digits"],
)
def test_the_task_is_guessed_by_a_stated_rule(y, task, reason):
    found = Columns("y").fit(table().set_column(2, "y", pa.array(y)))
    assert found.task_ == task
    assert found.task_reason_ == f'{task}, since "y" {reason}'


def test_classes_are_ordered_and_unknown_ones_marked():
    data = table().set_column(2, "y", pa.array([10, 9, 2, None] * (N // 4)))
    found = Columns("y").fit(data)
    assert found.classes_ == ("2", "9", "10")
    assert found.target_.counts == (100, 100, 100)
    rows = found.transform(table().set_column(2, "y", pa.array(["9.0", "10", "7", "NA"] * (N // 4))))
    assert rows.y[:3].tolist() == [1, 2, -1]
    assert rows.index[:4].tolist() == [0, 1, 2, 4]
    assert len(found.transform(data, target=False)) == N
    assert found.transform(data, target=False).y is None
    assert found.transform(data.drop_columns("y")).y is None


def test_none_may_be_a_class():
    found = Columns("y").fit(table().set_column(2, "y", pa.array(["none", "mild", "?", ""] * (N // 4))))
    assert found.classes_ == ("mild", "none")
    assert found.n_dropped_ == N // 2


def test_imbalance_and_skew_are_noted():
    rare = Columns("y").fit(table().set_column(2, "y", pa.array(["a"] * (N - 8) + ["b"] * 8)))
    assert rare.target_.imbalance == 0.02
    assert rare.warnings_ == ('classes are imbalanced: "b" has 8 of 400 rows (2.0%).',)
    skewed = Columns("y").fit(table().set_column(2, "y", pa.array(np.random.default_rng(0).lognormal(0, 2, N))))
    assert skewed.target_.skew > 2
    assert skewed.target_.positive
    assert skewed.warnings_[0].startswith('the target "y" is skewed (skewness ')


def test_a_task_that_was_asked_for():
    assert Columns("y", task="classification").fit(table().set_column(2, "y", pa.array(np.arange(N) % 40))).task_ == "classification"
    asked = Columns("y", task="regression").fit(table().set_column(2, "y", pa.array(np.arange(N) % 2)))
    assert asked.task_reason_ == "regression, as asked for."


@pytest.mark.parametrize(
    ("settings", "y", "sentence"),
    [
        (dict(target="z"), None, r'there is no column "z" \(given as target\); the names are "a", "b", "y"\.'),
        (dict(target="Y"), None, r'there is no column "Y" \(given as target\); did you mean "y"\?'),
        (dict(target="y", exclude=["aa"]), None, r'there is no column "aa" \(given as exclude\); the names are "a", "b", "y"\.'),
        (dict(target="y", group="y"), None, r'"y" has more than one role; give each column one\.'),
        (dict(target="y"), [None] * N, r'no row has a value of the target "y"; choose another column\.'),
        (dict(target="y"), ["NA"] * N, r'no row has a value of the target "y"; choose another column\.'),
        (dict(target="y"), [1.0] * N, r'the target "y" has the same value in every row; there is nothing to predict\.'),
        (dict(target="y", task="regression"), ["u", "v"] * (N // 2), r'the target "y" holds text, which a regression cannot predict'),
        (dict(target="y", task="classification"), np.arange(6 * N) % 1200 / 7, r"distinct values, too many for classes"),
        (dict(target="y"), [f"w{i % 1200}" for i in range(8 * N)], r"too many for classes \(at most 1,000\); choose another column\."),
        (dict(target="y"), [f"w{i}" for i in range(N)], r'the target "y" has 400 classes in 400 rows, too few rows for each'),
        (dict(target="y"), [[1, 2]] * N, r'the target "y" holds list<.*>, not single values; choose another column\.'),
        (dict(target="y"), np.datetime64("2020-01-01") + np.arange(N), r'the target "y" holds dates; predict a number made from it'),
        (dict(target="y", exclude=["a", "b"]), None, r'no column can be used to predict "y"\. "a": Left out, as asked for\.'),
        (dict(target="y", weight="a"), None, r'the weight "a" has negative values, such as -'),
        (dict(target="y", time_column="b"), "words", r'the time column "b" holds neither numbers nor dates; choose another'),
    ],
    ids=["no target", "misspelt", "exclude", "two roles", "nulls", "missing words", "constant", "text", "many numbers", "many words",
         "own classes", "lists", "dates", "nothing left", "weights", "time"],
)  # fmt: skip
def test_what_cannot_be_learned_is_one_sentence(settings, y, sentence):
    data = table(n=N if y is None or isinstance(y, str) else len(y))
    if isinstance(y, str):
        data = data.set_column(1, "b", pa.array([y, "more"] * (N // 2)))
    elif y is not None:
        data = data.set_column(2, "y", pa.array(y))
    with pytest.raises(DataError, match=sentence):
        Columns(**settings).fit(data)


def test_wrong_settings():
    with pytest.raises(ValueError, match="task must be one of auto, regression, classification; it is 'guess'"):
        Columns("y", task="guess")
    with pytest.raises(ValueError, match="max_categories must be at least 1; it is 0"):
        Columns("y", max_categories=0)
    with pytest.raises(TypeError, match=r"a Source, a pyarrow\.Table or record batches are expected, not int"):
        Columns("y").fit(3)
    with pytest.raises(DataError, match="there are no rows to learn from"):
        Columns("y").fit([])


def test_roles():
    days = np.datetime64("2020-01-01") + np.arange(N)
    data = table(key=[f"k{i}" for i in range(N)], w=np.where(np.arange(N) == 3, np.nan, 2.0), g=np.arange(N) // 4, t=days.astype(str))
    found = Columns("y", id="key", weight="w", group="g", time_column="t").fit(data)
    kinds = {t.name: t.kind for t in found.treatments_}
    assert kinds == {"a": "number", "b": "number", "key": "id", "w": "weight", "g": "group", "t": "time", "y": "target"}
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
    return table(seed, n, words=words, gaps=gaps, day=(np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype(str))


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
    assert (back.task_, back.classes_, back.feature_names_) == (found.task_, found.classes_, found.feature_names_)


def test_the_schema_of_new_data_is_checked():
    data = mixed()
    found = Columns("y", exclude=["b"]).fit(data)
    report = found.check(data.drop_columns(["y", "b"]).append_column("new", pa.array([0] * 3000)).schema)
    assert (report.missing, report.extra, report.coerced) == (("b", "y"), ("new",), ())
    assert not found.check(data.set_column(0, "a", pa.array(["1"] * 3000)).schema).coerced  # as csv files hold numbers
    changed = found.check(data.set_column(0, "a", pa.array(np.full(3000, "2024-01-31", "datetime64[D]"))).schema)
    assert changed.coerced == (("a", "number", "date"),)
    assert changed.sentences() == ('"a" is date, it was number in training; its values are converted.',)
    with pytest.raises(DataError, match=r'the table lacks "gaps", which the model uses; did you mean "gap"\?'):
        found.check(data.rename_columns(["a", "b", "words", "gap", "day", "y"]).schema)
    with pytest.raises(DataError, match=r'the table lacks "a", "gaps", which the model uses; give a table with the columns of'):
        found.transform(data.drop_columns(["a", "gaps"]))


def test_no_false_alarm_of_drift():
    found = Columns("y").fit(mixed())
    for seed in range(1, 9):
        for n in (1, 20, 200, 3000):
            assert found.drift(mixed(n, seed)).warnings == ()


def test_drift_is_told_in_a_sentence():
    found, new = Columns("y").fit(mixed()), mixed(1000, seed=1)
    moved = new.set_column(0, "a", pa.array(new.column("a").to_numpy() + 3))
    report = found.drift(moved)
    assert report.columns[0].name == "a"
    assert report.warnings[0].startswith('"a" has drifted: ')
    assert "of its values are above" in report.warnings[0]
    unseen = found.drift(new.set_column(2, "words", pa.array(["elsewhere"] * 1000)))
    assert "100% of its values were never seen in training, where 0% would be usual" in unseen.warnings[0]
    gone = found.drift(new.set_column(3, "gaps", pa.array([None] * 1000, pa.float64())))
    assert "100% of its values are missing, against 1" in gone.warnings[0]
    unread = found.drift(new.set_column(1, "b", pa.array(["?!"] * 10 + ["0.5"] * 990)))
    assert unread.n_unread == {"b": 10}
    assert '"b" has 10 values that could not be read; they count as missing.' in unread.warnings


def test_drift_of_dates_and_texts_is_told_in_their_own_terms():
    days = np.datetime64("2020-01-01") + np.arange(N)
    notes = [f"note {i} on the state of things" for i in range(N)]
    found = Columns("y").fit(table(day=days, note=notes))
    report = found.drift(table(day=days + N, note=[note * 3 for note in notes]))
    assert any(said.startswith('"day" has drifted: 100% of its values are above 2020-12-') for said in report.warnings)
    assert any(said.startswith('"note" has drifted: 100% of its values are above 31 characters long') for said in report.warnings)


def test_a_saved_treatment_does_not_carry_the_texts():
    notes = ["thank you very much for your message"] * 50 + [f"a secret of its own, number {i}" for i in range(N - 50)]
    found = Columns("y").fit(table(note=notes))
    assert treatment(found, "note").outputs[0] == "note = thank you very much for your message"
    assert "secret" not in json.dumps(found.state())


def test_a_watch_fills_on_the_way():
    found, new = Columns("y").fit(mixed()), mixed(1000, seed=1)
    watch = found.watch()
    for batch in new.to_batches(max_chunksize=300):
        found.transform(batch, target=False, watch=watch)
    assert watch.report() == found.drift(new)
    assert watch.n_rows == 1000


def test_memory_stays_bounded_however_many_rows():
    """The pass holds counts and a sample, never the rows."""
    def batches(count):
        for i in range(count):
            rng = np.random.default_rng(i)
            keys = pa.array([f"{i}-{j}" for j in range(2000)])
            yield pa.record_batch({"x": rng.normal(size=2000), "key": keys, "y": rng.normal(size=2000)})

    def held(count):
        before, most = pa.total_allocated_bytes(), 0

        def watched():
            nonlocal most
            for batch in batches(count):
                yield batch
                most = max(most, pa.total_allocated_bytes() - before)

        Columns("y").fit(watched())
        return most

    assert held(60) < 1.5 * held(15)


def test_what_a_column_is_taken_for_counts_not_its_file(tmp_path):
    path = tmp_path / "t.csv"
    flag, day = np.arange(90) % 2 == 1, [f"2024-01-{i % 28 + 1:02}" for i in range(90)]
    path.write_text("a,flag,day,y\n" + "".join(f"{i * i % 97}.5,{('no', 'yes')[i % 2]},{day[i]},{i % 13}.25\n" for i in range(90)))
    found = Columns("y").fit(open_source(path))
    typed = pa.table({"a": [i * i % 97 + 0.5 for i in range(90)], "flag": flag, "day": np.array(day, "datetime64[D]")})
    assert found.check(typed.schema).coerced == ()
    assert np.array_equal(found.transform(typed, target=False).X, found.transform(next(open_source(path).batches()), target=False).X)
    dated = typed.set_column(1, "flag", typed.column("day"))
    assert found.check(dated.schema).coerced == (("flag", "boolean", "date"),)


def test_a_column_that_cannot_be_read_at_all_is_refused():
    found = Columns("y").fit(mixed())
    watch = found.watch().add(mixed())
    watch.check()
    for cells in (["x1"] * 3000, ["x1", None] * 1500):
        watch = found.watch().add(mixed().set_column(0, "a", pa.array(cells)))
        with pytest.raises(DataError, match='no value of "a" reads as a number, which it was in training: "x1", for one'):
            watch.check()
    found.watch().add(mixed().set_column(0, "a", pa.array(["x1"] * 2999 + ["1"]))).check()
    found.watch().add(mixed().set_column(0, "a", pa.nulls(3000, pa.float64()))).check()  # missing is not unreadable


def test_columns_that_say_nothing_are_named_in_one_sentence():
    found = Columns("y").fit(table(c=[5] * N, d=["x"] * N, e=pa.nulls(N, pa.string())))
    assert found.warnings_ == ('columns left out since they say nothing: "c", "d" with one value in every row and "e" without values.',)


def test_repeated_rows_raise_no_alarm():
    data = table(n=60)
    found = Columns("y").fit(pa.concat_tables([data] * 10))
    assert {t.kind for t in found.treatments_} == {"number", "target"}
    assert not found.warnings_


BLAMED = [
    (dict(weight="w"), dict(w=["red", "blue"] * (N // 2)), r'the weight "w" holds no numbers but values such as "red"'),
    (dict(weight="w"), dict(w=[0.0] * N), r'the weight "w" is 0 in every row'),
    (dict(weight="w"), dict(w=pa.nulls(N, pa.float64())), r'no row with a target has a weight "w"'),
    (dict(time_column="w"), dict(w=["red", "blue"] * (N // 2)), r'the time column "w" holds neither numbers nor dates'),
]


@pytest.mark.parametrize(("settings", "more", "sentence"), BLAMED, ids=["text", "zero", "missing", "time"])
def test_the_column_at_fault_is_named(settings, more, sentence):
    with pytest.raises(DataError, match=sentence):
        Columns("y", **settings).fit(table(**more))


def test_rows_left_out_are_told_by_their_reason():
    data = table(w=[None] * 3 + [1.0] * (N - 3))
    y = data.column("y").to_numpy().copy()
    y[10:12], y[20] = np.inf, np.nan
    for column in (pa.array(y), pa.array([str(v) for v in y])):  # as numbers, and as a csv file has them
        found = Columns("y", weight="w").fit(data.set_column(3, "y", column))
        assert found.warnings_[:3] == (
            '1 of 400 rows has no value of the target "y" and was left out.',
            '2 of 400 rows have an infinite value of the target "y" and were left out.',
            '3 of 400 rows have no weight "w" and were left out.',
        )
        assert (found.n_rows_, found.n_dropped_) == (N - 6, 6)


def test_classes_keep_the_type_of_training():
    kinds = {pa.int64(): np.arange(N) % 3, pa.bool_(): np.arange(N) % 2 == 0, pa.string(): np.where(np.arange(N) % 2, "u", "v")}
    for kind, y in kinds.items():
        assert Columns("y").fit(table().set_column(2, "y", pa.array(y))).target_.kind == kind
    found = Columns("y").fit(table().set_column(2, "y", pa.array(["no", "yes"] * (N // 2)))).target_
    assert found.read(pa.array([True, False, None])).tolist()[:2] == [1.0, 0.0]
    assert found.read(pa.array(["perhaps"])).tolist() == [-1.0]
