import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Basis, Identity, Interactions, KitchenSink, Monomials, RandomFourier
from mercer.methods import Exact, Fourier, Landmarks
from mercer.models import KernelLogistic, KernelRidge, Perceptron

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
    alpha = 0.3 if outputs == 1 else np.array([0.3, 3.0])
    ours = KernelRidge(lift=PHI, alpha=alpha, fit_intercept=intercept).fit(X, Y, weight)
    peer = refit(X, Y, alpha, weight, fit_intercept=intercept)
    np.testing.assert_allclose(
        ours.predict(X), peer.predict(PHI.transform(X)), rtol=1e-6, atol=1e-8
    )
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


@pytest.mark.parametrize(("method", "least"), [("split", 0.9), ("jackknife+", 0.8)])
def test_intervals_cover_what_they_guarantee(method, least):
    covered = []
    for s in range(25):
        r = np.random.default_rng(s)
        A = r.normal(size=(240, 2))
        t = np.sin(2 * A[:, 0]) + 0.3 * r.standard_t(3, size=240)
        m = KernelRidge(lift=RandomFourier(Gaussian(), 40, random_state=0), alpha=1.0).fit(
            A[:120], t[:120]
        )
        interval = m.predict_interval(A[120:], method=method)
        covered.append(np.mean((t[120:] >= interval.lower) & (t[120:] <= interval.upper)))
    assert np.mean(covered) >= least - 0.03
    assert f"at least {least:g}" in interval.guarantee


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
        (
            lambda: KernelRidge(via="magic").fit(X, y),
            "via must be one of auto, exact, iterative, features, landmarks",
        ),
        (lambda: KernelRidge(alpha=-1).fit(X, y), "alpha must be a number >= 0"),
        (lambda: KernelRidge(alpha=[1, 2, 3]).fit(X, y), "one for each of 1 outputs"),
        (lambda: KernelRidge(cv=1).fit(X, y), "cv must be None or a number of folds"),
        (
            lambda: KernelRidge(memory_limit="big").fit(X, y),
            "memory_limit must be a number of bytes",
        ),
        (lambda: KernelRidge(lift=PHI).fit(X, y).cv_scores([1.0]), "cv_scores needs folds"),
        (
            lambda: KernelRidge(lift=PHI).fit(X, y).merge(KernelRidge(lift=Identity()).fit(X, y)),
            "different feature maps",
        ),
        (
            lambda: KernelRidge(lift=PHI).fit(X, y).merge(KernelRidge(lift=PHI, cv=3).fit(X, y)),
            "differ in cv",
        ),
        (
            lambda: KernelRidge(lift=PHI).fit(X[:9], y[:9]).forget(X, y),
            "cannot forget 240 rows of 9",
        ),
        (
            lambda: KernelRidge(lift=PHI).fit(X, y).predict_interval(X, coverage=2),
            "coverage must be a number between 0 and 1",
        ),
        (
            lambda: KernelRidge(lift=PHI).fit(X, y).predict_interval(X, method="x"),
            "method must be 'split'",
        ),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("via", ["auto", "landmarks", Fourier(100), Landmarks(50)], ids=repr)
def test_every_way_fits(via):
    m = KernelRidge(alpha=0.01, via=via, random_state=0).fit(X, y)
    assert m.score(X, y) > 0.8
    assert str(m.plan_)


def test_lifts_of_columns_by_name_and_sparse_rows():
    m = KernelRidge(lift=Monomials(2), alpha=0.1).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        m.predict(X), KernelRidge(lift=Monomials(2), alpha=0.1).fit(X, y).predict(X), rtol=1e-6
    )
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
    np.testing.assert_allclose(
        m.predict(X) / value,
        KernelRidge(lift=PHI, alpha=0.1).fit(X, y).predict(X),
        rtol=1e-6,
        atol=1e-8,
    )


def test_one_row_constant_columns_and_constant_y():
    assert KernelRidge(lift=PHI).fit(X[:1], y[:1]).predict(X[:1])[0] == pytest.approx(y[0])
    assert KernelRidge(lift=Identity()).fit(np.ones((5, 2)), np.arange(5.0)).predict(
        np.ones((1, 2))
    )[0] == pytest.approx(2)
    np.testing.assert_allclose(KernelRidge(alpha=1e-6).fit(X, np.full(240, 3.0)).predict(X), 3.0)


def test_lifts_may_name_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for lift in (
        Interactions(2, columns=["b", "c"]),
        Identity() + Interactions(2, columns=["b", "c"]),
        2.0 * Basis(["x"], columns=["b"]),
    ):
        m = KernelRidge(lift=lift, alpha=0.1).fit(frame, y)
        at = {"a": 0, "b": 1, "c": 2}
        assert m.predict(frame).shape == (240,)
        names = list(m.lift_.get_feature_names_out())
        assert any("b" in name for name in names)
        assert not any(name.startswith("x") for name in names), at
    by_place = KernelRidge(lift=Identity() + Interactions(2, columns=[1, 2]), alpha=0.1).fit(X, y)
    by_name = KernelRidge(lift=Identity() + Interactions(2, columns=["b", "c"]), alpha=0.1).fit(
        frame, y
    )
    np.testing.assert_allclose(by_name.predict(frame), by_place.predict(X))


