"""Fitted models by name, each small: what every law of saving is run through."""

import inspect
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import get_tags

import mercer.models
from mercer import (
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    Perceptron,
    WeightedUnion,
    lifts,
    methods,
)
from mercer.kernels import (
    ArcCosine,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    OverSets,
    Periodic,
    Polynomial,
    exp,
)
from mercer.lifts import (
    Basis,
    Chain,
    GaussianProjection,
    Grid,
    Hermite,
    Identity,
    Interactions,
    Jumps,
    KernelLift,
    KitchenSink,
    Leaves,
    Lift,
    Maclaurin,
    MappedLift,
    Monomials,
    NGrams,
    NormalizedLift,
    Nystrom,
    OnColumnsLift,
    OverSetsLift,
    Parabolic,
    RandomFourier,
    SketchedTensor,
    SparseProjection,
    Splines,
    StringFeatures,
    Taylor,
    TensorSketch,
)
from mercer.strings import Gapped, Mismatch, Spectrum, Subsequence, SubTree, WeightedDegree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.array(["no", "yes é"])[(Y > 0).astype(int)]
TEXTS = np.array([f"é{i % 9} to be  or not to be{i % 5} Σας" for i in range(60)], object)
TREES = np.array([f"(S (é {'ab'[i % 2]}) (B {'c' * (i % 5 + 1)}))" for i in range(60)], object)
BAGS = np.empty(60, object)
BAGS[:] = [X[i : i + 1 + i % 3] for i in range(60)]
STRINGS = np.array(["ACGGT" * (i % 3) + "acgTN"[: i % 5] * 2 for i in range(60)], object)
LONG = np.array([f"{t:.<40}" for t in STRINGS], object)
K = Gaussian(2.0)
FEW = methods.Fourier(32)

LIFTS = {
    "sum": Monomials(2) + RandomFourier(K, 16, random_state=0),
    "tensor": Monomials(2) * RandomFourier(K, 8, random_state=0),
    "scaled": 3.0 * Parabolic(),
    "chain": Monomials(2) >> RandomFourier(K, 8, random_state=0),
    "chain of three": Chain([Parabolic(), Basis(["x", "tanh"]), Nystrom(K, 5, random_state=0)]),
    "fused": Monomials(2) >> SparseProjection(8, random_state=0),
    "fused sketch": Monomials(2) >> TensorSketch(2, 8, random_state=0),
    "columns": OnColumnsLift(Jumps(), [2, 0]),
    "normalized": NormalizedLift(Grid(columns=[0])),
    "metric": Identity(np.diag([1.0, 2.0, 3.0])),
    "sketched tensor": SketchedTensor(
        [Monomials(2), RandomFourier(K, 8, random_state=0)], 16, random_state=0
    ),
    "kmeans": Nystrom(Laplace(2.0), 10, landmarks="kmeans", random_state=0),
    "mapped": MappedLift(Monomials(2), [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]),
    "bags": OverSetsLift(Monomials(2) + Jumps(), "sum"),
    "stable": RandomFourier(
        Laplace(2.0, exponent=1.3).mapped([[1.0, 0.0, 2.0]]), 16, random_state=0
    ),
    "stable columns": RandomFourier(Laplace(2.0, norm=1, exponent=0.7), 16, random_state=0),
    "points": Nystrom(K, landmarks=X[:7]),
    "promised": KernelLift(K, eps=0.5, random_state=0),
    "probed": KernelLift(Laplace(2.0) + Polynomial(2), eps=0.9, random_state=0),
    "product": KernelLift(K * Polynomial(2), 32, random_state=0),
    "deep": KernelLift(
        exp(0.5 * Linear()).normalized() + 2.0 * ArcCosine(1).on_columns([0, 2]), 64, random_state=0
    ),
    "landmarks": KernelLift(Matern(2.0, nu=1.5), 9, method=methods.Landmarks(), random_state=0),
    "generator": RandomFourier(K, 8, random_state=np.random.default_rng(3)),
    "legacy generator": RandomFourier(K, 8, random_state=np.random.RandomState(3)),
    "structured": RandomFourier(K, 64, frequencies="structured", random_state=0),
    "quasi": RandomFourier(
        Matern(2.0, nu=1.5) * Periodic(1.0, 2.0),
        32,
        frequencies="qmc",
        form="shift",
        random_state=0,
    ),
    "functions": Basis(["x", "abs", "relu", np.sin, "square"]),
    "jumps": Jumps({0: [0.1, 0.2], 2: [1.0]}),
    "splines": Splines(4, degree=2, knots="quantile"),
    "splines of missing values": Splines(3, handle_missing="indicator", sparse_output=True),
    "degrees from two": Monomials((2, 3)),
    "degrees from two, fused": Monomials((2, 2)) >> GaussianProjection(6, random_state=0),
    "sink": KitchenSink(),
    "hermite": Hermite(3),
    "words": NGrams(vocabulary="learn", weight="tfidf"),
    "words and characters": NGrams((1, 2), (2, 3), vocabulary="learn", weight="ratio", min_df=2),
    "named n-grams": NGrams(chars=(1, 2), n_features=32, weight="tfidf", keep_names=True),
    "given n-grams": NGrams(vocabulary=["be or", "not"], norm=None),
    "string words": StringFeatures(Spectrum(2)),
    "near words": StringFeatures(Mismatch(3, 1, alphabet="dna"), 32, keep_names=True),
    "placed words": StringFeatures(WeightedDegree(2, shift=1, alphabet="dna")),
    "taylor": Taylor(K, 3),
    "chi2": KernelLift("chi2", 32, gamma=0.5, random_state=0),
    "named landmarks": Nystrom("poly", 8, gamma="scale", degree=2, coef0=0.5, random_state=0),
    "maclaurin": Maclaurin(exp(Linear()), 16, random_state=0),
    "interactions": Interactions(2),
    "projection": GaussianProjection(5, random_state=0),
    "leaves": Leaves(n_trees=6, cross_fit=2, random_state=0) + Parabolic(),
    "leaves of a forest": Leaves(RandomForestRegressor(3, max_leaf_nodes=5), random_state=0),
    "leaves at random": Leaves(n_trees=4, max_leaves=6, how="random", random_state=0),
}
ESTIMATORS = {
    "blocks": WeightedUnion([("a", Monomials(2), [0]), ("b", Identity(), [1, 2])], random_state=0),
    "ridge folds": KernelRidge(via=FEW, cv=3, alphas=[0.1, 1.0], random_state=0),
    "ridge auto": KernelRidge(random_state=0),
    "ridge passes": KernelRidge(via=FEW, memory_limit=1000, random_state=0),
    "ridge landmarks": KernelRidge(Laplace(2.0), via="landmarks", random_state=0),
    "ridge lift": KernelRidge(lift=Monomials(2) + Jumps()),
    "ridge generator": KernelRidge(K, random_state=np.random.RandomState(1)),
    "ridge method": KernelRidge(K, via=methods.Fourier(64, frequencies="iid"), random_state=0),
    "ridge chi2": KernelRidge("chi2", gamma=0.5),
    "logistic": KernelLogistic(K, via=FEW, random_state=0),
    "svc": KernelSVC(K, via=FEW, class_weight={"no": 2.0, "yes é": 1.0}, random_state=0),
    "logistic path": KernelLogistic(K, via=FEW, cv=3, alphas=[0.1, 1.0], random_state=0),
    "svc path": KernelSVC(K, cv=3, Cs=[0.1, 1.0]),
    "squared": KernelSVC(K, via=FEW, loss="squared_hinge", random_state=0),
    "pca": KernelPCA(2, K, via=FEW, random_state=0),
    "gp": GaussianProcessRegressor(K, via=FEW, random_state=0),
    "perceptron": Perceptron(K, random_state=0),
    "ridge of strings": KernelRidge(Gapped(4, 2) + exp(Subsequence(2).normalized())),
    "svc of strings": KernelSVC(Spectrum(2, alphabet="dna", strands="both").normalized()),
    "gp of strings": GaussianProcessRegressor(
        Subsequence(2, alphabet="dna", unknown="letter") + 1e-3, noise=0.1, fixed="all"
    ),
    "pca of strings": KernelPCA(2, Mismatch(3, 1)),
    "svc of trees": KernelSVC(SubTree("subtree", 0.3).normalized() + 2.0),
    "ridge of bags": KernelRidge(OverSets(K, "sum")),
}


