import numpy as np
import pytest

from mercer.automl import text_race
from mercer.automl.text_kinds import text_kinds
from mercer.automl.text_race import (
    TextBudget,
    TextRace,
    TextTask,
    Tried,
    cross_fitted_scores,
    fit_text,
    parts_of,
    run_race,
)
from mercer.tables.arrow import pa
from tests.automl.texts import drawn


def task_of(y, part=None, **more):
    Y = np.where(y > 0, 1.0, -1.0)[:, None]
    part = parts_of(np.arange(len(y)), y)[0] if part is None else part
    return TextTask(Y, part, True, **more)


def column(texts):
    return pa.chunked_array([texts], pa.large_string())


@pytest.mark.parametrize(("n", "distinct"), [(500, 500), (500, 90), (40, 6), (7, 7)])
def test_equal_documents_are_in_one_part_and_classes_in_all(n, distinct):
    rng = np.random.default_rng(n)
    key, y = rng.permutation(n) % distinct, rng.integers(0, 2, n)
    part, ordered = parts_of(key, y)
    assert not ordered
    for k in range(distinct):
        assert len(set(part[key == k])) == 1
    if distinct == n == 500:
        shares = [y[part == k].mean() for k in range(5)]
        assert np.ptp(shares) < 0.02
        assert np.ptp(np.bincount(part)) <= 2


def test_groups_and_documents_hang_together():
    rng = np.random.default_rng(0)
    group, key = np.repeat(np.arange(100), 3), np.arange(300)
    key[[0, 30]] = 999  # one document in two groups
    part, _ = parts_of(key, rng.integers(0, 2, 300), group)
    assert all(len(set(part[group == g])) == 1 for g in range(100))
    assert part[0] == part[30]
    giant = np.zeros(300, np.int64)
    part, _ = parts_of(giant, rng.integers(0, 2, 300), group)  # would be one part, so by groups
    assert len(set(part)) == 5


def test_parts_in_order_of_time_are_predicted_from_earlier_ones():
    time = np.random.default_rng(0).permutation(100).astype(float)
    part, ordered = parts_of(np.arange(100), np.zeros(100, np.int64), time=time)
    assert ordered
    task = task_of(np.arange(100) % 2, part, ordered=True)
    for i, j in task.splits():
        assert time[i].max() < time[j].min()
    assert len(task.splits()) == 4


def test_scores_tell_what_words_tell_and_new_rows_have_the_same():
    texts, y = drawn(400, 1)
    found = fit_text(column(texts), task_of(y), TextBudget(20.0, 4e9, True))
    s = found.scores[:, 0]
    assert found.quality > 0.85
    assert s[y > 0].mean() - s[y == 0].mean() > 0.8
    assert s.mean() == pytest.approx(0, abs=0.05)
    assert s.std() == pytest.approx(1, abs=0.1)
    more, z = drawn(400, 2)
    new = found.model(pa.array(more))[:, 0]
    gap = new[z > 0].mean() - new[z == 0].mean()
    assert gap == pytest.approx(s[y > 0].mean() - s[y == 0].mean(), rel=0.35)
    assert found.race.winner in found.race.tried
    assert found.n_fitted == 400


