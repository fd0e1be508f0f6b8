"""The parts of a study on arrays: out-of-fold predictions, recipes, targets, intervals, decisions, trees' columns, judgement."""

import dataclasses
import time

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score

from mercer import KernelLogistic, KernelRidge
from mercer.automl import candidates as contests
from mercer.automl import crossval, evaluate, intervals, refit, search, trees, verdict
from mercer.automl.budget import Clock, Late
from mercer.automl.candidates import Finalist, choose, constant, contest, finalist
from mercer.automl.crossval import refits, ridge_path
from mercer.automl.evaluate import Decision, for_rare
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import Constant, Identity, Log, bounds, transformations
from mercer.automl.recipes import EXPLICIT, LINEAR, Recipe, explicit, followed, kernels, scaled, slopes
from mercer.automl.refit import fit
from mercer.automl.rows import Rows
from mercer.automl.search import Problem, attempt, halving, rungs
from mercer.automl.splits import Folds, folds
from mercer.kernels import Gaussian
from mercer.lifts import Identity as Columns


def problem(n=600, seed=0, classes=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return Problem(Rows(X, y, np.arange(n), **more), METRICS["accuracy" if classes else "r2"], classes)


def forever():
    return Clock(1e9)


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_fold_predictions_are_those_of_refits(weighted):
    p = problem(200)
    w = np.random.default_rng(1).uniform(0.5, 2, 200) if weighted else None
    split = folds(p.rows)
    mine = ridge_path(Columns(), p.rows.X, p.rows.y, w, split, np.array([0.1, 10.0]))
    for alpha, f in zip((0.1, 10.0), mine, strict=True):
        theirs = refits(lambda a=alpha: Ridge(alpha=a), lambda m, X: m.predict(X), p.rows.X, p.rows.y, w, split)
        assert f[:, 0] == pytest.approx(theirs, abs=1e-4)


def test_forward_folds_leave_the_first_block_out():
    p = problem(120, time=np.arange(120.0))
    split = folds(p.rows)
    f = ridge_path(Columns(), p.rows.X, p.rows.y, None, split, np.array([1.0]))[0, :, 0]
    assert np.isnan(f[split.block == 0]).all()
    assert np.isfinite(f[split.tested()]).all()
    train, test = split.split(0)
    assert f[test] == pytest.approx(Ridge(alpha=1.0).fit(p.rows.X[train], p.rows.y[train]).predict(p.rows.X[test]), abs=1e-4)


def test_folds_without_training_rows_are_refused():
    with pytest.raises(ValueError, match="no fold"):
        refits(Ridge, lambda m, X: m.predict(X), np.zeros((2, 1)), np.zeros(2), None, Folds(np.zeros(2, int), (((1,), 0),)))


def test_a_test_fold_does_not_see_its_own_target():
    p = problem(300)
    split = folds(p.rows)
    _, test = split.split(0)
    y = p.rows.y.copy()
    y[test] += 100
    before, after = (ridge_path(Columns(), p.rows.X, v, None, split, np.array([1.0]))[0, test, 0] for v in (p.rows.y, y))
    assert before == pytest.approx(after, abs=1e-4)


@pytest.fixture
def narrow(monkeypatch):
    """Few features, for a quick search."""
    monkeypatch.setattr(search, "FIRST_SIZE", 64)


@pytest.mark.usefixtures("narrow")
def test_the_search_finds_a_kernel_that_beats_the_line():
    p = problem(900)
    best, here = halving(p, forever(), 1.0)
    line = attempt(here, LINEAR, 3)
    assert best.score.value > 0.6 > 0.2 > line.score.value


def test_without_time_a_few_are_tried_all_the_same():
    best, here = halving(problem(300), Clock(0), 1.0)
    assert np.isfinite(best.score.value)
    assert len(here.rows) == 300


@pytest.mark.usefixtures("narrow")
def test_the_search_is_the_same_each_time():
    a, b = (halving(problem(200, classes=2), forever(), 1.0)[0] for _ in range(2))
    assert (a.recipe, a.alpha, a.score.value) == (b.recipe, b.alpha, b.score.value)


def test_rungs_grow_and_end_at_all_rows():
    assert rungs(9000)[-1][0] == 9000
    assert rungs(10**7)[-1] == (32_000, 1024)


def test_slopes_tell_the_columns_that_matter():
    p = problem(1500)
    found = slopes(Recipe("fourier", Gaussian(1.5)).lift(256, 0), p.rows.X, p.rows.y[:, None], 0.1)
    assert min(found[0], found[1]) > 5 * found[2]
    kernel = followed(Recipe("fourier", Gaussian(1.5)), found, 0.5).kernel
    assert kernel.bandwidth[2] > 2 * max(kernel.bandwidth[:2])
    assert np.mean(1 / np.square(kernel.bandwidth)) == pytest.approx(1 / 1.5**2, rel=0.02)
    assert scaled(Recipe("fourier", kernel), 2.0).kernel.bandwidth[0] == pytest.approx(2 * kernel.bandwidth[0], rel=0.01)


KINDS = [LINEAR, EXPLICIT, Recipe("fourier", Gaussian(1.0)), Recipe("landmarks", Gaussian(1.0))]


@pytest.mark.parametrize("recipe", KINDS, ids=lambda r: r.kind)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_every_kind_is_compared_and_fitted(recipe, classes):
    p = problem(300, classes=classes)
    f = finalist(p, recipe, recipe.size(64, 3, 300))
    assert np.isfinite(f.score.value)
    predictor = fit(p, f, f.size, 1e9)
    found = predictor(p.rows.X)
    assert found.shape == ((300, classes) if classes else (300,))
    assert p.metric(p.rows.y, found).value > constant(p).score.value
    assert isinstance(predictor.estimator, KernelLogistic if classes else KernelRidge)
    assert not hasattr(predictor.estimator, "moments_")
    assert recipe.detail(64)


def test_the_simplest_within_an_error_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    line = Problem(Rows(X, X[:, 0] + 0.5 * rng.normal(size=400), np.arange(400)), METRICS["r2"], 0)
    found = [constant(line), *(finalist(line, r, 128) for r in (LINEAR, EXPLICIT, Recipe("fourier", Gaussian(1.0))))]
    assert choose(line, found).kind == "linear"
    noise = Problem(Rows(X, rng.normal(size=400), np.arange(400)), METRICS["r2"], 0)
    found = [constant(noise), *(finalist(noise, r, 128) for r in (LINEAR, Recipe("fourier", Gaussian(1.0))))]
    assert choose(noise, found).kind == "constant"
    wave = problem(600)
    found = [constant(wave), finalist(wave, LINEAR, 3), finalist(wave, Recipe("fourier", Gaussian(1.0)), 256)]
    assert choose(wave, found).kind == "fourier"


def test_kernels_range_from_smooth_to_rough_about_the_data():
    found = kernels(np.random.default_rng(0).normal(size=(100, 4)))
    assert {type(r.kernel).__name__ for r in found} == {"Gaussian", "Matern", "Laplace"}
    assert all(r.spelled for r in found)


@pytest.mark.parametrize("recipe", KINDS, ids=lambda r: r.kind)
def test_a_stream_is_like_all_rows_at_once(recipe, monkeypatch):
    p = problem(600)
    f = Finalist(recipe.kind, recipe, 64, 0.1, Identity(0.5, 2.0), None, 0.0)
    monkeypatch.setattr(refit, "NEARBY", np.ones(1))
    whole = fit(p, f, 64, 1e9)(p.rows.X)
    monkeypatch.setattr(refit, "STREAM", 100)
    monkeypatch.setattr(refit, "BATCH", 100)
    streamed = fit(p, f, 64, 1e9)(p.rows.X)
    if recipe.kind in ("linear", "fourier"):
        assert np.abs(streamed - whole).max() < 1e-3
    else:  # these learn their map from the first batch
        assert p.metric(p.rows.y, streamed).value > p.metric(p.rows.y, whole).value - 0.15


def test_indicators_are_not_expanded_beside_numbers():
    X = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    assert explicit(X) is EXPLICIT
    X[:, 2:] = X[:, 2:] > 0
    assert explicit(X[:, 2:]) is EXPLICIT
    recipe = explicit(X)
    phi = recipe.lift(100, 0).fit(X)
    assert (recipe.numbers, recipe.others) == ((0, 1), (2, 3))
    assert np.array_equal(phi.transform(X)[:, :2], X[:, 2:])
    assert phi.n_features_out_ > 10


def test_one_class_has_a_constant_model():
    p = problem(50, classes=2)
    one = Problem(Rows(p.rows.X, np.zeros(50, int), p.rows.number), p.metric, 2)
    f = Finalist("linear", LINEAR, 3, 1.0, Identity(), None, 0.0)
    assert np.array_equal(fit(one, f, 3, 1e9)(p.rows.X[:2]), [[1, 0], [1, 0]])


def test_weights_move_the_constant():
    assert Constant.of(np.array([0.0, 1.0]), np.array([1.0, 3.0]), 0).values == (0.75,)
    assert Constant.of(np.array([0, 2]), np.ones(2), 3).values == (0.5, 0.0, 0.5)
    assert bounds(np.array([1.0, 1.0])) == (1.0, 1.0)


def test_a_logarithm_is_tried_for_skewed_targets_only():
    y = np.exp(np.random.default_rng(0).normal(size=500))
    assert transformations(y) == [Identity(y.mean(), y.std()), Log()]
    assert transformations(np.append(y, 0.0))[1].shift > 0
    assert transformations(-y) == [Identity(-y.mean(), y.std())]
    assert transformations(np.ones(5)) == [Identity(1.0, 1.0)]


def test_a_target_far_from_zero_keeps_its_digits():
    p = problem(300)
    far = Problem(Rows(p.rows.X, 1e9 + p.rows.y, p.rows.number), p.metric, 0)
    near, there = (attempt(q, LINEAR, 3, targets=transformations(q.rows.y)).score.value for q in (p, far))
    assert there == pytest.approx(near, abs=1e-4)


def test_predictions_of_a_logarithm_are_means_again():
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    y = np.exp(z + 0.6 * rng.normal(size=4000))
    back = Log().smeared(y, z).back(z)
    assert back.mean() == pytest.approx(y.mean(), rel=0.1)
    assert np.exp(z).mean() < 0.9 * y.mean()
    assert np.isfinite(Log().smeared(y, z).back(np.array([1e6]))).all()


def test_a_skewed_target_gains_from_its_logarithm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)).astype(np.float32)
    p = Problem(Rows(X, np.exp(X[:, 0] * 1.2 + 0.1 * rng.normal(size=800)), np.arange(800)), METRICS["r2"], 0)
    found = attempt(p, LINEAR, 2, targets=transformations(p.rows.y))
    assert isinstance(found.target, Log)
    assert found.score.value > attempt(p, LINEAR, 2).score.value + 0.1