def test_a_grid_search_varies_the_method():
    search = GridSearchCV(
        KernelRidge(alpha=0.1, via=Fourier(8), random_state=0), {"via__n_features": [4, 64]}, cv=3
    ).fit(X, y)
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


@pytest.mark.parametrize(
    "model",
    [KernelRidge(random_state=0), KernelRidge(cv=3, via=Fourier(64), random_state=0)],
    ids=["default", "cv"],
)
def test_scikit_learns_contract(model):
    check_estimator(model, on_skip=None)


def test_scikit_learns_contract_with_landmarks():
    """The few rows of the checks all become landmarks, so that weights and repetition agree; where
    they are drawn they agree in law only (`Nystrom`)."""
    check_estimator(KernelRidge(via="landmarks", random_state=0), on_skip=None)


X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])
NAN = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("via", ["exact", Fourier(20), Fourier(200)], ids=repr)
@pytest.mark.parametrize("rows", [60, 7])
def test_a_column_of_y_gives_the_intervals_of_a_vector(via, rows):
    flat, column = (
        KernelRidge(Gaussian(), 0.1, via, random_state=0).fit(X60, t) for t in (y60, y60[:, None])
    )
    for method in ("split", "jackknife+"):
        np.testing.assert_allclose(
            column.predict_interval(X60[:rows], method=method),
            flat.predict_interval(X60[:rows], method=method),
        )


def bad_calls():
    stream = lambda **o: KernelRidge(via=Fourier(16), random_state=0, **o)
    return {
        "exact model, y too large": (
            KernelRidge().fit(X60, y60),
            lambda m: m.partial_fit(X60[:5], np.full(5, 1e200)),
        ),
        "first batch": (stream(), lambda m: m.partial_fit(X60[:5], 1e200 * y60[:5])),
        "merge with a bad alpha": (
            stream().fit(X60, y60).set_params(alpha=-1),
            lambda m: m.merge(stream().fit(X60, y60)),
        ),
        "other folds": (
            stream(cv=2).fit(X60, y60).set_params(cv=3),
            lambda m: m.partial_fit(X60, y60),
        ),
        "other outputs": (
            stream().fit(X60, y60),
            lambda m: m.forget(X60, np.column_stack([y60, y60])),
        ),
        "refit with a bad alpha": (
            KernelRidge().fit(X60, y60).set_params(alpha=-1),
            lambda m: m.fit(X60, y60),
        ),
        "one class": (KernelLogistic().fit(X60, y60 > 0), lambda m: m.fit(X60, np.zeros(60))),
        "comparator": (Perceptron(comparator=[1.0]), lambda m: m.partial_fit(X60, y60 > 0)),
        "new classes": (
            Perceptron().fit(X60, y60 > 0),
            lambda m: m.partial_fit(X60[:3], [0, 1, 2]),
        ),
        "other classes": (
            Perceptron().partial_fit(X60, y60 > 0),
            lambda m: m.partial_fit(X60, y60 > 0, classes=[0, 1, 2]),
        ),
    }


@NAN
@pytest.mark.parametrize("name", bad_calls())
def test_a_refused_call_leaves_the_model_as_it_was(name):
    model, call = bad_calls()[name]
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"."):
        call(model)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is v for k, v in before.items())


@pytest.mark.parametrize("size", [1e-300, 1e-165, 1e155, 1e300])
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_y_of_any_size(size, via):
    right = KernelRidge(alpha=0.1, via=via).fit(X60, y60).predict(X60)
    np.testing.assert_allclose(
        KernelRidge(alpha=0.1, via=via).fit(X60, size * y60).predict(X60) / size, right, rtol=1e-6
    )


@NAN
def test_rows_too_large_are_refused_and_tiny_ones_fitted():
    with pytest.raises(ValueError, match="is not a finite number"):
        KernelRidge("linear", via="exact").fit(1e200 * X60, y60)
    with pytest.raises(ValueError, match="too large for sums"):
        KernelLogistic(lift=Identity()).fit(1e200 * X60, y60 > 0)
    for size in (1e-155, 1e150):
        right = KernelRidge(alpha=0.1).fit(X60, y60).score(X60, y60)
        assert KernelRidge(alpha=0.1).fit(size * X60, y60).score(size * X60, y60) == pytest.approx(
            right
        )


@pytest.mark.parametrize("via", ["exact", Fourier(20)], ids=repr)
def test_the_callers_arrays_are_theirs(via):
    A, t = X60.copy(), y60.copy()
    m = KernelRidge(via=via, random_state=0).fit(A, t)
    before = m.loo_score_, m.predict(X60)
    A *= 3
    t[:] = 0
    assert m.loo_score_ == before[0]
    np.testing.assert_array_equal(m.predict(X60), before[1])
