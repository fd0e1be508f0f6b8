import numpy as np
import pytest
import scipy.sparse as sp

from mercer.automl import text_kinds
from mercer.automl.text_names import Strong, named, strong_columns
from mercer.automl.text_race import (
    TextBudget,
    TextRace,
    TextTask,
    Tried,
    cross_fitted_scores,
    fit_text,
    parts_of,
)
from mercer.tables.arrow import pa
from tests.automl.texts import BAD, GOOD, drawn


def test_strong_columns_add_most_and_are_had_by_some():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((200, 6)) < 0.4).astype(np.float32))
    X = sp.hstack([X, sp.csr_matrix(([1.0, 1.0], ([0, 1], [0, 0])), shape=(200, 1))], "csr")
    coef = np.array([[0.1], [3.0], [0.0], [-2.0], [0.5], [-0.1], [99.0]], np.float32)
    found = strong_columns(X, coef, 10 * np.arange(7))
    assert [s.column for s in found] == [10, 40, 0, 30, 50]  # the last is of two rows only
    assert found[0].gain == pytest.approx(3.0)
    assert found[3].gain == pytest.approx(-2.0)


def test_signed_columns_speak_for_what_they_add():
    X = sp.csr_matrix(-np.eye(4, dtype=np.float32).repeat(3, axis=0))
    found = strong_columns(X, np.array([[-1.0], [2.0], [0.0], [0.0]], np.float32), np.arange(4))
    assert [(s.column, s.gain) for s in found] == [(0, 1.0), (1, -2.0)]


@pytest.mark.parametrize("seed", range(3))
def test_names_are_those_of_the_words_that_tell(seed):
    texts, y = drawn(500, seed, telling=0.25)
    task = TextTask(np.where(y > 0, 1.0, -1.0)[:, None], parts_of(np.arange(500), y)[0], True)
    cells = pa.chunked_array([texts], pa.large_string())
    found = fit_text(cells, task, TextBudget(1.0, 4e9, True))
    listed = named(found.model, found.strong, cells, ("yes",))
    listed.sort(key=lambda told: told[2])
    assert len(listed) > 8
    if found.race.winner.kind.name.startswith("one"):
        assert any(word in listed[-1][0] for word in GOOD)
        assert any(word in listed[0][0] for word in BAD)
    if found.race.winner.kind.name == "one and two words":
        assert all(n == sum(f" {g} " in f" {t} " for t in texts) for g, _, _, n in listed)
    assert {output for _, output, _, _ in listed} == {"yes"}


def test_columns_without_a_name_among_the_documents_are_left_out():
    texts, y = drawn(200, 1)
    task = TextTask(np.where(y > 0, 1.0, -1.0)[:, None], parts_of(np.arange(200), y)[0], True)
    cells = pa.chunked_array([texts], pa.large_string())
    model = fit_text(cells, task, TextBudget(1.0, 4e9, True)).model
    assert named(model, [Strong(0, 0, 1.0)], cells.slice(0, 0), ("yes",)) == []
    assert named(model, [], cells, ("yes",)) == []


def test_of_words_beside_letters_words_are_shown():
    texts, y = drawn(300, 2)
    cells = pa.chunked_array([texts], pa.large_string())
    both = text_kinds.text_kinds(float(cells.nbytes), 300, 14, True)[-1]
    task = TextTask(np.where(y > 0, 1.0, -1.0)[:, None], parts_of(np.arange(300), y)[0], True)
    found = cross_fitted_scores(cells, task, TextRace([Tried(both, 4, 1.0, 0.0)]))
    listed = named(found.model, found.strong, cells, ("yes",))
    assert listed
    assert all(len(word) == 5 for gram, *_ in listed for word in gram.split())


@pytest.mark.parametrize("short", [True, False])
def test_of_letters_alone_words_are_shown(short):
    texts, y = drawn(300, 2, words=12 if short else 60, telling=0.25)
    cells = pa.chunked_array([texts], pa.large_string())
    letters = text_kinds.text_kinds(float(cells.nbytes), 300, 14, True)[2]
    assert letters.name.startswith("1 to 5" if short else "3 to 5")
    task = TextTask(np.where(y > 0, 1.0, -1.0)[:, None], parts_of(np.arange(300), y)[0], True)
    found = cross_fitted_scores(cells, task, TextRace([Tried(letters, 4, 1.0, 0.0)]))
    listed = named(found.model, found.strong, cells, ("yes",))
    strength = {gram: gain for gram, _, gain, _ in listed}
    assert all(len(gram) == 5 for gram in strength)
    assert max(strength, key=strength.get) in GOOD
    assert min(strength, key=strength.get) in BAD
    assert all(n == sum(g in t.split() for t in texts) for g, _, _, n in listed)


def test_of_letters_without_words_letters_are_shown():
    rng = np.random.default_rng(0)
    texts = ["".join(f"{c} " for c in rng.choice(list("abcdefgh"), 9)) for _ in range(200)]
    y = np.array(["a" in t for t in texts]).astype(int)
    cells = pa.chunked_array([texts], pa.large_string())
    letters = text_kinds.text_kinds(float(cells.nbytes), 200, 14, True)[2]
    task = TextTask(np.where(y > 0, 1.0, -1.0)[:, None], parts_of(np.arange(200), y)[0], True)
    found = cross_fitted_scores(cells, task, TextRace([Tried(letters, 4, 1.0, 0.0)]))
    listed = named(found.model, found.strong, cells, ("yes",))
    assert any("a" in gram for gram, *_ in listed)
