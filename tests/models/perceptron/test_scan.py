"""The scan of features: loops as the reference, mistakes as a multiset, streams as the whole."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from mercer.models import Perceptron


def two(n=200, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = X @ [1.0, -2.0, 0.5, 0.0] + 0.7 + noise * rng.normal(size=n)
    return X, np.where(f > 0, "yes", "no")


def test_weights_are_the_multiset_of_mistakes():
    X, y = two()
    m = Perceptron().fit(X, y)
    sign = np.where(y == "yes", 1.0, -1.0)
    np.testing.assert_allclose(m.coef_[0], (m.counts_ * sign) @ X)
    np.testing.assert_allclose(m.intercept_, [m.counts_ @ sign])
    assert m.counts_.sum() == m.mistakes_
    assert m.counts_.max() > 1  # a set would not do
    assert m.score(X, y) == 1.0
    assert m.converged_


def test_a_score_of_zero_is_a_mistake():
    m = Perceptron(max_iter=1).fit([[0.0], [1.0]], [1, 0])
    assert m.counts_.tolist() == [1, 1]


def test_average_is_the_mean_over_all_rows():
    X, y = two(30, noise=1.0)
    last = Perceptron()
    weights = [
        last.partial_fit(X[i : i + 1], y[i : i + 1], classes=["no", "yes"]).coef_.copy()
        for i in range(30)
    ]
    m = Perceptron(max_iter=1, average=True, shuffle=False).fit(X, y)
    np.testing.assert_allclose(m.coef_, np.mean(weights, axis=0), atol=1e-12)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_is_the_whole_exactly(average, sparse):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    X = sp.csr_array(X) if sparse else X
    whole = Perceptron(max_iter=1, average=average, shuffle=False).fit(X, y)
    parts = Perceptron(average=average)
    for rows in (slice(0, 1), slice(1, 40), slice(40, 41), slice(41, 150)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    assert whole.mistakes_ == parts.mistakes_


def test_sparse_rows_are_the_dense_ones():
    X, y = load_iris(return_X_y=True)
    dense, sparse = Perceptron(max_iter=3).fit(X, y), Perceptron(max_iter=3).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_)
    np.testing.assert_allclose(
        dense.decision_function(X), sparse.decision_function(sp.csr_array(X))
    )