@pytest.mark.parametrize("target", [None, Log()])
def test_intervals_cover_what_they_promise_over_many_holdouts(target):
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        f = np.exp(rng.normal(size=200))
        y = f * np.exp(0.3 * rng.normal(size=200)) if target else f + rng.normal(size=200)
        low, high = intervals.margin(y[:100], f[:100], target)(f[100:])
        covered.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert 0.89 < np.mean(covered) < 0.93


def test_coverage_is_measured_on_other_rows_and_too_few_rows_have_no_interval():
    rng = np.random.default_rng(0)
    rows = Rows(np.zeros((500, 1)), rng.normal(size=500), np.arange(500))
    told = intervals.told(rows, np.zeros(500), intervals.margin(rows.y, np.zeros(500)), None)
    assert 0.85 < told["coverage_measured"] < 0.95
    assert "90 %" in told["guarantee"]
    assert not np.isfinite(intervals.margin(rows.y[:5], np.zeros(5)).width)


def test_measured_coverage_is_of_the_intervals_that_predict_emits():
    """Wider ones of unusual rows cover more, and ends that are cut off cover less."""
    rng = np.random.default_rng(0)
    rows, f = Rows(np.zeros((500, 1)), rng.normal(size=500), np.arange(500)), np.zeros(500)
    assert intervals.told(rows, f, intervals.margin(rows.y, f), None, wider=np.full(500, 5.0))["coverage_measured"] == 1.0
    cut = intervals.told(rows, f, intervals.margin(rows.y, f, low=0.0), None)["coverage_measured"]
    assert cut == pytest.approx(np.mean(rows.y >= 0), abs=0.06)


