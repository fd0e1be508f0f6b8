"""Kernels as scikit-learn's users have them: names with gamma, functions, kernels of its processes;
and the same answers as there."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition, gaussian_process, kernel_approximation, kernel_ridge, svm
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

import mercer
import mercer.models
from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    OneClassSVM,
)
from mercer.kernels import Callable, Chi2, Gaussian, Linear
from mercer.lifts import KernelLift, Monomials, Nystrom, RandomFourier
from mercer.methods import Fourier
from mercer.models import KernelSVR, Perceptron

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X[-1] = X[0]
NEW = RNG.normal(size=(9, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)
LABELS = (Y > 0).astype(int)
WITHOUT = {"LearnedMetric"}  # whose kernel is one of ours, or none

MODELS = {
    name: cls
    for name in mercer.models.__all__
    if hasattr(cls := getattr(mercer.models, name), "fit")
    and "kernel" in inspect.signature(cls).parameters
    and name not in WITHOUT
}
EVERY = MODELS | {cls.__name__: cls for cls in (KernelLift, Nystrom, RandomFourier)}


def made(cls, kernel=None, **given):
    known = inspect.signature(cls).parameters
    small = {"n_features": 8, "n_landmarks": 8, "n_clusters": 2, "random_state": 0, "n_restarts": 0}
    return cls(kernel=kernel, **{n: v for n, v in small.items() if n in known}, **given)


def fitted(model, rows=X):
    with warnings.catch_warnings(action="ignore"):
        return model.fit(rows, LABELS if is_classifier(model) else Y)


@pytest.mark.parametrize("name", EVERY)
def test_gamma_is_of_names(name):
    found = fitted(made(EVERY[name], "rbf", gamma=0.3)).kernel_
    if "GaussianProcess" not in name:  # where learning begins
        assert found == Gaussian.of(gamma=0.3)
    assert isinstance(fitted(made(EVERY[name], "gaussian", gamma="scale")).kernel_, Gaussian) or (
        "GaussianProcess" in name
    )
    with pytest.raises(
        ValueError, match=r"write Gaussian\(bandwidth=1\), as .* 1/sqrt\(2\*gamma\)"
    ):
        fitted(made(EVERY[name], Gaussian(), gamma=0.5))
    with pytest.raises(ValueError, match=r"'sigmoid', .* is no kernel"):
        fitted(made(EVERY[name], "sigmoid"))
    model = made(EVERY[name], "rbf", gamma=0.3)
    assert clone(model).get_params()["gamma"] == 0.3


@pytest.mark.parametrize("name", EVERY)
def test_files_of_before_have_no_gamma(name):
    model = made(EVERY[name])
    for parameter in ("gamma", "degree", "coef0"):
        vars(model).pop(parameter, None)
    assert clone(model).get_params()["gamma"] is None
    assert repr(model) == repr(made(EVERY[name]))


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"RandomFourier"}))
def test_rows_below_zero_are_named_in_fit_and_after_it(name):
    with pytest.raises(
        ValueError, match=r"^Chi2 takes numbers >= 0, but row 0 of X has -[\d.]+ in"
    ):
        fitted(made(EVERY[name], "chi2", gamma=0.5))
    model = fitted(made(EVERY[name], Chi2(0.5)), np.abs(X))
    ask = model.predict if hasattr(model, "predict") else model.transform
    ask(np.abs(NEW))
    new = np.abs(NEW)
    new[4, 1] = -0.25
    with pytest.raises(ValueError, match=r"row 4 of X has -0.25 in column 1 \(Negative values"):
        ask(new)


# twins: scikit-learn's and ours, asked the same
NAMED = [
    *((name, {"gamma": g}) for name in ("rbf", "laplacian", "chi2") for g in (0.2, 2.0)),
    *(("poly", {"gamma": 0.5, "degree": d, "coef0": c}) for d in (2, 3) for c in (0.0, 0.7)),
    ("linear", {}),
    ("linear", {"gamma": 3.0}),
    ("cosine", {}),
]


@pytest.mark.parametrize(("name", "given"), NAMED)
def test_ridge(name, given):
    A, B = (np.abs(X), np.abs(NEW)) if name == "chi2" else (X, NEW)
    theirs = kernel_ridge.KernelRidge(kernel=name, alpha=0.5, **given).fit(A, Y).predict(B)
    ours = KernelRidge(name, 0.5, fit_intercept=False, **given).fit(A, Y).predict(B)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


SVM_NAMED = [
    *(("rbf", {"gamma": g}) for g in ("scale", "auto", 0.2)),
    *(("poly", {"gamma": g, "degree": 2, "coef0": 0.5}) for g in ("scale", "auto", 0.2)),
    ("linear", {}),
]


@pytest.mark.parametrize("of", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("name", "given"), SVM_NAMED)
def test_machines(name, given, of):
    rows, new, tight = of(X), of(NEW), {"tol": 1e-7}
    theirs = svm.SVC(kernel=name, **given, **tight).fit(rows, LABELS).decision_function(new)
    ours = KernelSVC(name, **given, **tight, via="exact").fit(rows, LABELS).decision_function(new)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    theirs = svm.SVR(kernel=name, **given, **tight).fit(rows, Y).predict(new)
    ours = KernelSVR(name, **given, **tight).fit(rows, Y).predict(new)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    if name == "rbf":
        theirs = svm.OneClassSVM(**given, **tight).fit(rows).decision_function(new)
        ours = OneClassSVM(name, **given, **tight).fit(rows).decision_function(new)
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize(("name", "given"), [n for n in NAMED if n[0] in ("rbf", "poly", "cosine")])
def test_components(name, given):
    theirs = decomposition.KernelPCA(3, kernel=name, **given).fit(X).transform(NEW)
    ours = KernelPCA(3, name, via="exact", **given).fit(X).transform(NEW)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


@pytest.mark.parametrize(("name", "given"), [n for n in NAMED if n[0] in ("rbf", "poly")])
def test_landmarks(name, given):
    """With all rows for landmarks both are the kernel."""
    theirs = kernel_approximation.Nystroem(name, n_components=39, **given).fit_transform(X[:39])
    F = Nystrom(name, 39, random_state=0, **given).fit_transform(X[:39])
    np.testing.assert_allclose(F @ F.T, theirs @ theirs.T, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "kernel", [rbf_kernel, lambda x, z: float(x @ z)], ids=["matrices", "rows"]
)
@pytest.mark.parametrize("name", MODELS)
def test_functions_are_taken_by_every_model(name, kernel):
    model = fitted(made(MODELS[name], kernel))
    assert "Callable(" in str(model.kernel_)


def test_functions_become_features_by_landmarks_where_nothing_else_is_asked_for():
    auto, features, asked = (
        KernelLogistic(rbf_kernel, via=via, random_state=0).fit(X, LABELS).decision_function(NEW)
        for via in ("auto", "features", "landmarks")
    )
    np.testing.assert_array_equal(auto, asked)
    np.testing.assert_array_equal(features, asked)
    both = KernelRidge(Callable(rbf_kernel) + Linear(), via="features", random_state=0).fit(X, Y)
    assert both.plan_.settings["lift"] == "Nystrom"
    with pytest.raises(ValueError, match=r"use Landmarks\(n\).* as method= or via="):
        KernelLogistic(rbf_kernel, via=Fourier(10)).fit(X, LABELS)


PROCESS = [
    (ConstantKernel(2.0, "fixed") * RBF(1.5, "fixed"), 0.1),
    (ConstantKernel(2.0, "fixed") * RBF([1.0, 2.0, 4.0], "fixed") + DotProduct(1.0, "fixed"), 0.1),
    (RBF(1.0, "fixed"), 0.5),
]


@pytest.mark.parametrize(("kernel", "noise"), PROCESS)
def test_processes_as_they_are(kernel, noise):
    theirs = gaussian_process.GaussianProcessRegressor(kernel, alpha=noise).fit(X, Y)
    ours = [
        GaussianProcessRegressor(kernel, noise, prior_mean=0.0),
        GaussianProcessRegressor(kernel + WhiteKernel(noise, "fixed"), prior_mean=0.0),
    ]
    mean, std = theirs.predict(NEW, return_std=True)
    for model in ours:
        found = model.fit(X, Y).predict(NEW, return_std=True, of="f")
        np.testing.assert_allclose(found[0], mean, atol=1e-8)
        np.testing.assert_allclose(found[1], std, atol=1e-6)


def test_processes_that_learn():
    kernel = ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1)
    theirs = gaussian_process.GaussianProcessRegressor(kernel).fit(X, Y)
    c, length, noise = np.exp(theirs.kernel_.theta)
    ours = GaussianProcessRegressor(kernel, prior_mean=0.0, random_state=0).fit(X, Y)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=0.02)
    np.testing.assert_allclose(ours.noise_, noise, rtol=0.05)
    np.testing.assert_allclose(ours.kernel_.kernel.bandwidth, length, rtol=0.05)
    np.testing.assert_allclose(ours.kernel_.factor, c, rtol=0.1)


def test_what_is_fixed_stays_so():
    kernel = ConstantKernel(3.0) * RBF(1.25, "fixed")
    found = GaussianProcessRegressor(kernel, random_state=0).fit(X, Y).kernel_
    assert found.kernel == Gaussian(1.25)
    assert found.factor != 3.0
    found = GaussianProcessRegressor(ConstantKernel(3.0, "fixed") * RBF(1.25)).fit(X, Y).kernel_
    assert found.factor == 3.0
    found = GaussianProcessClassifier(3.0 * RBF(1.25, "fixed")).fit(X, LABELS).kernel_
    assert found.kernel == Gaussian(1.25)


def test_noise_is_of_regressions():
    with pytest.raises(ValueError, match=r"has a WhiteKernel, and noise=0\.1 is given too"):
        GaussianProcessRegressor(RBF() + WhiteKernel(), 0.1).fit(X, Y)
    for model in (KernelRidge, KernelSVC, GaussianProcessClassifier, Perceptron):
        with pytest.raises(ValueError, match="WhiteKernel is noise, not a kernel of rows"):
            model(RBF() + WhiteKernel()).fit(X, LABELS)


# functions
def of_rows(x, z):
    return (1 + x @ z) ** 2


def of_matrices(A, B):
    return (1 + A @ B.T) ** 2


def test_functions_as_in_scikit_learn():
    theirs = kernel_ridge.KernelRidge(kernel=of_rows).fit(X, Y).predict(NEW)
    machine = svm.SVC(kernel=of_matrices, tol=1e-7).fit(X, LABELS).decision_function(NEW)
    for f in (of_rows, of_matrices):
        ours = KernelRidge(f, fit_intercept=False).fit(X, Y).predict(NEW)
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
        ours = KernelSVC(f, tol=1e-7).fit(X, LABELS).decision_function(NEW)
        np.testing.assert_allclose(ours, machine, atol=1e-4)


# searches
def test_names_and_gammas_are_searched_together():
    grid = {"kernel": ["rbf", "linear"], "gamma": [0.1, 1.0]}
    found = GridSearchCV(KernelSVC(), grid, cv=3).fit(X, LABELS)
    assert found.best_score_ > 0.6
    assert GridSearchCV(KernelRidge(), {"gamma": [0.1, "scale"]}, cv=3).fit(X, Y).best_score_ > 0


@pytest.mark.parametrize("model", [KernelSVC(), KernelSVC("rbf"), RandomFourier()])
def test_parameters_of_a_kernel_that_is_not_there(model):
    said = (
        r"kernel__bandwidth is a parameter of a kernel, .* \w+\(kernel=Gaussian\(\)\), or set gamma"
    )
    with pytest.raises(ValueError, match=said):
        model.set_params(kernel__bandwidth=2.0)
    with pytest.raises(ValueError, match=said):
        GridSearchCV(clone(model), {"kernel__bandwidth": [1.0, 2.0]}, scoring="r2").fit(X, LABELS)
    model = clone(model).set_params(kernel=Gaussian(), kernel__bandwidth=2.0)
    assert model.kernel == Gaussian(2.0)


def test_a_lift_has_no_gamma():
    with pytest.raises(ValueError, match="a lift has its own parameters"):
        KernelRidge(lift=Monomials(2), gamma=0.5).fit(X, Y)


def test_sparse_cosines_need_no_kernel_values():
    rows = sp.random(90, 150, 0.04, "csr", random_state=0)
    y = np.asarray(rows.sum(axis=1)).ravel()
    found = KernelRidge("cosine", fit_intercept=False, tol=1e-13).fit(rows, y)
    dense = KernelRidge(Linear().normalized(), fit_intercept=False, via="exact").fit(rows, y)
    np.testing.assert_allclose(found.predict(rows), dense.predict(rows), atol=1e-8)
    assert found.plan_.way == "sparse conjugate gradients"


def test_a_file_holds_our_kernel_in_place_of_theirs(tmp_path):
    model = KernelRidge(2.0 * RBF(1.5)).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"kernel is a sklearn.* not a class of Mercer; .* replace it"
    ):
        model.save(tmp_path / "m.mercer")
    model.set_params(kernel=model.kernel_).save(tmp_path / "m.mercer")
    found = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(found.predict(NEW), model.predict(NEW))
    assert found.kernel == 2.0 * Gaussian(1.5)
