"""Dense rows to learn from and CSR rows to ask about, or the other way round: the same answers, for
every kernel and learner."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.inputs import Table
from mercer.kernels import AllSubsets, Anova, Gaussian, Laplace, Matern, Periodic, Polynomial
from mercer.methods import Landmarks
from mercer.pairs import Side, Tile, centre_of
from tests.market import LEAVES, TREES, rows

rng = np.random.default_rng(0)
X = np.where(rng.uniform(size=(20, 3)) < 0.3, 0.0, rng.uniform(0.2, 1, size=(20, 3)))
Z = 0.9 * X[:7] + 0.05
Y = X[:, 0] + 0.1 * rng.normal(size=20)
CLASSES = (np.median(Y) < Y).astype(int)

KERNELS = [
    Periodic(),
    Anova(2),
    AllSubsets(),
    Gaussian(),
    Laplace(norm=1),
    Matern(),
    Polynomial(2),
    Gaussian().on_columns([0, 2]) + Periodic(),
]
LEARNERS = {
    "ridge": lambda k: mercer.KernelRidge(k),
    "ridge iterative": lambda k: mercer.KernelRidge(k, via="iterative"),
    "ridge landmarks": lambda k: mercer.KernelRidge(k, via=Landmarks(5), random_state=0),
    "process": lambda k: mercer.GaussianProcessRegressor(k, 0.1),
    "process iterative": lambda k: mercer.GaussianProcessRegressor(k, 0.1, via="iterative"),
    "process landmarks": lambda k: mercer.GaussianProcessRegressor(
        k, 0.1, via=Landmarks(5), random_state=0
    ),
    "process classifier": lambda k: mercer.GaussianProcessClassifier(k, fixed=True),
    "components": lambda k: mercer.KernelPCA(2, k, via="exact"),
    "clusters": lambda k: mercer.KernelKMeans(2, k, random_state=0),
    "vectors": lambda k: mercer.KernelSVC(k, via="exact"),
    "regression vectors": lambda k: mercer.KernelSVR(k),
    "one class": lambda k: mercer.OneClassSVM(k),
    "average": lambda k: mercer.NadarayaWatson(k),
    "neighbours": lambda k: mercer.SoftNeighborsClassifier(k),
    "perceptron": lambda k: mercer.KernelPerceptron(k),
}


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("k", [*LEAVES.values(), *TREES.values()], ids=repr)
def test_tiles_of_dense_and_sparse_rows(k, offset):
    A, B = rows(9) + offset, rows(7, seed=1) + offset
    left, right = Table(A), Table(B)
    centre = centre_of(left, left)
    with np.errstate(over="ignore"):  # exp(x'z) far away
        want = k.on(Tile(Side(left, centre), Side(right, centre)))
        for a, b in ((Table(sp.csr_array(A)), right), (left, Table(sp.csr_array(B)))):
            np.testing.assert_array_equal(k.on(Tile(Side(a, centre), Side(b, centre))), want)


def said(m, A):
    ways = ("predict", "transform", "decision_function", "predict_proba")
    found = [np.asarray(getattr(m, way)(A)) for way in ways if hasattr(m, way)]
    return (
        [*found, m.predict(A, return_std=True)[1]]
        if isinstance(m, mercer.GaussianProcessRegressor)
        else found
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_of_dense_and_sparse_rows(name):
    for k in KERNELS:
        m = LEARNERS[name](k)
        t = CLASSES if hasattr(m, "predict_proba") or hasattr(m, "decision_function") else Y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence and negative votes
            want = said(m.fit(X, t), Z)
            for A, B in (
                (X, sp.csr_array(Z)),
                (sp.csr_array(X), Z),
                (sp.csr_matrix(X), sp.csr_matrix(Z)),
            ):
                for ours, theirs in zip(said(LEARNERS[name](k).fit(A, t), B), want, strict=True):
                    np.testing.assert_allclose(
                        ours, theirs, rtol=1e-5, atol=1e-5, err_msg=f"{k!r} {type(A)} {type(B)}"
                    )


def test_points_of_both_kinds_join():
    m, twin = (
        mercer.GaussianProcessRegressor(Periodic(), 0.1, via="exact").fit(A, Y)
        for A in (X, sp.csr_array(X))
    )
    m.partial_fit(sp.csr_array(Z), Y[:7])
    twin.partial_fit(Z, Y[:7])
    np.testing.assert_allclose(m.predict(X), twin.predict(X), rtol=1e-8)
