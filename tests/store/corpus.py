"""What is changed by the fuzzer: every estimator, way, map and table model, small, and the questions that each is asked."""
from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer import GaussianProcessRegressor, KernelLogistic, KernelPCA, KernelRidge, KernelSVC, OneClassSVM
from mercer.estimators import KernelKMeans, KernelPerceptron, KernelSVR, NadarayaWatson, Perceptron
from mercer.kernels import AllSubsets, Anova, Gaussian, Laplace, Periodic, Polynomial
from mercer.lifts import HashedFeatures, Monomials, Nystrom, RandomFourier, SparseProjection, Splines, Taylor, TensorSketch
from mercer.methods import Fourier, Landmarks
from tests.store.market import LABELS, MODELS, K, X, Y, fitted

THREE = np.array(["a", "b", "c"])[np.digitize(Y, [-0.3, 0.3])]
CSR = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
GRAM = K(X)
FEW = Fourier(16)

WAYS = {
    "svc of pairs": (KernelSVC(K), X, THREE),
    "svc one against rest": (KernelSVC(K, multiclass="ovr"), X, THREE),
    "svc with probabilities": (KernelSVC(Polynomial(2), probability=True, warm_start=True), X, LABELS),
    "svc of a gram": (KernelSVC("precomputed"), GRAM, LABELS),
    "svc of csr": (KernelSVC(Laplace(2.0)), CSR, LABELS),
    "svr": (KernelSVR(Anova(2)), X, Y),
    "one class": (OneClassSVM(AllSubsets()), np.abs(X) / 9, None),
    "ridge exact": (KernelRidge(Laplace(2.0), via="exact"), X, Y),
    "ridge exact of csr": (KernelRidge(K, via="exact"), CSR, np.c_[Y, Y]),
    "ridge of a gram": (KernelRidge("precomputed", via="exact"), GRAM, Y),
    "ridge folds": (KernelRidge(lift=Monomials(2), cv=3, alphas=[0.1, 1.0]), X, Y),
    "ridge falkon": (KernelRidge(K, via=Landmarks(8)), X, Y),
    "ridge spread": (KernelRidge(lift=RandomFourier(Periodic(1.0, 2.0).on_columns([0, 2]), 16, random_state=0)), X, Y),
    "logistic of three": (KernelLogistic(K, via=FEW, random_state=0), X, THREE),
    "gp exact": (GaussianProcessRegressor(K, via="exact"), X, Y),
    "gp of csr": (GaussianProcessRegressor(K, via="exact"), CSR, Y),
    "gp landmarks": (GaussianProcessRegressor(K, via=Landmarks(9), random_state=0), X, Y),
    "gp iterative": (GaussianProcessRegressor(K, via="iterative"), X, Y),
    "pca exact": (KernelPCA(2, K, via="exact"), X, None),
    "pca features": (KernelPCA(2, K, via=FEW, random_state=0), X, None),
    "kmeans features": (KernelKMeans(3, K, via=FEW, random_state=0), X, None),
    "smoother": (NadarayaWatson(Laplace(1.0)), CSR, Y),
    "perceptron of three": (Perceptron(K, random_state=0), X, THREE),
    "perceptron of csr": (Perceptron(lift=Monomials(2)), CSR, LABELS),
    **{f"budget {p}": (KernelPerceptron(K, budget=9, policy=p, random_state=0), X, THREE)
       for p in ("random", "oldest", "forgetron", "projectron", "projectron++", "merging")},
    "landmarks of a gram": (Nystrom("precomputed", 8, random_state=0), GRAM, None),
    "landmarks of csr": (Nystrom(Laplace(2.0), 8, random_state=0), CSR, None),
    "monomials of csr": (Monomials(3, weights="kernel"), CSR, None),
    "capped": (Monomials(3, degree_per_column=[1, 2, 3]), X, None),
    "ordered": (Monomials(2, ordered=True, include_bias=False), X, None),
    "sparse projection": (SparseProjection(8, s=2, random_state=0), CSR, None),
    "hashed wide": (HashedFeatures(1 << 14), CSR, None),
    "sketch of many": (TensorSketch(2, 64, random_state=0), np.tile(X, 30), None),
    "sketch of csr": (TensorSketch(3, 16, random_state=0), CSR, None),
    "fastfood": (RandomFourier(K, 64, frequencies="structured", random_state=0), X, None),
    "fused csr": (Monomials(2) >> SparseProjection(8, random_state=0), CSR, None),
    "splines periodic": (Splines(4, extrapolation="periodic"), X, None),
    "taylor of csr": (Taylor(K, 2), CSR, None),
}
_rows = {}


