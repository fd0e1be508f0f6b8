"""What is changed by the fuzzer: every estimator, way, map and table model, small, and the
questions that each is asked."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold

from mercer import (
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    OneClassSVM,
)
from mercer.kernels import AllSubsets, Anova, Gaussian, Laplace, Periodic, Polynomial
from mercer.lifts import (
    HashedFeatures,
    Monomials,
    Nystrom,
    RandomFourier,
    SparseProjection,
    Splines,
    Taylor,
    TensorSketch,
)
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelKMeans, KernelPerceptron, KernelSVR, NadarayaWatson, Perceptron
from tests.store.market import LABELS, MODELS, K, X, Y, fitted, rows_of

THREE = np.array(["a", "b", "c"])[np.digitize(Y, [-0.3, 0.3])]
CSR = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
GRAM = K(X)
NAMED = pd.DataFrame({"a": [f"é{i % 9}" for i in range(60)], "b": Y, "c": X[:, 0] > 0})
FEW = Fourier(16)

WAYS = {
    "svc of pairs": (KernelSVC(K), X, THREE),
    "svc one against rest": (KernelSVC(K, multiclass="ovr"), X, THREE),
    "svc with probabilities": (
        KernelSVC(Polynomial(2), probability=True, warm_start=True),
        X,
        LABELS,
    ),
    "svc of a gram": (KernelSVC("precomputed"), GRAM, LABELS),
    "svc of csr": (KernelSVC(Laplace(2.0)), CSR, LABELS),
    "svr": (KernelSVR(Anova(2)), X, Y),
    "one class": (OneClassSVM(AllSubsets()), np.abs(X) / 9, None),
    "ridge exact": (KernelRidge(Laplace(2.0), via="exact"), X, Y),
    "ridge exact of csr": (KernelRidge(K, via="exact"), CSR, np.c_[Y, Y]),
    "ridge of a gram": (KernelRidge("precomputed", via="exact"), GRAM, Y),
    "ridge folds": (KernelRidge(lift=Monomials(2), cv=3, alphas=[0.1, 1.0]), X, Y),
    "ridge falkon": (KernelRidge(K, via=Landmarks(8)), X, Y),
    "ridge spread": (
        KernelRidge(lift=RandomFourier(Periodic(1.0, 2.0).on_columns([0, 2]), 16, random_state=0)),
        X,
        Y,
    ),
    "ridge of two": (KernelRidge(K, via=FEW, alpha=[0.1, 1.0], random_state=0), X, np.c_[Y, -Y]),
    "ridge of two, by passes": (
        KernelRidge(K, via=FEW, memory_limit=1000, random_state=0),
        X,
        np.c_[Y, -Y],
    ),
    "ridge left out": (KernelRidge(K, via="exact", cv="loo", bandwidths=[0.5, 1.0]), X, Y),
    "ridge features left out": (KernelRidge(lift=Monomials(2), cv="loo"), X, Y),
    "ridge given folds": (
        KernelRidge(K, via="exact", cv=list(KFold(3).split(X)), alphas=[0.1, 1.0]),
        X,
        Y,
    ),
    "ridge exact folds": (KernelRidge(K, via="exact", cv=3, alphas=[0.1, 1.0]), X, Y),
    "ridge weighted": (KernelRidge(K, via="exact"), X, Y),
    "ridge of a weighted gram": (KernelRidge("precomputed"), GRAM, Y),
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
    **{
        f"budget {p}": (KernelPerceptron(K, budget=9, policy=p, random_state=0), X, THREE)
        for p in ("random", "oldest", "forgetron", "projectron", "projectron++", "merging")
    },
    "landmarks of a gram": (Nystrom("precomputed", 8, random_state=0), GRAM, None),
    "landmarks of csr": (Nystrom(Laplace(2.0), 8, random_state=0), CSR, None),
    "monomials of csr": (Monomials(3, weights="kernel"), CSR, None),
    "capped": (Monomials(3, degree_per_column=[1, 2, 3]), X, None),
    "ordered": (Monomials(2, ordered=True, include_bias=False), X, None),
    "sparse projection": (SparseProjection(8, s=2, random_state=0), CSR, None),
    "hashed wide": (HashedFeatures(1 << 14), CSR, None),
    "hashed names": (HashedFeatures(12, 2, crosses=[("a", "b")], memory_limit=900), NAMED, None),
    "sketch of many": (TensorSketch(2, 64, random_state=0), np.tile(X, 30), None),
    "sketch of csr": (TensorSketch(3, 16, random_state=0), CSR, None),
    "fastfood": (RandomFourier(K, 64, frequencies="structured", random_state=0), X, None),
    "fused csr": (Monomials(2) >> SparseProjection(8, random_state=0), CSR, None),
    "splines periodic": (Splines(4, extrapolation="periodic"), X, None),
    "taylor of csr": (Taylor(K, 2), CSR, None),
}
WEIGHT = np.where(np.arange(len(Y)) % 7, 1.5, 0.0)  # rows that do not count
WEIGHTED = ("ridge weighted", "ridge of a weighted gram")


def models(names=None):
    """(name, fitted model), all or those named."""
    with warnings.catch_warnings(action="ignore"):
        for name in MODELS:
            if names is None or name in names:
                yield name, fitted(name)
        for name, (m, rows, y) in WAYS.items():
            if names is None or name in names:
                given = (
                    (rows,) if y is None else (rows, y, WEIGHT) if name in WEIGHTED else (rows, y)
                )
                m = clone(m).fit(*given)
                if name == "ridge given folds":
                    m.set_params(
                        cv=3
                    )  # places that the user gave are no part of the model: only `fit` reads them
                if name == "pca exact":
                    m.inverse_transform(m.transform(rows[:2]))
                yield name, m
        for name, make in TABLES.items():
            if names is None or name in names:
                yield name, make()


WAYS_TO_ASK = (
    "predict",
    "transform",
    "decision_function",
    "predict_proba",
    "predict_interval",
    "distances",
    "inverse_transform",
    "cv_scores",
    "loo_predictions_",
    "loo_score_",
    "get_feature_names_out",
    "score",
    "names",
    "collisions_",
)


def asked(name, m):
    """Every answer of a model on a few rows, then some more rows where it learns from a stream; the
    worst of its errors, if any."""
    errors = []
    for question in _tables(m) if name in TABLES else _questions(name, m):
        try:
            question()
        except Exception as e:
            errors.append(e)
    if errors:
        raise next(
            (
                e
                for e in errors
                if isinstance(e, IndexError | SystemError | AssertionError)
                or "out of bounds" in str(e)
            ),
            errors[0],
        )


def _questions(name, m):
    rows, y = WAYS[name][1:] if name in WAYS else (rows_of(m), None)
    rows = rows[:8]
    y = (y if y is not None else LABELS if hasattr(m, "classes_") else Y)[: rows.shape[0]]
    given = {"inverse_transform": lambda: (m.transform(rows),), "score": lambda: (rows, y)}
    given["names"] = lambda: (3,)
    for way in ("cv_scores", "get_feature_names_out", "loo_predictions_", "loo_score_"):
        given[way] = tuple
    for way in WAYS_TO_ASK:
        if _has(m, way):
            yield (
                lambda way=way: (
                    callable(f := getattr(m, way)) and f(*given.get(way, lambda: (rows,))())
                )
            )
    if hasattr(m, "partial_fit"):
        yield lambda: m.partial_fit(rows, y)


def _has(m, way):
    """Whether there is such a method or property, which is not asked yet."""
    return hasattr(type(m), way) and (
        isinstance(vars(type(m)).get(way), property) or hasattr(m, way)
    )


def _tables(m):
    few = frame(8)
    yield lambda: m.predict(few)
    yield lambda: m.predict_proba(few) if m.classes else m.predict_interval(few, 0.5)
    yield lambda: m.score(few)
    yield lambda: repr(m)


# tables
def frame(n):
    import pandas as pd

    rng = np.random.default_rng(5)
    f = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.choice(["x", "y", "z"], n),
            "c": rng.integers(0, 2, n).astype(bool),
            "d": pd.date_range("2020-01-01", periods=n, freq="D"),
            "e": [f"word {i % 7} more text" for i in range(n)],
        }
    )
    f["y"] = f["a"] * 2 + (f["b"] == "x") + 0.1 * rng.normal(size=n)
    f["k"] = np.where(f["y"] > 0, "high", "low")
    return f


@cache
def _table(target, drop):
    import mercer

    return mercer.fit_table(frame(160).drop(columns=[drop]), target, time=0.5)


def _machines(n_classes):
    """A table model whose machine has several cells, put together by hand, as small tables have but
    one."""
    from mercer.automl.machines import MachineSetting, fit_machine
    from mercer.automl.predictors import Classifier, IdentityTarget, Regressor
    from mercer.automl.rows import TableRows

    t = _table("k" if n_classes else "y", "y" if n_classes else "k")
    width = len(t.columns.feature_names_)
    Z = np.random.default_rng(0).normal(size=(90, width))
    y = (Z[:, 0] > 0).astype(int) if n_classes else Z[:, 0]
    m = fit_machine(
        TableRows(Z, y, np.arange(90)), y, n_classes, MachineSetting(Gaussian(2.0), 0.1), 40, 1e9
    )
    predictor = Classifier(m, 2) if n_classes else Regressor(m, IdentityTarget(), -9.0, 9.0)
    return type(t)(t.columns, predictor, t.margin, t.decision, t.result, t.unusual)


def _mean():
    """A mean of models, one of which is a machine of squares of indicators; a number by its
    ranks."""
    from copy import copy
    from dataclasses import replace

    from mercer.automl.machines import MachineSetting, fit_machine
    from mercer.automl.predictors import Classifier, ConstantPredictor, WeightedMean
    from mercer.automl.rows import TableRows
    from mercer.tables.scale import RankNormalizer

    t = _table("k", "y")
    columns = copy(t.columns)
    ranked = replace(columns.encoders_["a"], scale=RankNormalizer.of(np.arange(40.0) ** 2))
    columns.encoders_ = columns.encoders_ | {"a": ranked}
    Z = np.random.default_rng(0).normal(size=(90, len(columns.feature_names_)))
    y = (Z[:, 0] > 0).astype(int)
    plan = MachineSetting(Gaussian(2.0), 0.1, "squared")
    m = fit_machine(TableRows(Z, y, np.arange(90)), y, 2, plan, 90, 1e9)
    mean = WeightedMean((Classifier(m, 2), ConstantPredictor((0.5, 0.5), 2)), (0.75, 0.25))
    return replace(t, columns=columns, predictor=mean)


def _texts():
    """A table model with scores of texts, by n-grams hashed and weighed."""
    from copy import copy
    from dataclasses import replace

    from mercer import NGrams
    from mercer.automl.intervals import fit_novelty
    from mercer.automl.predictors import ConstantPredictor
    from mercer.automl.rows import TableRows
    from mercer.tables.encoders import TextEncoder
    from mercer.tables.scale import Standardizer
    from mercer.tables.texts import LinearScores, TextScores, TextScoresEncoder

    t, rng = _table("k", "y"), np.random.default_rng(0)
    columns, texts = copy(t.columns), frame(160)["e"]
    columns.encoders_ = dict(columns.encoders_)
    lifts = (
        NGrams(words=(1, 2), weight="tfidf", n_features=32, dtype=np.float32).fit(texts),
        NGrams(chars=(2, 3), within_words=True, n_features=16).fit(texts),
    )
    linear = LinearScores(
        rng.normal(size=(48, 1)).astype(np.float32), np.ones(1), rng.normal(size=48)
    )
    sizes = TextEncoder(None, Standardizer(), Standardizer())
    made = TextScoresEncoder(sizes, ("high",), True, TextScores(lifts, linear))
    columns.set_encoder("e", made)
    width = len(columns.feature_names_)
    rows = TableRows(rng.normal(size=(90, width)), np.zeros(90, int), np.arange(90))
    unusual = fit_novelty(rows, 0, np.ones(width, bool))
    predictor = ConstantPredictor((0.5, 0.5), 2)
    return replace(t, columns=columns, predictor=predictor, unusual=unusual)


def _mean_with_trees(n_classes):
    """A mean of which boosted trees that split categories are a part."""
    from dataclasses import replace

    from mercer.automl.boosted import TreeColumns
    from mercer.automl.predictors import ConstantPredictor, WeightedMean
    from mercer.automl.recipes import TreeGrowth
    from mercer.automl.rows import TableRows
    from mercer.automl.trees import grow_like

    t = _table("k" if n_classes else "y", "y" if n_classes else "k")
    width, rng = len(t.columns.feature_names_), np.random.default_rng(0)
    Z = rng.normal(size=(90, width))
    Z[:, :3] = np.eye(3)[rng.integers(0, 3, 90)]
    y = (Z[:, 0] > Z[:, 1]).astype(int) if n_classes else 5 * Z[:, 0] + Z[:, -1]
    design = TreeColumns(tuple(range(3, width)), ((0, 1, 2),))
    rows = TableRows(Z.astype(np.float32), y, np.arange(90))
    trees = grow_like(rows, design, n_classes, 0, TreeGrowth(3)).predictor
    assert len(trees.trees.goes)
    other = ConstantPredictor((0.5, 0.5), 2) if n_classes else ConstantPredictor((1.0,))
    return replace(t, predictor=WeightedMean((trees, other), (0.75, 0.25)))


TABLES = {
    "mean with trees, of numbers": lambda: _mean_with_trees(0),
    "mean with trees, of classes": lambda: _mean_with_trees(2),
    "mean of models": _mean,
    "table of texts": _texts,
    "table of numbers": lambda: _table("y", "k"),
    "table of classes": lambda: _table("k", "y"),
    "machines of numbers": lambda: _machines(0),
    "machines of classes": lambda: _machines(2),
}
