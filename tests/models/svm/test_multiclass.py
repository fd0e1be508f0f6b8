"""Many classes: pairs as LIBSVM has them, each against the rest, and all pairs there."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.svm import SVC

from mercer.kernels import Gaussian
from mercer.models.svm.classifier import KernelSVC


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


@pytest.mark.parametrize("classes", [3, 5])
def test_pairs_of_classes_are_those_of_libsvm(classes):
    X, y = data(400, classes=classes, noise=0.2)
    m = KernelSVC(Gaussian(), C=3.0, via="exact", tol=1e-6).fit(X, y)
    twin = SVC(gamma=0.5, C=3.0, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(m.support_, twin.support_)
    np.testing.assert_array_equal(m.n_support_, twin.n_support_)
    np.testing.assert_allclose(np.abs(m.dual_coef_), np.abs(twin.dual_coef_), atol=1e-3)
    np.testing.assert_allclose(m._raw(X) + m.intercept_, twin.decision_function(X), atol=1e-4)
    assert np.mean(m.predict(X) == twin.predict(X)) >= 0.98  # ties between votes are ours to settle
    assert m.decision_function(X).shape == (400, classes)


def test_one_against_the_rest_is_each_alone():
    X, y = data(200, classes=3)
    m = KernelSVC(Gaussian(), via="exact", multiclass="ovr", tol=1e-6).fit(X, y)
    assert m.dual_coef_.shape == (3, len(m.support_))
    for k in range(3):
        alone = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X, y == k)
        np.testing.assert_allclose(
            m.decision_function(X)[:, k], alone.decision_function(X), atol=1e-4
        )


def test_all_pairs_are_there():
    X, y = data(200, classes=4)
    m = KernelSVC(via="exact").fit(X, y)
    assert len(m.intercept_) == len(list(combinations(range(4), 2)))
    assert m.dual_coef_.shape == (3, len(m.support_))
