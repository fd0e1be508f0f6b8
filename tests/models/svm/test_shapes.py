"""Scores of pairs and of classes, and who wins a tie: side by side with scikit-learn."""

import numpy as np
import pytest
from sklearn.svm import SVC

from mercer import KernelSVC
from mercer.kernels import Gaussian


def data(K, n=90, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), np.array(list("zebracdfgh"))[rng.permutation(np.arange(n) % K)]


def both(K, shape, **options):
    X, y = data(K)
    ours = KernelSVC(Gaussian(1.0), C=3.0, tol=1e-7, decision_function_shape=shape, **options).fit(
        X, y
    )
    return X, ours, SVC(gamma=0.5, C=3.0, tol=1e-9, decision_function_shape=shape).fit(X, y)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_scores_are_those_of_scikit_learn(K, shape):
    _, ours, theirs = both(K, shape)
    Z = np.random.default_rng(1).normal(size=(70, 3))
    f, g = ours.decision_function(Z), theirs.decision_function(Z)
    assert f.shape == g.shape
    np.testing.assert_allclose(f, g, atol=1e-4)
    assert f.dtype == np.float64
    assert ours.decision_function(Z.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("K", [5, 10])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_ties_go_to_the_first_class_or_to_the_clearest(K, shape):
    _, ours, theirs = both(K, shape)
    Z = 3 * np.random.default_rng(2).normal(size=(400, 3))
    clear = ours.predict(Z)
    first = ours.set_params(break_ties=False).predict(Z)
    np.testing.assert_array_equal(first, theirs.predict(Z))
    assert (first != clear).any()
    theirs.set_params(decision_function_shape="ovr", break_ties=True)
    np.testing.assert_array_equal(clear, theirs.predict(Z))


def test_probabilities_do_not_depend_on_the_shape():
    X, y = data(3)
    one, two = (
        KernelSVC(probability=True, decision_function_shape=s).fit(X, y) for s in ("ovr", "ovo")
    )
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_pairs_are_asked_for_where_there_are_some():
    X, y = data(3)
    with pytest.raises(ValueError, match="must be 'ovr' or 'ovo', got 'pairs'"):
        KernelSVC(decision_function_shape="pairs").fit(X, y)
    with pytest.raises(ValueError, match="give multiclass='ovo' or 'auto'"):
        KernelSVC(decision_function_shape="ovo", multiclass="ovr").fit(X, y)
    with pytest.raises(ValueError, match="need via='exact'"):
        KernelSVC(decision_function_shape="ovo", via="features").fit(X, y)
    m = KernelSVC(multiclass="ovr").fit(X, y).set_params(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="fit with multiclass='ovo'"):
        m.decision_function(X)
    m = KernelSVC().fit(X, y).set_params(decision_function_shape="ovo")  # as in scikit-learn
    assert m.decision_function(X).shape == (90, 3)
