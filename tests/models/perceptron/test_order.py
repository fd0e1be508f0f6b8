"""`fit` takes rows in an order of its own, drawn by its seed; a stream in theirs."""

import numpy as np
import pytest
from sklearn.linear_model import Perceptron as Theirs

from mercer.kernels import Gaussian, Linear
from mercer.models import KernelPerceptron, Perceptron

MODELS = {
    "features": lambda **options: Perceptron(**options),
    "lifted": lambda **options: Perceptron(Gaussian(1.0), **options),
    "points": lambda **options: KernelPerceptron(Gaussian(1.0), **options),
    "budget": lambda **options: KernelPerceptron(Gaussian(1.0), 10, "oldest", **options),
}


def overlapping(n=200, seed=0):
    """Rows sorted by class, of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(2, size=n))
    return rng.normal(size=(n, 3)) + 1.2 * y[:, None], y


@pytest.mark.parametrize("name", MODELS)
def test_the_order_is_that_of_the_seed(name):
    X, y = overlapping()
    model = MODELS[name]
    scores = [
        model(max_iter=3, random_state=seed).fit(X, y).decision_function(X) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()
    np.testing.assert_array_equal(scores[0], model(max_iter=3).fit(X, y).decision_function(X))


@pytest.mark.parametrize("name", ["features", "points", "budget"])
def test_a_stream_keeps_the_order_of_its_rows(name):
    X, y = overlapping()
    given, own, mixed = (MODELS[name](max_iter=1, shuffle=s) for s in (True, False, True))
    given.partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(given.decision_function(X), own.fit(X, y).decision_function(X))
    assert (mixed.fit(X, y).decision_function(X) != own.decision_function(X)).any()


@pytest.mark.parametrize("name", ["features", "points"])
def test_one_pass_over_sorted_rows_is_no_longer_that_of_the_last_class(name):
    """Means over seeds: sorted rows in their own order end with a long run of one class."""
    wrong = {True: [], False: []}
    for seed in range(10):
        X, y = overlapping(300, seed)
        Z, t = overlapping(300, 100 + seed)
        for shuffle, found in wrong.items():
            m = MODELS[name](max_iter=1, shuffle=shuffle, average=shuffle, random_state=seed)
            found.append(1 - m.fit(X, y).score(Z, t))
    assert np.mean(wrong[True]) < np.mean(wrong[False])


def test_counts_are_those_of_the_rows_as_they_were_given():
    X, y = overlapping(90)
    sign = np.where(y == 1, 1.0, -1.0)
    m = Perceptron(max_iter=20).fit(X, y)
    np.testing.assert_allclose(m.coef_[0], X.T @ (m.counts_ * sign), atol=1e-9)
    m = KernelPerceptron(Gaussian(1.0), max_iter=20).fit(X, y)
    K = Gaussian(1.0)(X)
    np.testing.assert_allclose(m.decision_function(X), K @ (m.counts_ * sign), atol=1e-9)
    assert m.counts_.sum() == m.mistakes_


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_in_any_order(seed):
    X, y = overlapping(80, seed)
    X += 4 * y[:, None]
    for m in (Perceptron(random_state=seed), KernelPerceptron(Linear() + 1, max_iter=100)):
        m.fit(X, y)
        assert m.mistakes_ <= m.mistake_bound(X, y)


def test_in_the_order_given_it_is_scikit_learns():
    X, y = overlapping(120)
    ours = Perceptron(max_iter=7, shuffle=False).fit(X, y)
    theirs = Theirs(max_iter=7, tol=None, shuffle=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
    assert Perceptron().shuffle is Theirs().shuffle is True
    assert Perceptron().random_state == Theirs().random_state == 0
