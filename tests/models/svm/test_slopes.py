"""Coefficients of the columns where the kernel is linear: those of scikit-learn, and those that
scores are made of."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.feature_selection import RFE

import mercer
from mercer import KernelSVC, KernelSVR, OneClassSVM
from mercer.kernels import Gaussian, Linear


def data(seed=0, n=80, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    f = X @ rng.normal(size=d)
    return X, f, np.digitize(f, np.quantile(f, [0.3, 0.6]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_they_are_those_of_scikit_learn(form, classes):
    X, _, y = data()
    y = np.minimum(y, classes - 1)
    ours = KernelSVC("linear", via="exact", tol=1e-8).fit(form(X), y)
    theirs = svm.SVC(kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [Linear(), 0.5 * (3.0 * Linear()), 2.0 * Linear(np.diag([1.0, 2, 3, 4]))]
)
def test_scores_are_made_of_them(kernel, dtype):
    X, f, y = data(1)
    X = X.astype(dtype)
    pairs = KernelSVC(kernel, via="exact", decision_function_shape="ovo").fit(X, y)
    rest = KernelSVC(kernel, via="exact", multiclass="ovr").fit(X, y)
    tube, single = KernelSVR(kernel, epsilon=0.01).fit(X, f), OneClassSVM(kernel).fit(X)
    assert pairs.coef_.shape == rest.coef_.shape == (3, 4)
    for m, said in (
        (pairs, pairs.decision_function(X)),
        (rest, rest.decision_function(X)),
        (tube, tube.predict(X)[:, None]),
        (single, single.decision_function(X)[:, None]),
    ):
        atol = 1000 * np.finfo(dtype).eps * np.abs(said).max()
        np.testing.assert_allclose(X @ m.coef_.T + m.intercept_, said, atol=atol, rtol=0)


def test_names_are_of_columns_and_labels_of_scores(tmp_path):
    X, _, y = data(2)
    labels = np.array(["a", "b", "c"])[y]
    m = KernelSVC("linear", via="exact").fit(X, labels)
    named = m.coef_by_name(["p", "q", "r", "s"])
    assert list(named) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert dict(named["a", "c"]) == dict(zip("pqrs", m.coef_[1], strict=True))
    assert m.coef_by_name(top=1)["a", "b"][0][0] == f"x{np.abs(m.coef_[0]).argmax()}"
    m.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").coef_, m.coef_)


def test_columns_can_be_left_out_by_them():
    X, f, _ = data(3)
    X = np.hstack([X, np.zeros((len(X), 2))])
    kept = RFE(KernelSVC("linear"), n_features_to_select=4).fit(X, f > 0).support_
    assert kept.tolist() == [True] * 4 + [False] * 2


def test_other_kernels_and_given_matrices_have_none():
    X, _, y = data(4)
    for m in (
        KernelSVC(Gaussian(1.0), via="exact").fit(X, y),
        KernelSVC(Linear() + Gaussian(1.0), via="exact").fit(X, y),
        KernelSVC("precomputed").fit(X @ X.T, y),
    ):
        assert not hasattr(m, "coef_")
        with pytest.raises(AttributeError, match="kernel='linear'"):
            m.coef_by_name()
