import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Basis, Identity, Interactions, KitchenSink, Monomials, RandomFourier
from mercer.methods import Exact, Fourier, Landmarks
from mercer.models import KernelRidge
from mercer.models.ridge.problem import RidgeSettings
from mercer.stats import row_hashes

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
w = rng.integers(0, 4, size=240).astype(float)
PHI = RandomFourier(Gaussian(1.5), 60, random_state=0)


def refit(X, y, alpha, sample_weight=None, **options):
    """scikit-learn's Ridge over the same features."""
    F = PHI.fit(X).transform(X)
    return Ridge(alpha, **options).fit(F, y, sample_weight)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [None, w])
@pytest.mark.parametrize("outputs", [1, 2])
def test_twin_of_scikit_learns_ridge(intercept, weight, outputs):
    Y = y if outputs == 1 else np.column_stack([y, y**2])
    alpha = 0.3 if outputs == 1 else [0.3, 3.0]
    ours = KernelRidge(lift=PHI, alpha=alpha, fit_intercept=intercept).fit(X, Y, weight)
    peer = refit(X, Y, alpha, weight, fit_intercept=intercept)
    np.testing.assert_allclose(ours.predict(X), peer.predict(PHI.transform(X)), rtol=1e-6, atol=1e-8)
    assert ours.predict(X).shape == Y.shape


def test_primal_ridge_is_kernel_ridge():
    """Over an exact lift: phi(x)'(F'F + a I)^-1 F'y = k(x, X)(K + a I)^-1 y."""
    k = Polynomial(2)
    primal = KernelRidge(k, alpha=0.5, via=Exact(), fit_intercept=False).fit(X, y)
    dual = k(X) @ np.linalg.solve(k(X) + 0.5 * np.eye(240), y)
    np.testing.assert_allclose(primal.predict(X), dual, rtol=1e-6, atol=1e-8)


def test_note_002_x_and_cos_x_recover_three_coefficients():
    x = rng.uniform(-5, 5, size=(400, 1))
    target = 0.7 - 0.4 * x[:, 0] + 2.5 * np.cos(x[:, 0])
    m = KernelRidge(lift=Basis(["x", "cos"]), alpha=1e-9).fit(x, target)
    np.testing.assert_allclose([m.intercept_, *m.coef_], [0.7, -0.4, 2.5], atol=1e-6)


def test_streams_batches_and_merged_models_are_the_whole():
    whole = KernelRidge(lift=PHI, cv=4).fit(X, y, w)
    stream = KernelRidge(lift=PHI, cv=4)
    for i in range(0, 240, 70):
        stream.partial_fit(X[i : i + 70], y[i : i + 70], w[i : i + 70])
    left, right = (KernelRidge(lift=PHI, cv=4).fit(X[s], y[s], w[s]) for s in (slice(0, 90), slice(90, 240)))
    for other in (stream, left.merge(right)):
        np.testing.assert_allclose(other.predict(X), whole.predict(X), rtol=1e-7)
        np.testing.assert_allclose(other.cv_scores([0.1, 1.0]), whole.cv_scores([0.1, 1.0]), rtol=1e-7)
        assert other.alpha_ == whole.alpha_


def test_forgotten_rows_leave_no_trace():
    m = KernelRidge(lift=PHI, alpha=0.3, cv=3).fit(X, y)
    m.forget(X[:50], y[:50])
    rest = KernelRidge(lift=PHI, alpha=0.3, cv=3).fit(X[50:], y[50:])
    np.testing.assert_allclose(m.predict(X), rest.predict(X), rtol=1e-7)


def test_a_row_of_1e8_is_forgotten_to_the_stated_rounding():
    phi = Identity()
    m = KernelRidge(lift=phi, alpha=1.0).fit(X, y)
    before = m.moments_[0].S.copy()
    m.partial_fit(np.full((1, 3), 1e8), [1.0])
    m.forget(np.full((1, 3), 1e8), [1.0])
    assert np.abs(m.moments_[0].S - before).max() <= m.rounding_
    assert m.rounding_ < 100  # of sums that held 1e16


def test_total_less_a_fold_is_a_refit_without_the_fold():
    m = KernelRidge(lift=PHI, cv=3).fit(X, y)
    folds, alphas = row_hashes(X) % np.uint64(3), [0.01, 1.0, 100.0]
    for j in range(3):
        for i, a in enumerate(alphas):
            peer = refit(X[folds != j], y[folds != j], a)
            score = peer.score(PHI.fit(X).transform(X[folds == j]), y[folds == j])
            assert m.cv_scores(alphas)[i, j] == pytest.approx(score, abs=1e-6)
    assert m.alpha_ in RidgeSettings.of(m).grid()