def models(names=None):
    """(name, fitted model), all or those named."""
    with warnings.catch_warnings(action="ignore"):
        for name in MODELS:
            if names is None or name in names:
                _rows[name] = X, (None, Y, LABELS)
                yield name, fitted(name)
        for name, (m, rows, y) in WAYS.items():
            if names is None or name in names:
                m = clone(m).fit(rows) if y is None else clone(m).fit(rows, y)
                if name == "pca exact":
                    m.inverse_transform(m.transform(rows[:2]))
                yield name, m
        for name, make in TABLES.items():
            if names is None or name in names:
                yield name, make()


def asked(name, m):
    """Every answer of a model on a few rows, then some more rows where it learns from a stream."""
    if name in TABLES:
        return m.predict_batches(frame(8)) and [list(m.predict_batches(frame(8))), repr(m)]
    rows, y = WAYS[name][1:] if name in WAYS else (X, None)
    rows = rows[:8]
    for way in ("predict", "transform", "decision_function", "predict_proba", "distances", "get_feature_names_out"):
        if hasattr(m, way):
            answer = getattr(m, way)() if way == "get_feature_names_out" else getattr(m, way)(rows)
            if way == "transform" and hasattr(m, "inverse_transform"):
                m.inverse_transform(answer)
    if hasattr(m, "partial_fit"):
        labels = y if y is not None else LABELS if hasattr(m, "classes_") else Y
        m.partial_fit(rows, labels[: rows.shape[0]])
    return None


# tables
def frame(n):
    import pandas as pd

    rng = np.random.default_rng(5)
    f = pd.DataFrame({
        "a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n), "c": rng.integers(0, 2, n).astype(bool),
        "d": pd.date_range("2020-01-01", periods=n, freq="D"), "e": [f"word {i % 7} more text" for i in range(n)],
    })  # fmt: skip
    f["y"] = f["a"] * 2 + (f["b"] == "x") + 0.1 * rng.normal(size=n)
    f["k"] = np.where(f["y"] > 0, "high", "low")
    return f


def _table(target, drop):
    import mercer

    return mercer.fit_table(frame(160).drop(columns=drop), target, time=2.0)


def _machines(n_classes):
    """A table model whose machine has several cells, put together by hand, as small tables have but one."""
    from mercer.product.machines import Setting, fit
    from mercer.product.predictors import Classifier, Regressor
    from mercer.product.rows import Rows
    from mercer.product.targets import Identity

    t = _table("k" if n_classes else "y", ["y"] if n_classes else ["k"])
    width = len(t.columns.feature_names_)
    Z = np.random.default_rng(0).normal(size=(90, width))
    y = (Z[:, 0] > 0).astype(int) if n_classes else Z[:, 0]
    m = fit(Rows(Z, y, np.arange(90)), y, n_classes, Setting(Gaussian(2.0), 0.1), 40, 1e9)
    predictor = Classifier(m, 2) if n_classes else Regressor(m, Identity(), -9.0, 9.0)
    return type(t)(t.columns, predictor, t.margin, t.decision, t.evidence)


TABLES = {
    "table of numbers": lambda: _table("y", ["k"]),
    "table of classes": lambda: _table("k", ["y"]),
    "machines of numbers": lambda: _machines(0),
    "machines of classes": lambda: _machines(2),
}
