"""KernelSVC over features: the objectives of scikit-learn's SVC and LinearSVC on the same features,
with a certified gap."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.lifts import KernelLift, Monomials, Parabolic, RandomFourier
from mercer.methods import Fourier
from mercer.models import KernelSVC
from mercer.models.linear import feature_rows
from mercer.models.maps import FittedMap
from mercer.models.svm.hinge import HingeDual, Proximal, SquaredHinge, balanced, best_intercept
from tests.contract import keeps_contract

OverFeatures = partial(KernelSVC, via="features")


def data(n=300, d=4, seed=0, noise=0.7, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.3
    return X, (X @ rng.normal(size=(d, classes)) + noise * rng.normal(size=(n, classes))).argmax(1)


def objective(m, F, y, C, power, w=1.0):
    coef, intercept = m.coef_[0], np.ravel(m.intercept_)[0]
    gap = np.maximum(1 - np.where(y == m.classes_[1], 1, -1) * (F @ coef + intercept), 0)
    return coef @ coef / 2 + C * np.sum(w * gap**power)


EQUIVALENCE = (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_scikit_learn_contract(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        digits = (
            {f.__name__: "compares to 1e-7; see below" for f in EQUIVALENCE}
            if loss == "hinge"
            else {}
        )
        keeps_contract(OverFeatures(loss=loss, random_state=0), digits)


@pytest.mark.parametrize("check", EQUIVALENCE)
def test_weights_are_repetitions_to_the_digits_that_the_contract_asks_for(check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a gap of 1e-15 is below rounding
        check("KernelSVC", OverFeatures(tol=1e-15, random_state=0))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hinge_with_a_free_intercept_is_svc(C, dtype):
    X, y = data()
    m = OverFeatures(Linear(), C=C).fit(X.astype(dtype), y)
    twin = SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
    ours, theirs = (objective(e, X, y, C, 1) for e in (m, twin))
    assert ours == pytest.approx(theirs, rel=2e-4)
    assert m.objective_ == pytest.approx(ours, rel=1e-5)
    assert 0 <= m.gap_ + 1e-6 <= 1e-4 + 1e-6
    assert (
        ours - theirs <= m.gap_ * ours + 1e-4 * ours
    )  # the gap bounds the distance to the optimum


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("loss", "power", "rel"), [("hinge", 1, 2e-4), ("squared_hinge", 2, 1e-6)])
def test_without_an_intercept_it_is_linear_svc(C, loss, power, rel):
    X, y = data()
    lift = RandomFourier(Gaussian(2.0), 60, random_state=0)
    m = OverFeatures(C=C, loss=loss, lift=lift, fit_intercept=False).fit(X, y)
    F = m.lift_.transform(X)
    twin = LinearSVC(C=C, loss=loss, fit_intercept=False, tol=1e-8, max_iter=200_000).fit(F, y)
    assert objective(m, F, y, C, power) == pytest.approx(objective(twin, F, y, C, power), rel=rel)


def test_squared_hinge_with_a_free_intercept_is_below_a_penalised_one():
    X, y = data()
    m = OverFeatures(Linear(), loss="squared_hinge").fit(X, y)
    twin = LinearSVC(intercept_scaling=1e3, tol=1e-8, max_iter=200_000).fit(
        X, y
    )  # a penalty that hardly counts
    assert objective(m, X, y, 1.0, 2) <= objective(twin, X, y, 1.0, 2) * (1 + 1e-9)
    np.testing.assert_allclose(m.coef_, twin.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_many_classes_are_one_against_the_rest(loss):
    X, y = data(classes=3)
    m = OverFeatures(Linear(), loss=loss, tol=1e-6).fit(X, y)
    assert m.coef_.shape == (3, 4)
    assert m.decision_function(X).shape == (300, 3)
    for k in range(3):
        alone = OverFeatures(Linear(), loss=loss, tol=1e-6).fit(X, y == k)
        np.testing.assert_allclose(m.coef_[k], alone.coef_[0], atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_recomputed_features_give_the_model_of_kept_ones(loss):
    X, y = data(600)
    lift = RandomFourier(Gaussian(2.0), 700, random_state=0)
    kept, streamed = (
        OverFeatures(loss=loss, lift=lift, memory_limit=v).fit(X, y) for v in (None, 100_000)
    )
    assert "kept in memory" in str(kept.plan_)
    assert "computed again" in str(streamed.plan_)
    assert streamed.objective_ == pytest.approx(kept.objective_, rel=2e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_repetitions(loss):
    X, y = data(150)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = OverFeatures(Linear(), loss=loss, tol=1e-7).fit(X, y, w)
    repeated = OverFeatures(Linear(), loss=loss, tol=1e-7).fit(X.repeat(w, axis=0), y.repeat(w))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_ball_on_the_parabolic_lift(loss):
    rng = np.random.default_rng(0)
    centre, radius = np.array([0.7, -0.4]), 1.1
    X = rng.uniform(-2.5, 2.5, size=(600, 2))
    distance = np.linalg.norm(X - centre, axis=1)
    X, inside = (
        X[np.abs(distance - radius) > 0.05],
        (distance < radius)[np.abs(distance - radius) > 0.05],
    )
    m = OverFeatures(C=1e4, loss=loss, lift=Parabolic()).fit(X, inside)
    assert m.score(X, inside) == 1
    ball = Parabolic.halfspace_to_ball(m.coef_[0], -m.intercept_[0])
    np.testing.assert_allclose(ball.centre, centre, atol=0.06)
    assert ball.radius == pytest.approx(radius, abs=0.06)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_rings_of_note_002(loss):
    rng = np.random.default_rng(0)
    inside, angle = rng.random(400) < 0.5, rng.uniform(0, 2 * np.pi, 400)
    radius = np.where(inside, 1.0, 2.0) + rng.uniform(-0.3, 0.3, 400)
    X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    m = OverFeatures(C=100.0, loss=loss, lift=Monomials(degree=2)).fit(X, inside)
    assert m.score(X, inside) == 1
    named = dict(zip(m.lift_.get_feature_names_out(), m.coef_[0], strict=True))
    x1x1, x1x2, x2x2 = (v for name, v in named.items() if name not in ("1", "x0", "x1"))
    assert x1x1 < 0 > x2x2
    assert abs(x1x2) < 0.3 * abs(x1x1)


@pytest.mark.parametrize("loss", [SquaredHinge(), Proximal()])
def test_slopes_are_those_of_the_value(loss):
    f, e = np.linspace(-2, 3, 11)[:, None] + 0.013, 1e-6
    Y, w = (
        np.ones((11, 1)),
        np.stack([np.full(11, 2.0), np.full(11, 0.2), np.full(11, 0.5)], axis=1),
    )
    w = w if isinstance(loss, Proximal) else w[:, 0]
    for i in range(11):
        one = slice(i, i + 1)
        bump = [loss.value(f[one] + v, Y[one], w[one]) for v in (e, -e)]
        assert loss.slope(f[one], Y[one], w[one])[0, 0] == pytest.approx(
            (bump[0] - bump[1]) / (2 * e), abs=1e-6
        )


def test_intercepts_and_balance():
    rng = np.random.default_rng(0)
    f, y, c = rng.normal(size=40), np.where(rng.random(40) < 0.4, 1.0, -1.0), rng.random(40)
    hinge = lambda b: c @ np.maximum(1 - y * (f + b), 0)
    assert hinge(best_intercept(f, y, c)) <= min(map(hinge, np.linspace(-5, 5, 2001))) + 1e-12
    assert abs(balanced(c, y) @ y) < 1e-12


def test_multipliers_take_over_where_sweeps_are_slow():
    X, y = data(400, 20, noise=2.0)
    phi = FittedMap.fit(KernelLift(Linear(), 20), Table(X))
    rows = feature_rows(phi, Table(X), intercept=True, limit=1e9)
    dual = HingeDual(rows, np.where(y == np.unique(y)[1], 1.0, -1.0), np.full(400, 100.0), True)
    dual._sweeps(60)
    assert dual._look()[-1] > 1e-3
    assert OverFeatures(Linear(), C=100.0).fit(X, y).gap_ <= 1e-4


def test_what_is_refused():
    X, y = data(20)
    with pytest.raises(ValueError, match="loss must be one of"):
        OverFeatures(loss="log").fit(X, y)
    with pytest.raises(ValueError, match="C must be a number > 0"):
        OverFeatures(C=-1).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        OverFeatures().fit(X, np.ones(20))
    with pytest.raises(ValueError, match="via must be one of"):
        OverFeatures(via="dual").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol, or lower C"):
        OverFeatures(Linear(), C=100.0, max_iter=2).fit(X, y)


def test_where_rounding_is_what_is_left_the_warning_says_so():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="rounding: give X in float64"):
        OverFeatures(Linear(), C=100.0, tol=1e-12).fit(X.astype(np.float32), y)


@pytest.mark.long
def test_many_rows_at_a_large_c_end_before_rounds_run_out():
    """Sweeps that would not end in time, and problems that take ever more rounds, are left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 6))
    y = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.5 * rng.normal(size=12_000) > 0.3
    m = KernelSVC(Gaussian(2.0), C=30.0, via=Fourier(300), random_state=0).fit(X, y)
    assert m.n_iter_ < 1000
    assert m.gap_ <= 1e-4
