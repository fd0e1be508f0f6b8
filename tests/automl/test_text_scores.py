import json

import numpy as np
import pyarrow as pa
import pytest

import mercer
from mercer import fit_table
from mercer.automl.budget import Clock
from mercer.automl.data import Roles, prepare_data
from mercer.automl.frames import as_source
from mercer.automl.splits import make_folds
from mercer.automl.text_scores import TextScorer, text_columns
from mercer.tables.texts import documents
from tests.automl.texts import drawn, labels


def prepared(table, target="y", memory=4e9, time=60.0, test=0.2, **roles):
    source = as_source(table)
    texts = TextScorer(time, memory)
    data = prepare_data(
        source,
        Roles(target, **roles),
        test,
        task="auto",
        memory=memory,
        seed=0,
        clock=Clock(time),
        texts=texts,
    )
    return data, texts


def table_of(n=300, seed=0, **more):
    texts, y = drawn(n, seed)
    return pa.table({"t": texts, "y": labels(y), **more})


def scores_of(data, name="t"):
    first, encoder = text_columns(data.columns)[name]
    return data.train.X[:, first], data.held.X[:, first], encoder


def test_training_rows_have_scores_of_other_rows_and_held_out_ones_those_of_the_model():
    table = table_of()
    data, texts = prepared(table)
    train, held, encoder = scores_of(data)
    cells = documents(table.column("t").combine_chunks())
    model = encoder.scores(cells)[:, 0].astype(np.float32)
    assert np.array_equal(held, model[data.held.row_id])
    assert not np.isclose(train, model[data.train.row_id], atol=1e-3).all()
    # a model knows its own rows better than others
    y = np.where(data.train.y, 1, -1)
    assert (train * y).mean() < (model[data.train.row_id] * y).mean()
    assert abs(train.mean()) < 0.1
    assert texts.seconds > 0
    found = texts.found[0]
    assert found["column"] == "t"
    assert found["rows"] == found["of_rows"] == len(data.train)
    json.dumps(found)


def test_whatever_batches_a_table_comes_in():
    table = table_of(400)
    parts = pa.concat_tables([table.slice(i, 57) for i in range(0, 400, 57)])
    one, other = (scores_of(prepared(t)[0])[:2] for t in (table, parts))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_words_are_in_the_treatment():
    data, _ = prepared(table_of())
    told = next(t for t in data.columns.treatments_ if t.name == "t")
    assert told.kind == "text"
    assert told.action.startswith("Text: scores of a linear model over its n-grams (")
    assert "Raced on rows left out: one and two words 0." in told.action
    assert told.outputs[-1] == "t score of yes"
    assert not any("for now" in w for w in data.columns.warnings_)


def test_a_table_of_few_rows_or_little_time_has_no_scores():
    assert not text_columns(prepared(table_of(70), time=0.5)[0].columns)
    data, texts = prepared(table_of(70))
    assert not text_columns(data.columns)
    assert texts.found == []
    assert data.texts == ()


def test_rows_beyond_memory_have_scores_of_the_model():
    data, texts = prepared(table_of(4000, 3), memory=1.2e6 * 24 / 6)
    train, _, _ = scores_of(data)
    fitted = texts.found[0]["rows"]
    assert 0 < fitted < len(data.train)
    assert "to keep to time and memory" in next(
        t.action for t in data.columns.treatments_ if t.name == "t"
    )
    assert np.isfinite(train).all()
    y = np.where(data.train.y, 1, -1)
    assert (train * y).mean() > 0.3


def test_equal_documents_are_in_one_fold_and_on_one_side():
    texts, y = drawn(300, 5)
    again = texts + texts[:100] + texts[:30]
    table = pa.table({"t": again, "y": labels(np.concatenate([y, y[:100], y[:30]]))})
    data, _ = prepared(table)
    assert "equal texts" in data.rule
    where = np.array(again)
    assert not set(where[data.train.row_id]) & set(where[data.held.row_id])
    block = make_folds(data.train).block
    for one in set(texts[:100]):
        assert len(set(block[where[data.train.row_id] == one])) <= 1
    # a test file cannot be parted so, and that is said
    both, _ = prepared(table, test=as_source(table.slice(0, 50)))
    assert len(np.intersect1d(both.train.group, both.held.group)) > 0


