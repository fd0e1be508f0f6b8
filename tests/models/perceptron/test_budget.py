"""Budgets: kept, learning within them, bounds that stay true, and seeds that decide what is
dropped."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from mercer.kernels import Gaussian
from mercer.kernels.rkhs import RKHSFunction
from mercer.models.perceptron import KernelPerceptron
from mercer.models.perceptron.budget import POLICIES, forgetron_bound


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.5
    radius, angle = (
        np.where(inside, rng.uniform(0, 1, n), rng.uniform(1.5, 2.5, n)),
        rng.uniform(0, 2 * np.pi, n),
    )
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(
        inside, "in", "out"
    )


def iris(seed=0):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("classes", [2, 3])
def test_budgets_are_kept_and_learn(policy, classes):
    X, y = iris() if classes == 3 else rings()
    kernel = Gaussian(1.0)
    m = KernelPerceptron(
        kernel, 25, policy, max_iter=4, average=policy.startswith("projectron"), random_state=0
    ).fit(X, y)
    assert len(m.points_) <= 25
    assert m.dual_coef_.shape == (1 if classes == 2 else 3, len(m.points_))
    assert m.score(X, y) > 0.85
    assert policy in str(m.plan_)


def test_the_bound_is_live_until_the_policy_acts():
    X, y = rings(400)
    u = RKHSFunction(Gaussian(1.0), [[0.0, 0.0]], [-0.3])
    m = KernelPerceptron(Gaussian(1.0), 100, "forgetron", comparator=u)
    n = KernelPerceptron(Gaussian(1.0), 4, "oldest", comparator=u)
    bounds = []
    for i in range(0, 400, 50):
        m.partial_fit(X[i : i + 50], y[i : i + 50], classes=["in", "out"])
        n.partial_fit(X[i : i + 50], y[i : i + 50], classes=["in", "out"])
        bounds.append(m.bound_)
        assert m.mistakes_ <= m.bound_
    assert bounds == sorted(bounds)
    with pytest.raises(AttributeError, match="no bound holds"):
        n.bound_  # noqa: B018
    with pytest.raises(AttributeError, match="margin=0"):
        KernelPerceptron(Gaussian(1.0), margin=1.0, comparator=u).fit(X, y).bound_  # noqa: B018
    with pytest.raises(AttributeError, match="comparator"):
        KernelPerceptron().fit(X, y).bound_  # noqa: B018


@pytest.mark.parametrize("seed", range(4))
def test_the_forgetrons_bound_holds_after_it_has_forgotten(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=3000) > 0, 1, -1)
    u = RKHSFunction(Gaussian(2.0), [[1.5, 0.0], [-1.5, 0.0]], [0.8, -0.8])
    m = KernelPerceptron(Gaussian(2.0), 100, "forgetron", comparator=u).fit(X, y)
    assert m.plan_.settings["acted"] > 100
    assert m.mistakes_ <= m.bound_ == forgetron_bound(u.norm(), m.scan_.bound.hinge, 100)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_stream_takes_no_more_memory(policy):
    m, sizes = KernelPerceptron(Gaussian(0.3), 30, policy, average=True), []
    for seed in range(12):
        X, y = rings(200, seed)
        m.partial_fit(
            X,
            np.where(np.random.default_rng(100 + seed).random(200) < 0.3, "in", y),
            classes=["in", "out"],
        )
        sizes.append(sum(a.nbytes for a in m.scanner_.memory) + m.points_.nbytes)
    assert m.plan_.settings["acted"] > 100
    assert len(set(sizes[2:])) == 1
    assert m.plan_.settings["rows"] == 2400


def test_seeds_decide_what_is_dropped():
    X, y = rings()
    m = KernelPerceptron(Gaussian(0.5), 6, "random", random_state=0)
    a, b, c = (
        m.fit(X, y).points_,
        clone(m).fit(X, y).points_,
        clone(m).set_params(random_state=1).fit(X, y).points_,
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
