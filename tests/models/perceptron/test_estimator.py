"""Perceptron: live mistakes within the bound of every comparator, refusals that change nothing, odd
settings."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian
from mercer.lifts import Monomials
from mercer.methods import Fourier
from mercer.models import Perceptron


def two(n=200, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = X @ [1.0, -2.0, 0.5, 0.0] + 0.7 + noise * rng.normal(size=n)
    return X, np.where(f > 0, "yes", "no")


def rings(n=300, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.5
    radius, angle = (
        np.where(inside, rng.uniform(0, 1, n), rng.uniform(1.5, 2.5, n)),
        rng.uniform(0, 2 * np.pi, n),
    )
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), inside.astype(int)


@pytest.mark.parametrize(
    "model",
    [Perceptron(), Perceptron(average=True, shuffle=True, random_state=0)],
    ids=["plain", "averaged"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("seed", range(5))
def test_novikoffs_bound_holds_for_a_separating_comparator(seed):
    X, y = two(seed=seed)
    u = np.array([1.0, -2.0, 0.5, 0.0, 0.7])
    margin = np.where(y == "yes", 1, -1) * (X @ u[:4] + u[4])
    wide = (1 + np.square(X).sum(1)).max()
    m = Perceptron(max_iter=10_000, comparator=u).fit(X, y)
    assert m.converged_
    assert m.mistakes_ <= m.bound_ <= wide * (u @ u) / margin.min() ** 2 * (1 + 1e-9)
    assert m.mistakes_ <= m.mistake_bound(X, y, u) <= m.bound_ * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_hinge_bound_holds_for_any_comparator(seed, scale):
    X, y = two(seed=seed, noise=2.0)
    u = scale * np.array([1.0, -2.0, 0.5, 0.0, 0.7])
    m = Perceptron(max_iter=7, comparator=u).fit(X, y)
    assert not m.converged_
    assert m.mistakes_ <= m.bound_ < np.inf
    assert m.mistakes_ <= m.mistake_bound(X, y, u) <= 7 * len(y) + 1


def test_the_bound_holds_for_many_classes():
    X, y = load_iris(return_X_y=True)
    m = Perceptron(max_iter=20, average=True, shuffle=True, random_state=0).fit(X, y)
    u = m.state_.mean
    again = Perceptron(max_iter=20, comparator=u).fit(X, y)
    assert again.mistakes_ <= again.mistake_bound(X, y, u) <= again.bound_ * (1 + 1e-9)
    assert again.mistake_bound(X, y, u) < 20 * len(y)  # it says something
    assert m.score(X, y) > 0.9


def test_the_bound_is_live_in_a_stream():
    X, y = two(noise=1.0)
    m = Perceptron(comparator=[1.0, -2.0, 0.5, 0.0, 0.7])
    bounds = []
    for i in range(0, 200, 20):
        m.partial_fit(X[i : i + 20], y[i : i + 20], classes=["no", "yes"])
        assert m.mistakes_ <= m.bound_
        bounds.append(m.bound_)
    assert bounds == sorted(bounds)


def test_no_bound_without_a_comparator():
    X, y = two()
    with pytest.raises(AttributeError, match="comparator"):
        Perceptron().fit(X, y).bound_  # noqa: B018
    with pytest.raises(ValueError, match="1 x 5 numbers, the offset last"):
        Perceptron(comparator=[1.0]).fit(X, y)


def test_squares_and_products_separate_the_rings():
    X, y = rings()
    assert Perceptron(max_iter=1000).fit(X, y).score(X, y) < 0.8
    m = Perceptron(lift=Monomials(2, weights="kernel", bias=0.0), max_iter=1000).fit(
        X, y
    )  # x1^2, sqrt(2) x1 x2, x2^2
    assert m.n_features_lifted_ == 3
    assert m.converged_
    assert Perceptron(Gaussian(0.7), Fourier(200), random_state=0).fit(X, y).score(X, y) == 1.0


def test_refused_batches_change_nothing():
    X, y = two()
    m = Perceptron().partial_fit(X[:100], y[:100], classes=["no", "yes"])
    before = m.state_.copy()
    bad = X[100:].copy()
    bad[50, 2] = np.nan
    for rows, labels, match in (
        (X[100:, :3], y[100:], "3 features"),
        (bad, y[100:], "NaN"),
        (X[100:], np.where(y[100:] == "no", "maybe", y[100:]), "maybe"),
        (1e308 * np.ones_like(X), np.resize(["no", "yes"], 200), "too large"),
    ):
        with pytest.raises(ValueError, match=match), np.errstate(all="ignore"):
            m.partial_fit(rows, labels)
        np.testing.assert_array_equal(m.state_.W, before.W)
        assert (m.state_.seen, m.mistakes_) == (before.seen, before.mistakes)
    m.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(m.coef_, Perceptron(max_iter=1, shuffle=False).fit(X, y).coef_)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only, 1"):
        Perceptron().partial_fit([[1.0]], [1])
    assert Perceptron().partial_fit([[1.0]], [1], classes=[0, 1]).predict([[1.0]]) == [1]


def test_float32_stays():
    X, y = two()
    m = Perceptron(average=True).fit(X.astype(np.float32), y)
    assert m.decision_function(X.astype(np.float32)).dtype == np.float32
    assert np.mean(m.predict(X.astype(np.float32)) == y) > 0.97


def test_a_scan_does_not_merge():
    assert not hasattr(Perceptron(), "merge")
    assert not hasattr(Perceptron(), "forget")
    assert str(clone(Perceptron()).fit(*two()).plan_).startswith(
        "ordered scan: no mistake in the last pass"
    )


def test_a_via_that_is_none_is_refused():
    with pytest.raises(ValueError, match="via must be one of"):
        Perceptron(via="foo").fit([[0.0], [1.0]], [0, 1])