def test_groups_and_times_rule():
    texts, y = drawn(240, 6)
    table = pa.table({"t": texts, "y": labels(y), "g": np.arange(240) // 4, "when": np.arange(240)})
    data, _ = prepared(table, group="g", exclude=("when",))
    assert len(np.unique(data.train.group)) == len(np.unique(data.train.row_id // 4))
    data, _ = prepared(table, time_column="when", exclude=("g",))
    train, held, _ = scores_of(data)
    assert np.array_equal(train[:38], np.zeros(38))  # nothing was before the first part
    assert train[40:].std() > 0.3
    assert held.std() > 0.3


def test_two_texts_numbers_and_missing_ones():
    texts, y = drawn(300, 7)
    other, z = drawn(300, 8)
    rng = np.random.default_rng(0)
    price = 3.0 * y + 2.0 * z + rng.normal(size=300) * 0.5
    gone = [None if i % 9 == 0 else t for i, t in enumerate(other)]
    table = pa.table({"t": texts, "u": gone, "size": rng.normal(size=300), "price": price})
    data, found = prepared(table, "price")
    assert [f["column"] for f in found.found] == ["t", "u"]
    assert {f["measure"] for f in found.found} == {"r2"}
    names = data.columns.feature_names_
    assert {"t score", "u score", "u missing"} <= set(names)
    assert "t missing" not in names
    at = names.index("u score")
    empty = data.held.row_id % 9 == 0
    assert len(set(data.held.X[empty, at])) == 1  # the score of nothing
    assert np.isfinite(data.train.X).all()
    corr = np.corrcoef(data.held.X[:, names.index("t score")], data.held.y)[0, 1]
    assert corr > 0.4


def test_many_classes_have_a_score_each():
    texts, y = drawn(300, 9)
    other = np.array(["a", "b", "c"])[y + (np.arange(300) % 3 == 0)]
    data, _ = prepared(pa.table({"t": texts, "y": other.tolist()}))
    assert [n for n in data.columns.feature_names_ if "score" in n] == [
        f"t score of {c}" for c in "abc"
    ]


def test_short_titles_are_texts_and_recurring_ones_stay_apart_by_chance():
    rng = np.random.default_rng(0)
    jobs = [
        f"{a} {b}"
        for a in ("senior", "junior", "chief", "deputy", "acting", "lead")
        for b in (
            "clerk",
            "nurse",
            "driver",
            "editor",
            "tailor",
            "farmer",
            "painter",
            "baker",
            "smith",
            "guard",
        )
    ]
    mine = rng.integers(0, 60, 500)
    y = ((mine // 10) % 2 + (rng.random(500) < 0.2)) % 2
    data, _ = prepared(pa.table({"job": [jobs[i] for i in mine], "y": labels(y)}))
    assert text_columns(data.columns)
    assert data.train.group is None  # they come again, and are no copies
    _, held, _ = scores_of(data, "job")
    s = np.where(data.held.y, 1, -1) * held
    assert s.mean() > 0.2


def test_random_labels_are_told_by_nothing():
    """No features, folds or holdout that know a row's own target."""
    texts, _ = drawn(600, 11, telling=0)
    y = np.random.default_rng(1).integers(0, 2, 600)
    model = fit_table(pa.table({"t": texts, "y": labels(y)}), "y", metric="auc", time=3)
    for c in model.result.contenders:
        for score, n in ((c.cv, 480), (c.holdout, 120)):
            assert score is None or abs(score - 0.5) < 4 * 0.29 / (n / 4) ** 0.5


@pytest.fixture(scope="module")
def fitted():
    return fit_table(table_of(400, 12), "y", metric="auc", time=4)


def test_a_model_is_as_good_as_its_words_and_survives_a_file(fitted, tmp_path):
    assert fitted.result.chosen.holdout > 0.85
    fitted.save(tmp_path / "m.mercer")
    back = mercer.load(tmp_path / "m.mercer")
    new = table_of(50, 13)
    one, other = (m.predict(new).column("p_yes").to_numpy() for m in (fitted, back))
    assert np.array_equal(one, other)
    assert back.result.texts == fitted.result.texts
    assert fitted.score(new) > 0.8
    text = json.dumps(fitted.columns.state(), default=lambda v: "")
    assert drawn(400, 12)[0][0] not in text  # no document is in the file


def test_odd_documents_are_predicted(fitted):
    odd = pa.table({"t": ["", None, "word " * 200_000, "\x00", "é ß ½ Ⅷ नमस्ते"]})
    p = pa.Table.from_batches(fitted.predict_batches(odd)).column("p_yes").to_numpy()
    assert np.isfinite(p).all()
    assert p[0] == p[1]


def test_report_shows_what_was_raced(fitted):
    from mercer.report import page

    html = page.html(fitted.result)
    assert "What the words say" in html
    assert "one and two words" in html