@pytest.mark.parametrize("width", [0.5, 800.0, np.inf])
def test_ends_of_intervals_of_a_logarithm_are_never_nan(width):
    low, high = intervals.Margin(width, shift=1.0)(np.array([-1.0, 0.0, 3.0]), np.array([1.0, 2.0, 1.0]))
    assert not np.isnan([*low, *high]).any()
    assert np.all(low <= high)
    assert np.isinf(high).all() == (width == np.inf)


def test_a_threshold_finds_the_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=3000) < 0.04).astype(int)
    p = np.clip(0.08 * y + 0.03 * rng.uniform(size=3000), 0, 1)
    P = np.stack([1 - p, p], axis=1)
    rule = for_rare(y, P)
    assert rule.code == 1
    assert f1_score(y, rule(P)) > 0.95
    assert f1_score(y, Decision()(P)) == 0


def test_indicators_of_a_category_become_one_column_of_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    X = np.concatenate([rng.normal(size=(200, 1)), np.eye(4)[codes], rng.normal(size=(200, 1))], axis=1).astype(np.float32)
    design = trees.Design.of([0, 1, 1, 1, 1, 1], ["number", "category"], X)
    found = design(X)
    assert design.categorical.tolist() == [False, False, True]
    assert np.array_equal(found[:, 2], codes)
    assert np.array_equal(found[:, :2], X[:, [0, 5]])