def test_leave_one_out_is_n_refits():
    m = KernelRidge(lift=PHI, alpha=0.7).fit(X[:60], y[:60], w[:60] + 0.5)
    for i in range(0, 60, 7):
        keep = np.arange(60) != i
        one = KernelRidge(lift=PHI, alpha=0.7).fit(X[:60][keep], y[:60][keep], (w[:60] + 0.5)[keep])
        assert m.loo_predictions_[i] == pytest.approx(one.predict(X[i : i + 1])[0], abs=1e-7)
    assert m.loo_score_ < m.score(X[:60], y[:60])


def test_jackknife_plus_is_that_of_n_refits():
    n = 40
    m = KernelRidge(lift=PHI, alpha=2.0).fit(X[:n], y[:n])
    low, high = m.predict_interval(X[n : n + 5], coverage=0.8, method="jackknife+")
    models = [KernelRidge(lift=PHI, alpha=2.0).fit(np.delete(X[:n], i, 0), np.delete(y[:n], i)) for i in range(n)]
    r = np.array([abs(y[i] - models[i].predict(X[i : i + 1])[0]) for i in range(n)])
    mu = np.array([f.predict(X[n : n + 5]) for f in models])
    rank = int(np.ceil((n + 1) * 0.8))
    np.testing.assert_allclose(high, np.sort(mu + r[:, None], axis=0)[rank - 1], atol=1e-7)
    np.testing.assert_allclose(low, np.sort(mu - r[:, None], axis=0)[n - rank], atol=1e-7)


@pytest.mark.parametrize(("method", "least"), [("split", 0.9), ("jackknife+", 0.8)])
def test_intervals_cover_what_they_guarantee(method, least):
    covered = []
    for s in range(25):
        r = np.random.default_rng(s)
        A = r.normal(size=(240, 2))
        t = np.sin(2 * A[:, 0]) + 0.3 * r.standard_t(3, size=240)
        m = KernelRidge(lift=RandomFourier(Gaussian(), 40, random_state=0), alpha=1.0).fit(A[:120], t[:120])
        interval = m.predict_interval(A[120:], method=method)
        covered.append(np.mean((t[120:] >= interval.lower) & (t[120:] <= interval.upper)))
    assert np.mean(covered) >= least - 0.03
    assert f"at least {least:g}" in interval.guarantee


def test_too_many_features_for_their_square_take_passes_instead():
    exact = KernelRidge(lift=PHI, alpha=0.3).fit(X, y, w)
    passes = KernelRidge(lift=PHI, alpha=0.3, memory_limit=1000).fit(X, y, w)
    np.testing.assert_allclose(passes.predict(X), exact.predict(X), atol=1e-4)
    assert passes.plan_.way == "conjugate gradients"
    assert passes.residual_ <= 1e-6
    assert exact.plan_.way == "features"
    with pytest.raises(AttributeError, match="leave-one-out over features needs their D x D statistics"):
        _ = passes.loo_score_


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_folds_by_passes_are_those_of_the_moments(outputs, intercept):
    Y = 1e3 + (y if outputs == 1 else np.column_stack([y, y**2]))
    grid = [0.1, 1.0, 10.0]
    options = dict(lift=PHI, cv=3, alphas=grid, fit_intercept=intercept, tol=1e-10)
    exact, passes = (KernelRidge(**options, memory_limit=limit).fit(X, Y, w) for limit in (None, 20_000))
    np.testing.assert_allclose(passes.cv_scores([0.3, 3.0]), exact.cv_scores([0.3, 3.0]), atol=1e-5)
    assert passes.alpha_ == exact.alpha_
    assert passes.plan_.way == "conjugate gradients"
    np.testing.assert_allclose(passes.predict(X), exact.predict(X), rtol=1e-6)


def test_passes_stop_where_asked_and_say_so():
    with pytest.warns(ConvergenceWarning, match="stopped at a residual of"):
        m = KernelRidge(lift=PHI, alpha=1e-6, memory_limit=1000, max_iter=3).fit(X, y)
    assert m.residual_ > 1e-6
    assert KernelRidge(lift=PHI, alpha=1.0, memory_limit=1000, tol=1e-3).fit(X, y).residual_ <= 1e-3


