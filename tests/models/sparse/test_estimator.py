"""Sparse models as users meet them."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import Lasso, LassoCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures

import mercer
from mercer import SparseClassifier, SparseRegressor
from mercer.lifts import Identity, Jumps, KitchenSink, Monomials
from mercer.models.sparse import fit as fitting
from mercer.models.sparse import solve, stored, working_set
from mercer.ops import threads
from tests.contract import keeps_contract
from tests.peers import sparse_logistic

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 6))
Y = 2 * X[:, 0] - X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=150)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-1.0, 1.0])]
QUICK = dict(n_alphas=8, eps=0.05)


LINEAR = dict(lift=Identity(), n_alphas=3, eps=0.3, cv=2, refit=False)


@pytest.mark.parametrize(
    "model",
    [
        SparseRegressor(**LINEAR),
        SparseClassifier(**LINEAR, tol=1e-10),
        pytest.param(SparseRegressor(n_alphas=20), marks=pytest.mark.long),
        pytest.param(SparseClassifier(n_alphas=5, eps=0.1, tol=1e-10), marks=pytest.mark.long),
    ],
    ids=["regressor", "classifier", "regressor of a sink", "classifier of a sink"],
)
def test_check_estimator(model):
    # Knots and thresholds are quantiles of the rows, however often each counts. Regressors of the
    # same sink pass: the rows of that check pick linear terms alone.
    why = {"check_sample_weight_equivalence_on_dense_data": "quantiles are of rows"}
    expected = why if isinstance(model, SparseClassifier) and model.lift is None else {}
    keeps_contract(model, expected)


# what is found
def test_a_product_and_a_column_are_found_by_name():
    m = SparseRegressor().fit(X, Y)
    assert set(m.names_) >= {"x0", "x1*x2"}
    assert len(m.names_) <= 6
    assert m.score(X, Y) > 0.9
    assert m.gap_ < 1e-12
    assert m.coef_.shape == (m.path_.width,)
    assert np.flatnonzero(m.coef_).tolist() == sorted(m.support_.tolist())
    assert m.path_.alphas[0] > m.alpha_ > m.path_.alphas[-1]
    assert m.path_.sizes[0] == 0
    assert (m.path_.gaps <= 1e-12).all()


def test_noise_alone_keeps_nothing_in_most_draws():
    kept = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        m = SparseRegressor(Identity(), n_alphas=30).fit(
            rng.normal(size=(80, 8)), rng.normal(size=80)
        )
        kept.append(len(m.support_))
    assert sum(k == 0 for k in kept) > 30


def test_it_is_the_lasso_of_scikit_learn():
    """On columns as they are, with one penalty, or with folds and the rule of the least loss."""
    F = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    w = RNG.random(150)
    mine = SparseRegressor(Identity(), alpha=0.05, scale=None, refit=False).fit(F, Y, w)
    peer = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(F, Y, w)
    np.testing.assert_allclose(mine.coef_, peer.coef_, atol=1e-8)
    assert mine.intercept_ == pytest.approx(peer.intercept_)
    cv = list(KFold(5).split(F))
    mine = SparseRegressor(Identity(), scale=None, refit=False, cv=cv, rule="min").fit(F, Y)
    peer = LassoCV(cv=cv, tol=1e-10, max_iter=100_000).fit(F, Y)
    np.testing.assert_allclose(mine.path_.alphas, peer.alphas_)
    np.testing.assert_allclose(mine.cv_losses_, peer.mse_path_, rtol=1e-6)
    assert mine.alpha_ == pytest.approx(peer.alpha_)


def test_it_is_the_logistic_regression_of_scikit_learn():
    mine = SparseClassifier(Identity(), alpha=0.02, scale=None, tol=1e-12).fit(X, LABELS)
    peer = sparse_logistic(C=1 / (0.02 * 150), tol=1e-11).fit(X, LABELS)
    np.testing.assert_allclose(mine.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(mine.predict_log_proba(X), np.log(mine.predict_proba(X)))
    assert mine.coef_.shape == (3, 6)
    assert mine.score(X, LABELS) > 0.7


def test_scale_says_in_which_units_features_count():
    Z = X * [1, 10, 100, 1, 1, 1]
    unit = SparseRegressor(Identity(), alpha=0.1).fit(Z, Y)
    S = (Z - Z.mean(0)) / Z.std(0)
    peer = Lasso(alpha=0.1, tol=1e-12).fit(S, Y)
    np.testing.assert_allclose(unit.coef_ * Z.std(0), peer.coef_, atol=1e-9)
    raw = SparseRegressor(Monomials(2), alpha=0.01, scale="columns").fit(Z, Y)
    F = PolynomialFeatures(2).fit_transform(Z / np.abs(Z).max(0))
    peer = Lasso(alpha=0.01, tol=1e-12, max_iter=100_000).fit(F, Y)
    np.testing.assert_allclose(raw.coef_, peer.coef_, atol=1e-8)
    told = [m.plan_.settings["scale"] for m in (unit, raw)]
    assert told[0] == "columns as they are, then features of unit variance"
    assert told[1] == "columns to [-1, 1], then features as they come"


# laws
@pytest.mark.parametrize("lift", [None, Monomials(3, include_bias=False)], ids=["sink", "cubic"])
@pytest.mark.parametrize("scale", ["unit", "columns"])
def test_permuted_or_rescaled_columns_give_the_same_model(lift, scale):
    m = SparseRegressor(lift, scale=scale, n_alphas=20).fit(X, Y)
    units = np.array([1e9, 1e-9, 3.0, 7.0, 1e3, 1.0])
    other = SparseRegressor(lift, scale=scale, n_alphas=20).fit(X * units, Y)
    np.testing.assert_allclose(other.predict(X * units), m.predict(X), rtol=1e-7, atol=1e-9)
    order = [4, 2, 0, 1, 5, 3]
    permuted = SparseRegressor(lift, scale=scale, n_alphas=20).fit(X[:, order], Y)
    np.testing.assert_allclose(permuted.predict(X[:, order]), m.predict(X), rtol=1e-7, atol=1e-9)
    assert len(permuted.names_) == len(other.names_) == len(m.names_)


def test_copies_and_what_others_make_up_are_kept_once_and_named():
    Z = np.column_stack([X[:, :3], X[:, 0], X[:, 1] + X[:, 2], np.ones(150), np.sign(X[:, 0])])
    plain = SparseRegressor(Identity(), **QUICK).fit(X[:, :3], Y)
    m = SparseRegressor(Identity(), **QUICK).fit(Z, Y)
    told = m.plan_.settings
    assert told["copies"] == "1 kept once: x3 = x0"
    assert told["constant"] == "1: x5"
    assert told["dependent"] == "1: x4 are made up by others"
    assert 3 not in m.support_
    assert m.path_.gaps.max() < 1e-12
    assert m.score(Z, Y) >= plain.score(X[:, :3], Y) - 0.05
    flags = np.column_stack([X[:, 0] > 0, X[:, 1]]).astype(float)
    cubic = SparseRegressor(Monomials(3, include_bias=False), **QUICK).fit(flags, Y)
    assert "x0^2 = x0, x0^3 = x0" in cubic.plan_.settings["copies"]


@pytest.mark.parametrize("made", [SparseRegressor, SparseClassifier])
def test_sparse_rows_and_dense_ones_agree(made):
    Z = X * (RNG.random(X.shape) < 0.25)
    y = Y if made is SparseRegressor else LABELS
    quick = dict(n_alphas=4, eps=0.2, cv=3)
    dense = made(Identity(), **quick).fit(Z, y)
    sparse = made(**quick).fit(sp.csr_array(Z), y)
    ask = "predict" if made is SparseRegressor else "decision_function"
    a, b = getattr(dense, ask)(Z), getattr(sparse, ask)(sp.csr_array(Z))
    np.testing.assert_allclose(a, b, atol=1e-3 if made is SparseClassifier else 1e-10)
    np.testing.assert_allclose(getattr(sparse, ask)(Z), b, atol=1e-12)


@pytest.mark.parametrize("made", [SparseRegressor, SparseClassifier])
def test_float32_rows_give_nearly_the_same(made):
    y = Y if made is SparseRegressor else LABELS
    # the places of columns that fall together in float32 aside
    quick = dict(n_alphas=4, eps=0.2, cv=2, tol=1e-8)
    big = made(Monomials(2), **quick).fit(X.astype(np.float32).astype(np.float64), y)
    small = made(Monomials(2), **quick).fit(X.astype(np.float32), y)
    ask = "predict" if made is SparseRegressor else "decision_function"
    found = getattr(small, ask)(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, getattr(big, ask)(X), atol=2e-3)


def test_rows_of_no_weight_do_not_count():
    w = np.ones(150)
    w[100:] = 0
    a = SparseRegressor(**QUICK).fit(X, Y, w)
    b = SparseRegressor(**QUICK).fit(X[:100], Y[:100])
    np.testing.assert_allclose(a.predict(X), b.predict(X))
    lost = np.where(np.arange(150) < 100, LABELS, "d")
    c = SparseClassifier(Identity(), **QUICK).fit(X, lost, w)
    assert c.classes_.tolist() == ["a", "b", "c"]


def test_groups_are_not_divided():
    groups = np.repeat(np.arange(10), 15)
    m = SparseRegressor(Identity(), **QUICK).fit(X, Y, groups=groups)
    assert m.cv_losses_.shape == (8, 5)
    assert not np.allclose(m.cv_losses_, SparseRegressor(Identity(), **QUICK).fit(X, Y).cv_losses_)


# refits and stability
def test_a_refit_is_kept_only_where_folds_prefer_it(monkeypatch):
    strong = SparseRegressor(Identity(), rule="1se").fit(
        X, 5 * X[:, 0] + 0.1 * RNG.normal(size=150)
    )
    assert strong.plan_.settings["refit"].startswith("ridge")
    assert strong.coef_[0] == pytest.approx(5, rel=0.01)
    assert abs(strong.path_.coef[strong.model_.place, 0]).max() < 4.99
    asked = []

    def never(folds, i, loss):
        asked.append(loss)
        return None, loss

    monkeypatch.setattr(fitting, "preferred", never)
    kept = SparseRegressor(Identity()).fit(X, Y)
    ids, coef, _ = kept.path_.at(kept.model_.place)
    assert kept.plan_.settings["refit"] == "no"
    np.testing.assert_array_equal(kept.coef_[ids], coef[0])
    assert asked == [pytest.approx(kept.cv_losses_.mean(1)[kept.model_.place])]
    assert SparseRegressor(Identity(), refit=False).fit(X, Y).model_.ridge is None


def test_stability_is_a_share_of_half_samples():
    m = SparseRegressor(stability=10, rule="min", **QUICK).fit(X, Y)
    shares = dict(zip(m.names_, m.stability_, strict=True))
    assert shares["x0"] == shares["x1*x2"] == 1
    assert ((m.stability_ >= 0) & (m.stability_ <= 1)).all()
    assert min(shares.values()) < 1
    assert "stability" in m.table_
    again = SparseRegressor(stability=10, rule="min", **QUICK).fit(X, Y)
    np.testing.assert_array_equal(again.stability_, m.stability_)
    with pytest.raises(AttributeError, match="stability=50"):
        SparseRegressor(Identity(), **QUICK).fit(X, Y).stability_  # noqa: B018
    c = SparseClassifier(Identity(), stability=3, **QUICK).fit(X, LABELS)
    assert c.stability_.max() == 1


# bad input
def test_a_target_that_does_not_vary_keeps_nothing():
    m = SparseRegressor(**QUICK).fit(X, np.full(150, 3.0))
    assert len(m.support_) == 0
    np.testing.assert_allclose(m.predict(X), 3.0)
    assert str(m.formula_) == "3"
    np.testing.assert_allclose(m.formula_(X), 3.0)


def test_columns_that_do_not_vary_keep_nothing():
    for Z in (np.ones((20, 3)), sp.csr_array(np.zeros((20, 3)))):
        m = SparseRegressor(**QUICK).fit(Z, Y[:20])
        assert len(m.support_) == 0
        np.testing.assert_allclose(m.predict(Z), Y[:20].mean())
        c = SparseClassifier(**QUICK).fit(Z, Y[:20] > 0)
        np.testing.assert_allclose(c.predict_proba(Z)[:, 1], np.mean(Y[:20] > 0))


def test_one_row_and_few_rows():
    m = SparseRegressor().fit(X[:1], Y[:1])
    assert m.predict(X[:2]) == pytest.approx(np.full(2, Y[0]))
    assert "too few rows" in m.plan_.settings["folds"]
    for n in (2, 3, 7):
        assert np.isfinite(SparseRegressor(**QUICK).fit(X[:n], Y[:n]).predict(X)).all()
    two = SparseClassifier(**QUICK).fit(X[:2], ["a", "b"])
    assert len(two.support_) == 0
    with pytest.raises(ValueError, match=r"y has one class only, 0.0; give rows of two .* more\."):
        SparseClassifier().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match=r"zero for every row|at least one non-zero"):
        SparseRegressor().fit(X, Y, np.zeros(150))


def test_penalties_that_are_none_and_those_above_the_largest():
    for alpha in (0, -1.0, "best", True, None, np.nan):
        with pytest.raises(ValueError, match="alpha must be 'cv' or a number > 0"):
            SparseRegressor(alpha=alpha).fit(X, Y)
    m = SparseRegressor(alpha=1e6).fit(X, Y)
    assert len(m.support_) == 0
    assert m.path_.alphas.tolist() == [1e6]
    assert m.gap_ == pytest.approx(0, abs=1e-14)
    few = SparseRegressor(Identity(), n_alphas=500, alpha="cv").fit(X[:, :1], Y)
    assert len(few.path_) == 500
    assert few.path_.sizes.max() == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(eps=2.0), "eps must be less than 1"),
        (dict(l1_ratio=0.0), "l1_ratio must be a number > 0"),
        (dict(l1_ratio=1.5), r"l1_ratio must be in \(0, 1\]"),
        (dict(rule="2se"), "rule must be '1se' or 'min'"),
        (dict(scale="range"), "scale must be 'unit', 'columns' or None"),
        (dict(stability=-1), "stability must be a number of half-samples"),
        (dict(n_alphas=0), "n_alphas must be an integer >= 1"),
        (dict(refit="yes"), "refit must be True or False"),
        (dict(tol=0.0), "tol must be a number > 0"),
        (dict(lift="cubic"), "lift must be a map of mercer.lifts"),
        (dict(cv=1), "cv must be a number of folds >= 2"),
        (dict(memory_limit="much"), "memory_limit must be a number of bytes"),
    ],
)
def test_settings_are_refused_by_name(options, said):
    for made in (SparseRegressor, SparseClassifier):
        model = made(**options)
        with pytest.raises(ValueError, match=said):
            model.fit(X, LABELS if made is SparseClassifier else Y)
        assert not hasattr(model, "model_")
        assert not hasattr(model, "n_features_in_") or options.get("cv") == 1


def test_expansions_beyond_memory_are_refused_with_their_size():
    lift = KitchenSink()
    said = r"features of 150 rows take .* more than memory_limit \(10 kB\)"
    with pytest.raises(ValueError, match=said):
        SparseRegressor(lift, memory_limit=1e4).fit(X, Y)


@pytest.mark.parametrize("lift", [None, Monomials(3, include_bias=False)], ids=["sink", "cubic"])
def test_a_gram_matrix_is_summed_over_features_that_memory_does_not_hold(lift):
    rng = np.random.default_rng(3)
    Z = np.hstack([rng.normal(size=(3000, 3)), rng.random((3000, 1)) < 0.4])
    Z[:, 2] += 1e6
    Z = np.hstack([Z, 2 * Z[:, :1], np.ones((3000, 1))])  # a copy, a constant
    y = Z[:, 0] * Z[:, 1] - (Z[:, 2] - 1e6) + Z[:, 3] + 0.1 * rng.normal(size=3000)
    w = rng.integers(1, 3, size=3000)
    few = dict(n_alphas=20, eps=0.01, cv=3)
    whole = SparseRegressor(lift, **few).fit(Z, y, w)
    D = whole.model_.map.width
    some = SparseRegressor(lift, memory_limit=max(8 * D**2, 1000 * D), **few).fit(Z, y, w)
    assert "made anew" in some.plan_.why
    assert "kept once" in some.plan_.settings["copies"]
    assert some.names_ == whole.names_
    np.testing.assert_allclose(some.predict(Z), whole.predict(Z), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(some.cv_losses_, whole.cv_losses_, rtol=1e-7)
    with pytest.raises(ValueError, match="features of 3,000 rows take"):
        SparseClassifier(lift, memory_limit=1000 * D, **few).fit(Z, y > 0)


def test_streamed_features_take_little_memory():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(20_000, 5))
    m = SparseRegressor(KitchenSink(200), 0.05, n_alphas=3, memory_limit=1e7, refit=False)
    m.fit(Z[:500], Z[:500, 0])  # whatever is loaded or compiled at first
    tracemalloc.start()
    m.fit(Z, Z[:, 0] * Z[:, 1])
    held = 8 * 20_000 * m.model_.map.width
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "made anew" in m.plan_.why
    assert peak < held


def test_missing_values_and_large_targets_are_refused():
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SparseRegressor().fit(bad, Y)
    with pytest.raises(ValueError, match="y is too large"), np.errstate(over="ignore"):
        SparseRegressor().fit(X, Y * 1e200)


@pytest.mark.parametrize("made", [SparseRegressor, SparseClassifier])
def test_columns_of_any_scale_and_offset(made):
    Z = X * [1e9, 1e-9, 1, 1, 1, 1] + [0, 0, 1e6, -1e6, 0, 0]
    y = Y if made is SparseRegressor else LABELS
    m = made(Monomials(2), **QUICK).fit(Z, y)
    assert np.isfinite(m.coef_).all()
    assert m.score(Z, y) > 0.6
    assert m.path_.gaps.max() <= 1e-6
    f = m.formula_ if made is SparseRegressor else m.formula_["a"]
    want = m.predict(Z) if made is SparseRegressor else m.decision_function(Z)[:, 0]
    np.testing.assert_allclose(f(Z), want, atol=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_columns_as_they_are_count_whatever_stands_beside_them(ratio):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(80, 5)) * [1e9, 1, 1, 0.1, 1]
    y = Z @ [1e-9, 1, -1, 10, 0.5] + 0.1 * rng.normal(size=80)
    m = SparseRegressor(Identity(), 1e-8, n_alphas=10, scale=None, l1_ratio=ratio).fit(Z, y)
    A = np.column_stack([np.ones(80), Z])
    A = A / np.abs(A).max(0)
    want = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(m.predict(Z), want, atol=1e-3)  # so small a penalty hardly counts
    c = SparseClassifier(Identity(), 1e-4, n_alphas=5, scale=None, l1_ratio=ratio)
    assert c.fit(Z, y > 0).path_.gaps.max() <= 1e-6


def test_classes_that_are_parted_and_near_copies_under_a_tiny_penalty():
    rng = np.random.default_rng(124)
    Z = rng.normal(size=(100, 4))
    Z[:, 3] = Z[:, 0] + 1e-7 * rng.normal(size=100)
    three = np.digitize(Z[:, 0] + Z[:, 1], [-0.5, 0.5])
    tiny = dict(alpha=1e-8, n_alphas=1, scale="columns")
    assert SparseClassifier(Jumps(), l1_ratio=0.05, **tiny).fit(Z, three).gap_ <= 1e-6
    m = SparseRegressor(alpha=1e-8, n_alphas=1, l1_ratio=0.5).fit(Z[:60], rng.normal(size=60))
    assert m.gap_ <= 1e-6


def test_sparse_rows_that_are_all_offset():
    Z = sp.csr_array(X + 1e6)
    m = SparseRegressor(**QUICK).fit(Z, Y)
    np.testing.assert_allclose(
        m.predict(Z), SparseRegressor(Identity(), **QUICK).fit(X, Y).predict(X), atol=1e-6
    )
    c = SparseClassifier(alpha=0.02, n_alphas=3).fit(Z, LABELS)
    assert c.path_.gaps.max() <= 1e-6


def test_an_end_short_of_its_tolerance_is_a_warning_with_the_figure(monkeypatch):
    monkeypatch.setattr(working_set, "STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="a relative gap of .* above tol=1e-12"):
        SparseClassifier(Identity(), alpha=0.01, tol=1e-12, n_alphas=2).fit(X, LABELS)


HOSTILE = {
    "whole": lambda r, X: r.integers(-3, 4, size=X.shape) / 1.0,
    "flags": lambda r, X: (X > 0) / 1.0,
    "a line": lambda r, X: np.outer(X[:, 0], r.normal(size=X.shape[1])),
    "rows again": lambda r, X: X[r.integers(max(1, len(X) // 3), size=len(X))],
    "offsets": lambda r, X: X + 1e6 * r.normal(size=X.shape[1]),
    "scales": lambda r, X: X * 10.0 ** r.integers(-9, 10, size=X.shape[1]),
    "heavy tails": lambda r, X: np.exp(3 * X),
    "near copies": lambda r, X: X[:, :1] + 1e-7 * X,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_rows_of_drawn_shapes(kind, seed):
    rng = np.random.default_rng([seed, len(kind)])
    shape = (int(rng.choice([2, 5, 20, 80])), int(rng.choice([1, 3, 12])))
    Z = HOSTILE[kind](rng, rng.normal(size=shape))
    y = rng.normal(size=len(Z)) + Z[:, -1] / np.abs(Z[:, -1]).max()
    lift = [None, Identity(), Monomials(3, include_bias=False)][seed]
    w = rng.integers(1, 3, size=len(y))
    ratio = float(rng.choice([0.5, 1.0]))
    m = SparseRegressor(lift, l1_ratio=ratio, n_alphas=15, rule="min").fit(Z, y, w)
    assert m.path_.gaps.max() <= 1e-9
    np.testing.assert_allclose(m.formula_(Z), m.predict(Z), rtol=1e-9, atol=1e-9)
    quick = dict(n_alphas=3, eps=0.1, cv=2)
    c = SparseClassifier(lift, l1_ratio=ratio, **quick).fit(Z, y > np.median(y), w)
    assert c.path_.gaps.max() <= 1e-6
    np.testing.assert_allclose(c.predict_proba(Z).sum(1), 1)


# texts and memory
def test_a_lift_of_texts():
    words = RNG.choice(["good", "bad", "film", "plot", "cast", "long"], size=(120, 5))
    texts = [" ".join(row) for row in words]
    y = np.where((words == "good").sum(1) > (words == "bad").sum(1), "yes", "no")
    m = SparseClassifier(CountVectorizer(), **QUICK).fit(texts, y)
    assert {"good", "bad"} <= set(m.names_)
    assert m.score(texts, y) > 0.9
    assert dict(zip(m.table_["feature"], m.table_["sign"], strict=True))["bad"] == -1
    assert m.predict(["good good film"]).tolist() == ["yes"]
    hashed = SparseClassifier(HashingVectorizer(n_features=64), **QUICK).fit(texts, y)
    assert hashed.score(texts, y) > 0.9
    r = SparseRegressor(CountVectorizer(), **QUICK).fit(texts, (words == "good").sum(1) * 2.0)
    assert "good" in str(r.formula_)


@pytest.mark.parametrize("made", [SparseRegressor, SparseClassifier])
def test_wide_sparse_rows_are_never_made_dense(made):
    Z = sp.random_array((500, 10_000), density=2e-3, random_state=RNG, format="csr")
    f = np.asarray(Z[:, :40].sum(1)).ravel() + 0.05 * RNG.normal(size=500)
    y = f if made is SparseRegressor else f > np.median(f)
    made(alpha=0.5).fit(Z[:50], y[:50])
    tracemalloc.start()
    try:
        m = made(n_alphas=4, eps=0.5, cv=2, scale="columns").fit(Z, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert m.plan_.way == "working set"
    assert peak < 20e6  # dense rows are 40 MB


# ways
def test_more_features_than_pairs_are_worth_go_by_working_sets(monkeypatch):
    m = SparseRegressor(**QUICK).fit(X, Y)
    monkeypatch.setattr(stored, "MOST_PAIRED", 10)
    monkeypatch.setattr(working_set, "FEW", 0)
    other = SparseRegressor(**QUICK).fit(X, Y)
    assert (m.plan_.way, other.plan_.way) == ("gram", "working set")
    np.testing.assert_allclose(m.predict(X), other.predict(X), atol=1e-6)
    assert other.gap_ <= 1e-6


def test_files_pickles_and_clones(tmp_path):
    for m, y in (
        (SparseRegressor(stability=2, **QUICK), Y),
        (SparseClassifier(Identity(), **QUICK), LABELS),
    ):
        m = clone(m).fit(X, y)
        m.save(tmp_path / "m.mercer")
        for other in (mercer.load(tmp_path / "m.mercer"), pickle.loads(pickle.dumps(m))):
            np.testing.assert_array_equal(other.predict(X), m.predict(X))
            assert other.names_ == m.names_
            assert other.plan_ == m.plan_
            assert str(other.formula_) == str(m.formula_)
            np.testing.assert_array_equal(other.path_.coef, m.path_.coef)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    m = SparseRegressor(Identity(), **QUICK).fit(X, Y)
    before = m.predict(X)
    m.set_params(cv=1)
    with pytest.raises(ValueError, match="cv must be"):
        m.fit(X[:, :2], Y)
    np.testing.assert_array_equal(m.predict(X), before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert m.set_params(cv=3).fit(X[:, :2], Y).n_features_in_ == 2


@pytest.mark.parametrize("lift", [None, Identity(), Monomials(3)])
def test_equal_targets_leave_nothing_to_fit(lift):
    rng = np.random.default_rng(0)
    for value in (7.0, 0.1, 1e6 + 0.3):
        X = rng.normal(size=(80, 12 if lift is None else 40))
        m = SparseRegressor(lift, n_alphas=4).fit(X, np.full(80, value))
        assert m.names_ == []
        assert m.intercept_ == value
        assert m.gap_ == 0


def test_targets_of_any_size_or_a_sentence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    for unit in (1e150, 1e-148):
        assert SparseRegressor(Identity()).fit(X, unit * y).names_[0] == "x0"
    with pytest.raises(ValueError, match=r"^y differs by too little .* smaller units\.$"):
        SparseRegressor(Identity()).fit(X, 1e-200 * y)
    with pytest.raises(ValueError, match=r"^y is too large .* larger units\.$"):
        SparseRegressor(Identity()).fit(X, 1e200 * y)


@pytest.mark.parametrize("small", [True, False])
def test_blas_has_one_thread_where_products_are_small(small, monkeypatch):
    """Threads that share a busy machine wait for each other in each of thousands of them."""
    held, path = [], solve.Solver.path

    def seen(self, *args):
        held.append(threads._process.holders > 0)
        return path(self, *args)

    monkeypatch.setattr(solve.Solver, "path", seen)
    monkeypatch.setattr(solve, "ONE_THREAD", 1e9 if small else 0.0)
    rows = np.random.default_rng(0).normal(size=(50, 3))
    SparseClassifier(n_alphas=3, cv=2).fit(rows, rows[:, 0] > 0)
    assert held == [small] * 3
    assert threads._process.holders == 0