SMALL = {"n_features": 32, "n_landmarks": 8, "n_trees": 10}


def plain_ones():
    """Every estimator and map of the public lists that needs no argument, small: new ones are held
    to the laws too."""
    for module in (mercer.models, lifts):
        for name in module.__all__:
            cls = getattr(module, name)
            if (
                inspect.isclass(cls)
                and hasattr(cls, "fit")
                and cls is not Lift
                and _needs_nothing(cls)
            ):
                yield (
                    f"plain {name}",
                    cls(
                        **{k: v for k, v in SMALL.items() if k in inspect.signature(cls).parameters}
                    ),
                )


def _needs_nothing(cls):
    given = list(inspect.signature(cls).parameters.values())
    return all(
        p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in given
    )


MODELS = {
    **{f"lift {n}": m for n, m in LIFTS.items()},
    **{f"estimator {n}": m for n, m in ESTIMATORS.items()},
    **dict(plain_ones()),
}
_fitted = {}


def fitted(name):
    """The model of that name, fitted once."""
    if name not in _fitted:
        m = MODELS[name]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of convergence and variance starvation: not what these tests are about
            two = is_classifier(m) or getattr(m, "weight", None) == "ratio"
            _fitted[name] = m.fit(rows_of(m), LABELS if two else Y)
    return _fitted[name]


def rows_of(m):
    """What a model takes: numbers, some of them >= 0 only, documents, bags, trees, or strings."""
    kernel = getattr(m, "kernel", None)
    if isinstance(m, OverSetsLift) or isinstance(kernel, OverSets):
        return BAGS
    if "SubTree" in repr(kernel):
        return TREES
    if isinstance(m, StringFeatures) or getattr(kernel, "takes_items", False):
        return LONG if isinstance(kernel, WeightedDegree) else STRINGS
    if isinstance(m, NGrams):
        return TEXTS
    return np.abs(X) if get_tags(m).input_tags.positive_only else X


def outputs(m):
    """All that a fitted model says of rows, which are not the very array of `fit`."""
    rows = rows_of(m)[:40].copy()
    ways = ("predict", "transform", "decision_function", "predict_proba")
    found = [np.asarray(_dense(getattr(m, way)(rows))) for way in ways if hasattr(m, way)]
    names = [np.asarray(m.get_feature_names_out())] if isinstance(m, Lift) else []
    return [*found, *names]


def _dense(A):
    return A.toarray() if sp.issparse(A) else A