def test_bad_batches_are_refused_and_change_nothing():
    m = KernelRidge(lift=PHI).partial_fit(X[:100], y[:100])
    before = m.predict(X)
    with np.errstate(all="ignore"):
        for bad_X, bad_y, says in [
            (X[:10, :2], y[:10], "features"),
            (np.where(np.arange(10)[:, None] == 5, np.nan, X[:10]), y[:10], "NaN"),
            (X[:10], np.where(np.arange(10) == 5, np.nan, y[:10]), "NaN"),
            (X[:10], np.column_stack([y[:10], y[:10]]), "y has 2 outputs"),
        ]:
            with pytest.raises(ValueError, match=says):
                m.partial_fit(bad_X, bad_y)
    np.testing.assert_array_equal(m.predict(X), before)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KernelRidge(Gaussian(), lift=PHI).fit(X, y), "a kernel or a lift, not both"),
        (lambda: KernelRidge(via="magic").fit(X, y), "via must be one of auto, exact, iterative, features, landmarks"),
        (lambda: KernelRidge(alpha=-1).fit(X, y), "alpha must be a number >= 0"),
        (lambda: KernelRidge(alpha=[1, 2, 3]).fit(X, y), "one for each of 1 outputs"),
        (lambda: KernelRidge(cv=1).fit(X, y), "cv must be None or a number of folds"),
        (lambda: KernelRidge(memory_limit="big").fit(X, y), "memory_limit must be a number of bytes"),
        (lambda: KernelRidge(lift=PHI).fit(X, y).cv_scores([1.0]), "cv_scores needs folds"),
        (lambda: KernelRidge(lift=PHI).fit(X, y).merge(KernelRidge(lift=Identity()).fit(X, y)), "different feature maps"),
        (lambda: KernelRidge(lift=PHI).fit(X, y).merge(KernelRidge(lift=PHI, cv=3).fit(X, y)), "differ in cv"),
        (lambda: KernelRidge(lift=PHI).fit(X[:9], y[:9]).forget(X, y), "cannot forget 240 rows of 9"),
        (lambda: KernelRidge(lift=PHI).fit(X, y).predict_interval(X, coverage=2), "coverage must be a number between 0 and 1"),
        (lambda: KernelRidge(lift=PHI).fit(X, y).predict_interval(X, method="x"), "method must be 'split'"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_maps_with_random_states_of_their_own_do_not_merge():
    a, b = (KernelRidge(lift=RandomFourier(Gaussian(), 20)).fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="different feature maps"):
        a.merge(b)


@pytest.mark.parametrize("via", ["auto", "landmarks", Fourier(100), Landmarks(50)], ids=repr)
def test_every_way_fits(via):
    m = KernelRidge(alpha=0.01, via=via, random_state=0).fit(X, y)
    assert m.score(X, y) > 0.8
    assert str(m.plan_)


def test_lifts_of_columns_by_name_and_sparse_rows():
    m = KernelRidge(lift=Monomials(2), alpha=0.1).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(m.predict(X), KernelRidge(lift=Monomials(2), alpha=0.1).fit(X, y).predict(X), rtol=1e-6)
    assert KernelRidge(lift=KitchenSink(), alpha=1.0).fit(X, y).score(X, y) > 0.8


def test_float32_stays_and_agrees():
    ours = [KernelRidge(lift=PHI, alpha=0.1).fit(X.astype(t), y.astype(t)) for t in ("f4", "f8")]
    assert ours[0].predict(X.astype("f4")).dtype == np.float32
    np.testing.assert_allclose(ours[0].predict(X.astype("f4")), ours[1].predict(X), atol=2e-3)


def test_a_pickle_predicts_the_same_without_its_rows():
    m = KernelRidge(lift=PHI).fit(X, y)
    twin = pickle.loads(pickle.dumps(m))
    np.testing.assert_array_equal(twin.predict(X), m.predict(X))
    with pytest.raises(AttributeError, match="the rows of one `fit` at hand"):
        _ = twin.loo_score_


@pytest.mark.parametrize("value", [1e12, 1e-12])
def test_large_and_small_targets(value):
    m = KernelRidge(lift=PHI, alpha=0.1).fit(X, value * y)
    np.testing.assert_allclose(m.predict(X) / value, KernelRidge(lift=PHI, alpha=0.1).fit(X, y).predict(X), rtol=1e-6, atol=1e-8)


def test_one_row_constant_columns_and_constant_y():
    assert KernelRidge(lift=PHI).fit(X[:1], y[:1]).predict(X[:1])[0] == pytest.approx(y[0])
    assert KernelRidge(lift=Identity()).fit(np.ones((5, 2)), np.arange(5.0)).predict(np.ones((1, 2)))[0] == pytest.approx(2)
    np.testing.assert_allclose(KernelRidge(alpha=1e-6).fit(X, np.full(240, 3.0)).predict(X), 3.0)


def test_folds_by_position():
    splits = [(np.arange(80, 240), np.arange(80)), (np.r_[0:80, 160:240], np.arange(80, 160)), (np.arange(160), np.arange(160, 240))]
    m = KernelRidge(lift=PHI, cv=splits).fit(X, y)
    peer = refit(X[80:], y[80:], 1.0).score(PHI.fit(X).transform(X[:80]), y[:80])
    assert m.cv_scores([1.0])[0, 0] == pytest.approx(peer, abs=1e-6)


def test_a_splitter_is_its_positions():
    split = KFold(3, shuffle=True, random_state=0)
    ours = KernelRidge(lift=PHI, cv=split).fit(X, y).cv_scores([1.0])
    np.testing.assert_allclose(ours, KernelRidge(lift=PHI, cv=list(split.split(X))).fit(X, y).cv_scores([1.0]))
    with pytest.raises(ValueError, match="do not serve a stream"):
        KernelRidge(lift=PHI, cv=split).partial_fit(X, y)


def test_a_fold_of_one_row_does_not_choose_the_penalty():
    m = KernelRidge(lift=PHI, cv=KFold(40)).fit(X[:40], y[:40])
    assert np.isnan(m.cv_scores([1.0])).all()  # one row has no spread
    F = PHI.fit(X).transform(X[:40])
    errors = {a: sum((y[i] - Ridge(a).fit(np.delete(F, i, 0), np.delete(y[:40], i)).predict(F[i : i + 1])[0]) ** 2 for i in range(40))
              for a in RidgeSettings.of(m).grid()}
    assert m.alpha_ == pytest.approx(min(errors, key=errors.get))


def test_lifts_may_name_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for lift in (Interactions(2, columns=["b", "c"]), Identity() + Interactions(2, columns=["b", "c"]), 2.0 * Basis(["x"], columns=["b"])):
        m = KernelRidge(lift=lift, alpha=0.1).fit(frame, y)
        at = {"a": 0, "b": 1, "c": 2}
        assert m.predict(frame).shape == (240,)
        names = list(m.lift_.get_feature_names_out())
        assert any("b" in name for name in names)
        assert not any(name.startswith("x") for name in names), at
    by_place = KernelRidge(lift=Identity() + Interactions(2, columns=[1, 2]), alpha=0.1).fit(X, y)
    by_name = KernelRidge(lift=Identity() + Interactions(2, columns=["b", "c"]), alpha=0.1).fit(frame, y)
    np.testing.assert_allclose(by_name.predict(frame), by_place.predict(X))


def test_rows_never_seen_are_not_forgotten():
    m = KernelRidge(lift=PHI, alpha=0.3).fit(X[:120], y[:120])
    before = m.predict(X)
    with pytest.raises(ValueError, match="not all taken in"):
        m.forget(X[120:200] + 5, y[120:200])
    np.testing.assert_array_equal(m.predict(X), before)


def test_float32_rows_keep_the_digits_of_y():
    far = 1e8 + y
    m = KernelRidge(lift=PHI, alpha=0.1).fit(X.astype("f4"), far)
    near = KernelRidge(lift=PHI, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(m.intercept_ + m.lift_.transform(X) @ m.coef_ - 1e8, near.predict(X), atol=5e-3)


def test_a_grid_search_varies_the_method():
    search = GridSearchCV(KernelRidge(alpha=0.1, via=Fourier(8), random_state=0), {"via__n_features": [4, 64]}, cv=3).fit(X, y)
    assert search.best_params_ == {"via__n_features": 64}
    assert search.best_estimator_.n_features_lifted_ == 64
    with pytest.raises(ValueError, match="'width' is not a setting of Fourier"):
        Fourier(8).set_params(width=3)


def test_one_row_is_spoken_of_as_one():
    with pytest.raises(ValueError, match="1 row is too few to split"):
        KernelRidge(lift=PHI).fit(X[:1], y[:1]).predict_interval(X[:3])
    with pytest.warns(UserWarning, match="1 row calibrates them"):
        KernelRidge(lift=PHI).fit(X[:5], y[:5]).predict_interval(X[:3])


def test_infinite_intervals_are_said_to_be():
    m = KernelRidge(lift=PHI).fit(X[:20], y[:20])
    with pytest.warns(UserWarning, match="4 rows calibrate them, and a coverage of 0.9 takes 9"):
        low, _ = m.predict_interval(X[:3])
    assert np.isinf(low).all()


def test_features_too_large_to_square_are_refused():
    with pytest.raises(ValueError, match="too large for sums"), np.errstate(all="ignore"):
        KernelRidge(lift=Monomials(2)).fit(1e120 * X, y)


@pytest.mark.parametrize("model", [KernelRidge(random_state=0), KernelRidge(cv=3, via=Fourier(64), random_state=0)], ids=["default", "cv"])
def test_scikit_learns_contract(model):
    check_estimator(model, on_skip=None)


def test_scikit_learns_contract_with_landmarks():
    """Which rows become landmarks depends on how many there are: weights and repetition agree in law only."""
    reason = "weights act on the law of the landmarks, not on one draw"
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    check_estimator(KernelRidge(via="landmarks", random_state=0), on_skip=None, expected_failed_checks=dict.fromkeys(names, reason))