@pytest.mark.parametrize("classes", [0, 3])
def test_trees_learn_and_say_on_how_many_rows(classes):
    p = problem(300, classes=classes)
    grown, used = trees.grow(p.rows, trees.Design((0, 1, 2), ()), classes, 0, forever(), 10.0)
    assert used == 300
    assert p.metric(p.rows.y, grown(p.rows.X)).value > 0.5


def test_a_shuffled_column_that_matters_costs_most():
    p = problem(600)
    f = finalist(p, Recipe("fourier", Gaussian(1.0)), 256)
    found = evaluate.importance(fit(p, f, 256, 1e9), p.rows, p.metric, [0, 1, 2], ["a", "b", "c"])
    assert {found[0][0], found[1][0]} == {"a", "b"}
    assert abs(found[2][1]) < 0.1 < found[1][1]
    assert found[0][2] > 0


def test_sizes_tell_how_many_rows_are_shuffled(monkeypatch):
    p = problem(600)
    model = fit(p, finalist(p, LINEAR, 3), 3, 1e9)
    asked = []
    known = type("Known", (), {"predict": lambda self, X: asked.append(len(X)) or X[:, 0]})
    watched = dataclasses.replace(model, estimator=known())
    for work, rows, repeats in ((1e10, 600, 3), (600 * 3 * 10.0, 600, 1), (1.0, evaluate.LEAST, 1)):
        monkeypatch.setattr(evaluate, "WORK", work)
        monkeypatch.setattr(evaluate, "met", lambda predictor: 10.0)
        asked.clear()
        evaluate.importance(watched, p.rows, p.metric, [0, 1, 2], ["a", "b", "c"])
        assert asked == [rows] * (1 + 3 * repeats)
    monkeypatch.undo()
    assert 3 < evaluate.met(model) < 100


def test_targets_that_have_no_logarithm_make_intervals_wide_and_no_warning():
    y = np.r_[np.ones(18), 0.0, -1.0]
    assert intervals.margin(y, np.ones(20), Log()).width == np.inf
    assert intervals.margin(y, np.ones(20), Log(2.0)).width < 2.0


def test_rows_of_weight_in_one_class_only_have_a_constant_model():
    p = problem(100, classes=2, weight=np.zeros(100))
    p.rows.weight[np.flatnonzero(p.rows.y == 1)] = 1.0
    found = fit(p, finalist(p, LINEAR, 3), 3, 1e9)
    assert isinstance(found, Constant)
    assert found.values == (0.0, 1.0)


def test_worst_rows_are_the_most_wrong_and_counted_from_one():
    rows = Rows(np.zeros((4, 1)), np.array([0.0, 0.0, 0.0, 0.0]), np.arange(10, 14))
    found = evaluate.worst(rows, np.array([0.0, 3.0, -5.0, 1.0]), ())
    assert [r["row"] for r in found[:2]] == [13, 12]
    labels = Rows(np.zeros((3, 1)), np.array([0, 1, 1]), np.arange(3))
    found = evaluate.worst(labels, np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), ("no", "yes"))
    assert [(r["row"], r["actual"]) for r in found] == [(2, "yes"), (3, "yes")]


def test_calibration_counts_every_row_once():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=5000)
    found = evaluate.calibration((rng.uniform(size=5000) < p).astype(int), np.stack([1 - p, p], axis=1))
    assert sum(count for _, _, count in found) == 5000
    assert all(abs(mean - share) < 0.06 for mean, share, _ in found)


def test_more_features_where_time_allows_and_fewer_rows_where_it_does_not():
    p = problem(1000)
    f = Finalist("fourier", Recipe("fourier", Gaussian(1.0)), 256, 1.0, Identity(), None, 1.0)
    assert refit.size(p, f, 1000, 1e6, 4e9).features == 1024
    assert refit.size(p, f, 10**8, 1.0, 4e9).rows < 10**8
    assert refit.size(p, f, 1000, 1e6, 1e6).features == 256


