"""The scan of rows by their kernel: matrices, sparse rows, items and streams as the whole."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from mercer.kernels import Callable, Gaussian, Laplace, Linear
from mercer.kernels.rkhs import RKHSFunction
from mercer.models.perceptron import KernelPerceptron, Perceptron
from mercer.models.perceptron.budget import POLICIES


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


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_plus_one_is_the_perceptron_with_offset(classes, average):
    X, y = iris()
    X, y = X.round(), y if classes == 3 else y == 1  # small integers: sums are exact
    ours = KernelPerceptron(Linear() + 1, max_iter=4, average=average).fit(X, y)
    plain = Perceptron(max_iter=4, average=average).fit(X, y)
    assert ours.mistakes_ == plain.mistakes_
    np.testing.assert_array_equal(ours.counts_, plain.counts_)
    np.testing.assert_allclose(ours.dual_coef_ @ ours.points_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-9)


def test_the_mistakes_are_a_multiset():
    X, y = rings(seed=3)
    m = KernelPerceptron(Gaussian(1.5), max_iter=200, shuffle=False).fit(X, y)
    assert m.converged_
    assert m.score(X, y) == 1.0
    assert m.counts_.sum() == m.mistakes_
    assert m.counts_.max() > 1  # a set would not do
    assert len(m.points_) == np.count_nonzero(m.counts_)
    sign = np.where(y == "out", 1.0, -1.0)
    np.testing.assert_allclose(
        m.decision_function(X), Gaussian(1.5)(X) @ (m.counts_ * sign), atol=1e-10
    )


def test_the_set_version_need_not_converge():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1, -1, 1, 1])
    k = Linear() + 1
    m = KernelPerceptron(k, max_iter=100).fit(X, y)
    assert m.converged_
    kept = set()
    for _ in range(50):  # M as a set: a row that is in it already adds nothing
        before = set(kept)
        for i in range(4):
            f = sum(y[j] * k(X[[i]], X[[j]])[0, 0] for j in kept)
            kept |= {i} if y[i] * f <= 0 else set()
        if kept == before:
            break
    f = k(X, X[sorted(kept)]) @ y[sorted(kept)]
    assert (y * f <= 0).any()


def test_a_score_of_zero_is_a_mistake():
    m = KernelPerceptron(Linear()).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert m.counts_.tolist() == [1, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_is_the_whole(policy):
    X, y = rings(300)
    options = dict(budget=12, policy=policy, average=True, shuffle=False, random_state=5)
    whole, parts = (
        KernelPerceptron(Gaussian(), **options).fit(X, y),
        KernelPerceptron(Gaussian(), **options),
    )
    for rows in (slice(0, 1), slice(1, 100), slice(100, 101), slice(101, 300)):
        parts.partial_fit(X[rows], y[rows], classes=["in", "out"])
    assert whole.mistakes_ == parts.mistakes_
    np.testing.assert_allclose(whole.decision_function(X), parts.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "merging"])
def test_precomputed_is_the_kernel(policy):
    X, y = rings(200)
    k = Laplace(1.0)
    a = KernelPerceptron(k, 15, policy, random_state=0).fit(X[:150], y[:150])
    b = KernelPerceptron("precomputed", 15, policy, random_state=0).fit(k(X[:150]), y[:150])
    np.testing.assert_allclose(
        a.decision_function(X[150:]), b.decision_function(k(X[150:], X[:150])), atol=1e-9
    )
    np.testing.assert_array_equal(a.points_, X[b.support_])
    assert not hasattr(b, "partial_fit")


@pytest.mark.parametrize("policy", [None, "projectron", "merging"])
def test_sparse_rows_are_the_dense_ones(policy):
    X, y = rings(200)
    X[np.abs(X) < 0.3] = 0
    models = [
        KernelPerceptron(Gaussian(), 15 if policy else None, policy or "oldest").fit(A, y)
        for A in (X, sp.csr_array(X))
    ]
    np.testing.assert_allclose(
        models[0].decision_function(X), models[1].decision_function(sp.csr_array(X)), atol=1e-8
    )


def overlap(X, Z):
    return np.array([[float(len(set(a) & set(b))) for b in Z] for a in X])


def test_items_are_compared_by_their_kernel():
    class Overlap(Callable):
        items = True

    words, y = ["abc", "abd", "xyz", "xyw", "abe", "xyv"] * 5, ["a", "a", "x", "x", "a", "x"] * 5
    m = KernelPerceptron(Overlap(overlap), budget=3, policy="oldest", max_iter=3).fit(words, y)
    assert m.predict(["abq", "xyq"]).tolist() == ["a", "x"]
    assert set(m.points_) <= set(words)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(budget=9), "budget changed"),
        (dict(policy="oldest"), "policy changed"),
        (dict(budget=None), "policy, budget changed"),
        (dict(margin=1.0), "margin changed"),
        (dict(average=2.0), "average changed"),
        (dict(kernel=Laplace()), "kernel changed"),
        (dict(comparator=RKHSFunction(Gaussian(), [[0.0, 0.0]], [1.0])), "comparator changed"),
        (dict(eta=0.2, kernel="linear"), "eta, kernel changed"),
    ],
    ids=["budget", "policy", "no budget", "margin", "average", "kernel", "comparator", "both"],
)
def test_a_stream_goes_on_as_it_began(options, match):
    X, y = rings(60)
    m = KernelPerceptron(Gaussian(), 8, "projectron").partial_fit(X, y)
    m.set_params(average=True).partial_fit(X, y)  # the mean is kept in any case
    plan = str(m.plan_)
    with pytest.raises(
        ValueError, match=match + " in the middle of a stream; set it back, or begin anew with fit"
    ):
        m.set_params(**options).partial_fit(X, y)
    assert str(m.plan_) == plan


@pytest.mark.parametrize(
    "kernel",
    [None, "rbf", "linear", "laplacian", "poly", Gaussian().on_columns(["b"]) + Linear()],
    ids=str,
)
def test_streams_with_any_kernel_go_on(kernel):
    pd = pytest.importorskip("pandas")
    X, y = rings(60)
    m = KernelPerceptron(kernel)
    for _ in range(2):
        m.partial_fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert m.plan_.settings["rows"] == 120