def test_no_rows_own_target_is_in_its_score():
    texts, y = drawn(300, 4)
    task = task_of(y)
    race = run_race(column(texts), task, TextBudget(5.0, 4e9, True))
    before = cross_fitted_scores(column(texts), task, race).scores
    i = 17
    other = TextTask(task.Y.copy(), task.part, True)
    other.Y[i] *= -1
    after = cross_fitted_scores(column(texts), other, race).scores
    mine = task.part == task.part[i]
    # mean and deviation are of all scores; within its part nothing else may change
    for s in (before, after):
        s -= s[mine].mean()
        s /= s[mine].std()
    assert after[mine] == pytest.approx(before[mine], abs=1e-6)
    assert not np.allclose(after[~mine], before[~mine], atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_random_labels_have_no_scores(seed):
    rng = np.random.default_rng(seed)
    texts, _ = drawn(500, seed, telling=0)
    y = rng.integers(0, 2, 500)
    found = fit_text(column(texts), task_of(y), TextBudget(2.0, 4e9, True))
    assert abs(found.quality - 0.5) < 3.5 * 0.026
    assert abs(np.corrcoef(found.scores[:, 0], y)[0, 1]) < 3.5 / 500**0.5


@pytest.mark.parametrize("ordered", [False, True])
def test_copies_of_rows_that_were_fitted_tell_nothing_of_others(ordered, monkeypatch):
    rng = np.random.default_rng(3)
    words = np.array([f"word{i}" for i in range(3000)])
    texts = [" ".join(rng.choice(words, 20)) for _ in range(200)] * 5
    y = np.tile(rng.integers(0, 2, 200), 5)
    part, _ = parts_of(np.arange(1000) % 200, y)
    monkeypatch.setattr(text_race, "MIN_RACED", 100)
    monkeypatch.setattr(text_race, "affordable", lambda *_: 400)
    task = task_of(y, part, ordered=ordered)
    found = fit_text(column(texts), task, TextBudget(2.0, 4e9, True))
    assert found.n_fitted == 400
    known = part > 0 if ordered else part >= 0
    assert abs(np.corrcoef(found.scores[known, 0], y[known])[0, 1]) < 3.5 / 160**0.5
    assert (found.scores[~known] == 0).all()


def test_rows_that_all_hang_together_have_a_model_and_no_scores():
    texts, y = drawn(100, 6)
    found = fit_text(column(texts), task_of(y, np.zeros(100, int)), TextBudget(2.0, 4e9, True))
    assert (found.scores == 0).all()
    assert found.model(pa.array(texts)).std() == pytest.approx(1, abs=1e-3)


def test_earlier_rows_score_later_ones():
    texts, y = drawn(300, 5)
    time = np.arange(300.0)
    part, ordered = parts_of(np.arange(300), y, time=time)
    found = fit_text(column(texts), task_of(y, part, ordered=ordered), TextBudget(5.0, 4e9, True))
    assert np.array_equal(found.scores[part == 0], np.zeros(((part == 0).sum(), 1)))
    assert found.quality > 0.75


def test_numbers_and_many_classes():
    texts, y = drawn(300, 6)
    z = 2.0 * y + np.random.default_rng(0).normal(size=300) * 0.3
    Y = ((z - z.mean()) / z.std())[:, None]
    part = parts_of(np.arange(300), z)[0]
    found = fit_text(column(texts), TextTask(Y, part, False), TextBudget(5.0, 4e9, False))
    assert found.quality > 0.25
    three = np.where(
        np.array([t.count("ra") for t in texts]) % 3 == np.arange(3)[:, None], 1.0, -1.0
    ).T
    wide = fit_text(column(texts), TextTask(three, part, True), TextBudget(2.0, 4e9, False))
    assert wide.scores.shape == (300, 3)
    assert np.isfinite(wide.scores).all()


@pytest.mark.parametrize(
    "texts",
    [
        [""] * 80,
        ["same words here"] * 80,
        ["x " * 5000] * 40 + [""] * 40,
        ["\x00 null", "é ß ½"] * 40,
    ],
)
def test_documents_that_say_nothing(texts):
    y = np.arange(80) % 2
    key = np.arange(80)
    found = fit_text(column(texts), task_of(y, parts_of(key, y)[0]), TextBudget(2.0, 4e9, True))
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.model(pa.array(texts))).all()


def test_weights_of_zero_are_rows_that_are_not_there():
    texts, y = drawn(200, 7)
    w = np.ones(200)
    w[150:] = 0
    wrong = np.where(np.arange(200) < 150, y, 1 - y)
    race = run_race(column(texts), task_of(y), TextBudget(2.0, 4e9, True))
    part = parts_of(np.arange(200), y)[0]
    one = cross_fitted_scores(column(texts), task_of(y, part, weight=w), race).model
    other = cross_fitted_scores(column(texts), task_of(wrong, part, weight=w), race).model
    a, b = (m(pa.array(texts))[:, 0] for m in (one, other))
    assert np.corrcoef(a, b)[0, 1] > 0.999


def test_little_memory_and_time_try_less_and_say_so():
    texts, y = drawn(3000, 8)
    race = run_race(column(texts), task_of(y), TextBudget(30.0, 1e5, True))
    assert len(race.tried) == 1
    assert {why for _, why in race.skipped} == {"memory"}
    race = run_race(column(texts), task_of(y), TextBudget(1e-9, 4e9, True))
    assert len(race.tried) == 1
    assert {why for _, why in race.skipped} == {"time"}
    found = fit_text(column(texts), task_of(y), TextBudget(1e-9, 4e9, True))
    assert found.n_fitted == 2000
    assert np.isfinite(found.scores).all()


def test_the_two_best_meet_again_on_more_documents(monkeypatch):
    monkeypatch.setattr(text_race, "RACED_BYTES", 1.0)
    monkeypatch.setattr(text_race, "MIN_RACED", 200)
    monkeypatch.setattr(text_race, "MORE", 1e9)
    texts, y = drawn(900, 9)
    race = run_race(column(texts), task_of(y), TextBudget(600.0, 4e9, True))
    assert len(race.final) == 2
    best = sorted((t.score for t in race.tried), reverse=True)[:2]
    assert {t.kind.name for t in race.final} == {t.kind.name for t in race.tried if t.score in best}
    assert race.winner in race.final
    assert race.winner.score > max(best) - 0.02  # more documents tell more


def test_of_kinds_that_are_even_on_few_documents_ratios_win():
    one, other = text_kinds(1e4, 100, 14, True)[:2]
    tried = [Tried(one, 4, 0.9010, 0.0), Tried(other, 4, 0.9000, 0.0)]
    assert TextRace(tried).winner is tried[0]
    assert TextRace(tried, few=True).winner is tried[1]
    assert TextRace(tried, tried[:1], few=True).winner is tried[0]
    worse = [tried[0], Tried(other, 4, 0.89, 0.0)]
    assert TextRace(worse, few=True).winner is tried[0]