def rival(value, low, high):
    return verdict.Rival("x", 0.8, (value, low, high))


def test_the_verdict_says_who_won():
    m = METRICS["r2"]
    first = verdict.sentence(m, "Fourier features", 0.75, 0.7, 0.8, 1000)
    assert "0.750" in first
    assert "1,000 rows" in first
    assert "trees are better" in verdict.verdict(m, "fourier", first, rival(0.1, 0.05, 0.15), rival(-0.05, -0.08, -0.02))
    assert "beats" in verdict.verdict(m, "fourier", first, None, rival(0.05, 0.02, 0.08))
    assert "about as good" in verdict.verdict(m, "fourier", first, None, rival(0.01, -0.02, 0.04))
    assert "constant" in verdict.verdict(m, "constant", first, None, None)
    assert "linear model was kept" in verdict.verdict(m, "linear", first, None, None)


@pytest.mark.parametrize("name", ["r2", "rmse", "accuracy"])
@pytest.mark.parametrize("gap", [1e-9, -1e-9, 1e-4, -1e-4])
def test_a_difference_that_rounds_to_zero_is_none(name, gap):
    size = 10_000.0 if name == "rmse" else 1.0
    other = verdict.Rival("x", 0.81249 * size, (gap * size * 0.1, 0.5 * gap * size * 0.1, 1.5 * gap * size * 0.1))
    for text in (verdict.against_linear(METRICS[name], other), verdict.against_trees(METRICS[name], other)):
        assert "no difference in the digits shown" in text
        assert " by " not in text


@pytest.mark.parametrize("n", [*range(1, 40), 1000])
def test_shares_of_all_rows_are_one_exactly(n):
    y, w = np.arange(n) % 2, np.random.default_rng(n).uniform(0.1, 3, n)
    for name in ("accuracy", "balanced_accuracy", *(["auc"] if n > 1 else [])):
        assert METRICS[name](y, np.eye(2)[y], w).value == 1.0
        assert METRICS[name](y, np.eye(2)[y], np.full(n, 0.1)).value == 1.0
    right = np.arange(n) % 3 == 0
    assert METRICS["accuracy"](np.zeros(n, int), np.eye(2)[1 - right], np.ones(n)).value == right.sum() / n


def test_where_less_is_better_the_verdict_turns_round():
    m = METRICS["rmse"]
    assert "trees are better" in verdict.against_trees(m, rival(2.0, 1.0, 3.0))
    assert "beats" in verdict.against_trees(m, rival(-2.0, -3.0, -1.0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_more_columns_than_rows_give_what_refits_give(weighted, timed):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, size=(60, 90)).astype(np.float32)
    y, w = X[:, 0] + rng.normal(size=60), rng.uniform(0.5, 2, 60) if weighted else None
    split = folds(Rows(X, y, np.arange(60), time=np.arange(60.0) if timed else None))
    tested = split.tested()
    mine = ridge_path(Columns(), X, np.stack([y, -2 * y], axis=1), w, split, np.array([0.1, 10.0]))
    for alpha, f in zip((0.1, 10.0), mine, strict=True):
        theirs = refits(lambda a=alpha: Ridge(alpha=a), lambda m, X: m.predict(X), X, y, w, split)
        assert f[tested, 0] == pytest.approx(theirs[tested], abs=1e-3)
        assert f[tested, 1] == pytest.approx(-2 * theirs[tested], abs=2e-3)
    assert np.isnan(mine[:, np.setdiff1d(np.arange(60), tested)]).all()


def test_the_dual_and_the_moments_agree_on_rows_without_weight(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(60, 90)).astype(np.float32), rng.normal(size=60), rng.integers(0, 2, 60).astype(float)
    split = folds(Rows(X, y, np.arange(60)))
    dual = ridge_path(Columns(), X, y, w, split, np.array([1.0]))
    monkeypatch.setattr(crossval, "MOST_DUAL", 0)
    assert dual == pytest.approx(ridge_path(Columns(), X, y, w, split, np.array([1.0])), abs=1e-3)


def test_trees_stop_where_time_is_up_and_say_so(monkeypatch):
    p = problem(300)
    monkeypatch.setattr(trees, "LEAST_SECONDS", 0.0)
    design = trees.Design((0, 1, 2), ())
    short, whole = (trees.grow(p.rows, design, 0, 0, forever(), s)[0] for s in (0.0, 1e6))
    assert (short.rounds, whole.rounds) == (trees.FIRST, trees.ROUNDS)
    assert short.estimator.n_iter_ == trees.FIRST
    assert np.array_equal(whole(p.rows.X), HistGradientBoostingRegressor(random_state=0).fit(p.rows.X, p.rows.y).predict(p.rows.X))


def test_nothing_is_said_of_starved_rivals_unless_they_win():
    m = METRICS["r2"]
    for value, low, high in ((0.05, 0.02, 0.08), (0.01, -0.02, 0.04)):
        text = verdict.against_trees(m, verdict.Rival("x", 0.8, (value, low, high), "grown on only 1,000 rows"))
        assert text == "Gradient-boosted trees were grown on only 1,000 rows, so nothing is said of them."
    assert "trees are better" in verdict.against_trees(m, verdict.Rival("x", 0.8, (-0.05, -0.08, -0.02), "grown on only 1,000 rows"))
    assert "nothing is said" in verdict.against_linear(m, verdict.Rival("x", 0.8, (0.05, 0.02, 0.08), "fitted on only 1,000 rows"))


def test_scores_far_apart_are_not_called_alike():
    text = verdict.against_trees(METRICS["auc"], verdict.Rival("x", 0.306, (0.194, -0.1, 0.5)))
    assert "about as good" not in text
    assert "do not tell" in text
    assert "about as good" in verdict.against_trees(METRICS["rmse"], verdict.Rival("x", 1000.0, (10.0, -20, 40)))


def test_one_row_more_is_no_reason_for_a_more_flexible_model():
    y = np.arange(140) % 2
    p = Problem(Rows(np.zeros((140, 1), np.float32), y, np.arange(140)), METRICS["accuracy"], 2)
    right = np.eye(2)[y]
    almost = right.copy()
    almost[0] = almost[0, ::-1]
    simple, flexible = (
        Finalist(kind, None, 0, 0.0, Identity(), METRICS["accuracy"](y, P), 0.0) for kind, P in (("linear", almost), ("fourier", right))
    )
    assert choose(p, [simple, flexible]) is simple
    worse = right.copy()
    worse[:10] = worse[:10, ::-1]
    far = Finalist("linear", None, 0, 0.0, Identity(), METRICS["accuracy"](y, worse), 0.0)
    assert choose(p, [far, flexible]) is flexible


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["auc", "balanced_accuracy"])
def test_a_constant_is_at_chance_however_rare_a_class_is(name, seed):
    y = np.zeros(300, int)
    y[np.random.default_rng(seed).choice(300, 7, replace=False)] = 1
    p = Problem(Rows(np.zeros((300, 1), np.float32), y, np.arange(300)), METRICS[name], 2, seed)
    assert constant(p).score.value == pytest.approx(0.5)


def test_cheap_contenders_take_part_however_short_the_time_is():
    p = problem(300)
    found = contest(p, Clock(1e3, start=time.perf_counter() - 1e4))
    assert {"linear", "explicit", "fourier", "landmarks"} <= {f.kind for f in found.found}
    assert [name for name, _ in contest(p, Clock(1e-6)).left_out] == ["Explicit lift", "Landmarks", "Kernel machine"]


@pytest.mark.parametrize("classes", [0, 2])
def test_a_kind_that_takes_too_long_is_given_up_between_folds(classes, monkeypatch):
    with pytest.raises(Late):
        finalist(problem(200, classes=classes), LINEAR, 3, until=Clock(0, start=0.0))
    monkeypatch.setattr(contests, "_enter", lambda here, recipe, best, until, targets: until.check() or finalist(here, LINEAR, 3))
    monkeypatch.setattr(contests, "_left", lambda clock: -1.0)
    monkeypatch.setattr(contests, "PATIENCE", -1.0)
    found: list = []
    best = attempt(problem(200), LINEAR, 3)
    assert contests._tried(problem(200), EXPLICIT, best, forever(), found, ()) == "it took too long"
    assert contests._tried(problem(200), LINEAR, best, forever(), found, ()) == ""
    assert [f.kind for f in found] == ["linear"]


def test_many_columns_are_compared_on_fewer_rows_where_time_is_short():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 400)).astype(np.float32)
    p = Problem(Rows(X, X[:, 0], np.arange(3000)), METRICS["r2"], 0)
    best = search.Tried(Recipe("fourier", Gaussian(1.0)), 64, 1.0, Identity(), constant(p).score, 1.0)
    assert len(contests._affordable(p, p, best, Clock(1.0)).rows) == contests.FEWEST
    assert contests._affordable(p, p, best, forever()) is p
