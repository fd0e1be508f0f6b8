"""Answers of every estimator, way and dtype on small cases, kept and compared bit by bit: what a
change inside must not change.

python tools/answers.py save FILE.npz [PART OF A NAME]
python tools/answers.py compare FILE.npz [PART OF A NAME]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # small cases: threads would only wait for each other

import numpy as np
import scipy.sparse as sp

import mercer
from mercer.inputs import Items
from mercer.kernels import Callable as CallableKernel
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.lifts import Monomials, Nystrom, RandomFourier
from mercer.methods import Fourier, Landmarks

Model = Any
STREAMS = (
    "pca",
    "perceptron",
    "kernel-perceptron",
)  # families whose streams are asked from their first batch on
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
    "predict_interval",
    "sample_y",
    "distances",
    "votes",
    "inverse_transform",
)
ATTRIBUTES = (
    "alpha_",
    "intercept_",
    "coef_",
    "dual_coef_",
    "X_fit_",
    "residual_",
    "n_iter_",
    "loo_predictions_",
    "loo_score_",
    "loo_scores_",
    "noise_",
    "scale_",
    "prior_mean_",
    "log_marginal_likelihood_",
    "log_marginal_likelihood_error_",
    "effective_dimension_",
    "loo_variances_",
    "loo_log_densities_",
    "support_",
    "n_support_",
    "gap_",
    "objective_",
    "offset_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "eigenvalues_",
    "mean_",
    "labels_",
    "inertia_",
    "classes_",
    "mistakes_",
    "rounding_",
    "center_squares_",
    "n_features_lifted_",
    "bandwidth_",
)
OF_SMALL = (
    "cluster_centers_",
    "scales_",
    "loo_errors_",
    "loo_confidences_",
    "counts_",
    "points_",
    "bound_",
    "loss_",
)
SMALL = (
    "pca",
    "kmeans",
    "logistic",
    "perceptron",
    "kernel-perceptron",
    "nadaraya",
    "neighbours",
)  # families asked for those too
OF_MACHINES = ("support_vectors_", "sigmoid_", "multiclass_")


def table(n: int, d: int, dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with some copies, a smooth target, and three classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[-5:] = X[:5]
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X.astype(dtype), y.astype(dtype), np.digitize(y, [-0.5, 0.5])


def ridges() -> Iterator[tuple[str, Callable[[], Model]]]:
    k = Gaussian(1.5) + 0.1 * Linear()
    for cv in (None, 5, "loo"):
        for via in (
            "auto",
            "exact",
            "iterative",
            "features",
            "landmarks",
            Fourier(60),
            Landmarks(40),
        ):
            yield (
                f"ridge-{via}-{cv}",
                lambda via=via, cv=cv: mercer.KernelRidge(k, 0.1, via, cv=cv, random_state=0),
            )
    yield "ridge-default", lambda: mercer.KernelRidge(random_state=0)
    yield "ridge-lift", lambda: mercer.KernelRidge(lift=Monomials(2), alpha=0.1, random_state=0)
    yield (
        "ridge-no-intercept",
        lambda: mercer.KernelRidge(k, 0.1, fit_intercept=False, random_state=0),
    )
    yield (
        "ridge-features-no-intercept",
        lambda: mercer.KernelRidge(k, 0.1, Fourier(60), fit_intercept=False, random_state=0),
    )
    yield (
        "ridge-passes",
        lambda: mercer.KernelRidge(
            k, 0.1, Fourier(60), cv=3, alphas=[0.1, 1.0], memory_limit=100_000, random_state=0
        ),
    )
    yield (
        "ridge-bandwidths",
        lambda: mercer.KernelRidge(Gaussian(), cv="loo", via="exact", bandwidths=[0.5, 1.0, 2.0]),
    )
    yield (
        "ridge-fourier-lift",
        lambda: mercer.KernelRidge(lift=RandomFourier(Gaussian(), 64, random_state=1), alpha=0.1),
    )


def processes() -> Iterator[tuple[str, Callable[[], Model]]]:
    k = Matern(1.5, nu=1.5)
    for via in ("auto", "exact", "iterative", "features", "landmarks", Fourier(80), Landmarks(30)):
        yield (
            f"gp-{via}-learn",
            lambda via=via: mercer.GaussianProcessRegressor(k, via=via, random_state=0),
        )
        yield (
            f"gp-{via}-given",
            lambda via=via: mercer.GaussianProcessRegressor(k, 0.01, via, random_state=0),
        )
    yield "gp-default", lambda: mercer.GaussianProcessRegressor(random_state=0)
    yield (
        "gp-wishes",
        lambda: mercer.GaussianProcessRegressor(
            Gaussian() + Linear(),
            bounds={"terms__0__bandwidth": (0.1, 5.0)},
            priors={"noise": mercer.priors.LogNormal(0.01, 1.0)},
            random_state=0,
        ),
    )
    yield (
        "gp-bare",
        lambda: mercer.GaussianProcessRegressor(
            k, 0.01, "landmarks", restore_variance=False, random_state=0
        ),
    )
    yield "gpc", lambda: mercer.GaussianProcessClassifier(Gaussian(1.0))


def others() -> Iterator[tuple[str, Callable[[], Model]]]:
    g = Gaussian(1.2)
    for loss in ("hinge", "squared_hinge"):
        for via in ("auto", "exact", "features", Landmarks(40)):
            yield (
                f"svc-{loss}-{via}",
                lambda loss=loss, via=via: mercer.KernelSVC(g, via=via, loss=loss, random_state=0),
            )
    yield "svc-ovr", lambda: mercer.KernelSVC(g, multiclass="ovr")
    yield "svc-probability", lambda: mercer.KernelSVC(g, probability=True)
    yield "svc-no-bias", lambda: mercer.KernelSVC(g, fit_intercept=False)
    yield "svr", lambda: mercer.KernelSVR(g)
    yield "svr-laplace", lambda: mercer.KernelSVR(Laplace(2.0), C=10.0)
    yield "one-class", lambda: mercer.OneClassSVM(g, nu=0.2)
    for via in ("auto", "features", Fourier(60)):
        yield f"logistic-{via}", lambda via=via: mercer.KernelLogistic(g, via=via, random_state=0)
    for via in ("auto", "exact", "iterative", "features", "landmarks", Fourier(60)):
        yield f"pca-{via}", lambda via=via: mercer.KernelPCA(3, g, via, random_state=0)
    for via in ("auto", "exact", "features"):
        yield f"kmeans-{via}", lambda via=via: mercer.KernelKMeans(3, g, via=via, random_state=0)
    yield "nadaraya-watson", lambda: mercer.NadarayaWatson(g)
    yield "neighbours", lambda: mercer.SoftNeighborsClassifier(g)
    yield "perceptron", lambda: mercer.Perceptron(lift=Monomials(2))
    for policy in ("projectron", "random", "forgetron", "merging"):
        yield (
            f"kernel-perceptron-{policy}",
            lambda policy=policy: mercer.KernelPerceptron(
                g, budget=20, policy=policy, random_state=0
            ),
        )
    yield "kernel-perceptron", lambda: mercer.KernelPerceptron(g, random_state=0)
    yield from special()


def special() -> Iterator[tuple[str, Callable[[], Model]]]:
    """Ways of the small families that need settings of their own."""
    g = Gaussian(1.2)
    yield "pca-lift", lambda: mercer.KernelPCA(3, lift=Monomials(2))
    yield "pca-default", lambda: mercer.KernelPCA(random_state=0)
    yield "pca-linear-exact", lambda: mercer.KernelPCA(2, Linear(), "exact")
    yield (
        "pca-polynomial-iterative",
        lambda: mercer.KernelPCA(2, Polynomial(3), "iterative", random_state=0),
    )
    yield (
        "pca-passes",
        lambda: mercer.KernelPCA(3, g, Fourier(60), memory_limit=20_000, random_state=0),
    )
    yield "kmeans-linear", lambda: mercer.KernelKMeans(3, 2 * Linear(), random_state=0)
    yield "kmeans-landmarks", lambda: mercer.KernelKMeans(3, g, Landmarks(20), random_state=0)
    yield (
        "kmeans-passes",
        lambda: mercer.KernelKMeans(3, g, Fourier(60), memory_limit=1000, n_init=1, random_state=0),
    )
    yield "kmeans-lift", lambda: mercer.KernelKMeans(3, lift=Monomials(2), random_state=0)
    yield (
        "logistic-landmarks",
        lambda: mercer.KernelLogistic(g, 0.1, "landmarks", class_weight="balanced", random_state=0),
    )
    yield (
        "logistic-passes",
        lambda: mercer.KernelLogistic(
            g, 0.1, Fourier(60), memory_limit=1000, fit_intercept=False, random_state=0
        ),
    )
    yield "logistic-lift", lambda: mercer.KernelLogistic(lift=Monomials(2), alpha=0.1)
    yield "nadaraya-default", lambda: mercer.NadarayaWatson()
    yield (
        "nadaraya-loo",
        lambda: mercer.NadarayaWatson(Laplace(1.0), bandwidth="loo", scales=[0.5, 1.0, 2.0]),
    )
    yield "neighbours-default", lambda: mercer.SoftNeighborsClassifier()
    yield "kmeans-weighted", lambda: Weighted(mercer.KernelKMeans(3, random_state=0))
    yield (
        "kmeans-weighted-features",
        lambda: Weighted(mercer.KernelKMeans(3, via=Fourier(40), random_state=0)),
    )
    yield (
        "logistic-weighted",
        lambda: Weighted(
            mercer.KernelLogistic(via=Fourier(40), class_weight={0: 2.0}, random_state=0)
        ),
    )
    yield "nadaraya-weighted", lambda: Weighted(mercer.NadarayaWatson())
    yield "neighbours-weighted", lambda: Weighted(mercer.SoftNeighborsClassifier())
    yield "perceptron-columns", lambda: mercer.Perceptron(max_iter=5)
    yield (
        "perceptron-average",
        lambda: mercer.Perceptron(
            g, Fourier(60), average=True, shuffle=True, max_iter=7, random_state=0
        ),
    )
    yield (
        "perceptron-comparator",
        lambda: mercer.Perceptron(lift=Monomials(1), comparator=np.ones((3, 6)), max_iter=3),
    )
    yield (
        "kernel-perceptron-oldest",
        lambda: mercer.KernelPerceptron(None, budget=10, policy="oldest", average=True, max_iter=3),
    )
    yield (
        "kernel-perceptron-margin",
        lambda: mercer.KernelPerceptron(
            g,
            budget=15,
            policy="projectron++",
            average=1.0,
            max_iter=2,
            shuffle=True,
            random_state=0,
        ),
    )


class Weighted:
    """A model that is fitted with weights, some of them zero; twice, at another C first, where it
    starts from the last fit."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Model:
        w = np.arange(X.shape[0]) % 4 / 2.0
        if getattr(self.model, "warm_start", False):
            self.model.set_params(C=2.0).fit(X, y, w).set_params(C=3.0)
        return self.model.fit(X, y, w)


def machines() -> Iterator[tuple[str, Callable[[], Model]]]:
    """Ways of support vector machines beside those of `others`."""
    g, far = Gaussian(1.2), Polynomial(2, bias=40.0)
    svc = mercer.KernelSVC
    yield "svc-weighted", lambda: Weighted(svc(g, class_weight="balanced", probability=True))
    yield "svc-warm", lambda: Weighted(svc(g, warm_start=True))
    yield "svc-warm-ovr", lambda: Weighted(svc(g, warm_start=True, multiclass="ovr"))
    yield (
        "svc-squared-ovr",
        lambda: svc(g, loss="squared_hinge", multiclass="ovr", probability=True),
    )
    yield "svc-about", lambda: svc(far, C=0.1)
    yield "svc-default", lambda: svc(C=5.0)
    yield (
        "svc-features-probability",
        lambda: Weighted(
            svc(g, via=Fourier(50), probability=True, class_weight={0: 2.0}, random_state=0)
        ),
    )
    yield (
        "svc-squared-passes",
        lambda: svc(via=Fourier(50), loss="squared_hinge", memory_limit=20_000, random_state=0),
    )
    yield (
        "svc-hinge-passes",
        lambda: svc(g, via=Fourier(50), fit_intercept=False, memory_limit=20_000, random_state=0),
    )
    yield "svc-lift", lambda: svc(lift=Monomials(2), probability=True)
    yield "svc-lift-fourier", lambda: svc(lift=RandomFourier(Gaussian(), 64, random_state=1))
    yield "svc-linear", lambda: svc(Linear(), C=1e4, max_iter=200)
    yield "svr-weighted", lambda: Weighted(mercer.KernelSVR(C=10.0, epsilon=0.01))
    yield "svr-no-bias", lambda: mercer.KernelSVR(g, fit_intercept=False)
    yield "svr-about", lambda: mercer.KernelSVR(far, C=0.1)
    yield "one-class-weighted", lambda: Weighted(mercer.OneClassSVM(nu=0.3))
    yield "one-class-linear", lambda: mercer.OneClassSVM(Linear(), nu=0.5)
    yield "one-class-about", lambda: mercer.OneClassSVM(far, nu=0.5)


def models() -> Iterator[tuple[str, Callable[[], Model]]]:
    yield from machines()
    yield from ridges()
    yield from processes()
    yield from others()


def cases() -> Iterator[tuple[str, Callable[[], Model], Any, Any, Any]]:
    """(name, model, X, y, new rows)"""
    for name, make in models():
        for dtype in (np.float64, np.float32):
            X, y, labels = table(120, 3, dtype)
            target = labels if _classifies(make()) else y
            yield f"{name}/{np.dtype(dtype).name}", make, X, target, table(23, 3, dtype, seed=1)[0]
    for name, make in models():
        X, y, labels = table(90, 4, np.float64, seed=2)
        X[np.abs(X) < 0.5] = 0
        target = labels if _classifies(make()) else y
        yield f"{name}/csr", make, sp.csr_array(X), target, sp.csr_array(X[:9] * 2)
    yield from more_processes()
    yield from given()
    yield from large()


def more_processes() -> Iterator[tuple[str, Callable[[], Model], Any, Any, Any]]:
    """Gaussian processes of several outputs, noises, maps, streams and items."""
    GP, GPC, k = (
        mercer.GaussianProcessRegressor,
        mercer.GaussianProcessClassifier,
        Matern(1.5, nu=1.5),
    )
    (X, y, labels), new = table(120, 3, np.float64), table(23, 3, np.float64, seed=1)[0]
    noise = np.random.default_rng(3).uniform(0.01, 0.3, len(y))
    for via in ("exact", "iterative"):
        yield (
            f"gp-outputs-{via}",
            lambda via=via: GP(k, via=via, random_state=0),
            X,
            np.column_stack([y, 3 * y + X[:, 2]]),
            new,
        )
        yield (
            f"gp-all-rows-{via}",
            lambda via=via: GP(k, via=via, learn_rows=50, random_state=0),
            X,
            y,
            new,
        )
    for via in ("exact", Fourier(80), Landmarks(30)):
        yield f"gp-column-{via}", lambda via=via: GP(k, via=via, random_state=0), X, y[:, None], new
        yield f"gp-noises-{via}", lambda via=via: GP(k, noise, via, random_state=0), X, y, new
        yield (
            f"gp-mean-{via}",
            lambda via=via: GP(k, 0.1, via, prior_mean="y", random_state=0),
            X,
            y + 7,
            new,
        )
        yield (
            f"gp-two-{via}",
            lambda via=via: GP(k, "learn", via, prior_mean=2.0, random_state=0),
            X,
            y,
            new,
        )
        yield (
            f"gp-stream-{via}",
            lambda via=via: Streamed(GP(k, via=via, random_state=0)),
            X,
            y,
            new,
        )
        yield (
            f"gp-stream-given-{via}",
            lambda via=via: Streamed(GP(k, 0.1, via, random_state=0)),
            X,
            y,
            new,
        )
        yield (
            f"gp-priors-{via}",
            lambda via=via: GP(
                k,
                0.1,
                via,
                bounds={"bandwidth": (0.2, 2.0)},
                priors={"scale": mercer.priors.Gamma(2.0, 1.0)},
                random_state=0,
            ),
            X,
            y,
            new,
        )
        yield (
            f"gp-fixed-{via}",
            lambda via=via: GP(2.0 * k, via=via, fixed=("factor",), random_state=0),
            X,
            y,
            new,
        )
    yield "gp-stream-auto", lambda: Streamed(GP(k, random_state=0)), X, y, new
    yield "gp-lift", lambda: GP(lift=Monomials(2)), X, y, new
    yield "gp-lift-landmarks", lambda: GP(lift=Nystrom(k, 20, random_state=0)), X, y, new
    yield (
        "gp-passes",
        lambda: GP(k, via=Fourier(80), memory_limit=100_000, random_state=0),
        X,
        y,
        new,
    )
    yield "gp-small-memory", lambda: GP(k, memory_limit=60_000, random_state=0), X, y, new
    yield (
        "gp-bare-learn",
        lambda: GP(k, via=Landmarks(30), restore_variance=False, random_state=0),
        X,
        y,
        new,
    )
    yield "gp-constant", lambda: GP(k, random_state=0), X, np.full(len(y), 2.0), new
    K = Gaussian()(X)
    yield (
        "gp-gram-noise",
        lambda: GP("precomputed", 0.1),
        K,
        np.column_stack([y, -y]),
        Gaussian()(new, X),
    )
    yield "gp-gram-noises", lambda: GP("precomputed", noise), K, y, Gaussian()(new, X)
    yield "gpc-landmarks", lambda: GPC(Gaussian(1.0), Landmarks(20), random_state=0), X, labels, new
    yield "gpc-two", lambda: GPC(random_state=0), X, labels > 0, new
    yield (
        "gpc-two-landmarks",
        lambda: GPC(via="landmarks", random_state=0),
        X.astype(np.float32),
        labels > 0,
        new.astype(np.float32),
    )
    words = ["".join(np.random.default_rng(i).choice(list("ab"), size=6)) for i in range(40)]
    of_words = CallableKernel(common_pairs).normalized()
    count = np.array([w.count("a") for w in words])
    for via in ("exact", "iterative", "landmarks"):
        yield (
            f"gp-items-{via}",
            lambda via=via: GP(of_words, 0.1, via, random_state=0),
            words,
            count.astype(float),
            words[:7],
        )
    for via in ("exact", Landmarks(9)):
        yield (
            f"gpc-items-{via}",
            lambda via=via: GPC(of_words, via, random_state=0),
            words,
            count > 3,
            words[:7],
        )


def common_pairs(A: Any, B: Any) -> np.ndarray:
    """How many pairs of letters of one word the other has."""
    return np.array([[float(sum(a[i : i + 2] in b for i in range(5))) for b in B] for a in A])


class Streamed:
    """A model whose `fit` takes two batches."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Model:
        return self.model.partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:])


def given() -> Iterator[tuple[str, Callable[[], Model], Any, Any, Any]]:
    X, y, labels = table(80, 3, np.float64)
    K, new = Gaussian()(X), Gaussian()(table(11, 3, np.float64, seed=1)[0], X)
    names = (
        "KernelRidge",
        "GaussianProcessRegressor",
        "KernelSVC",
        "KernelSVR",
        "OneClassSVM",
        "KernelPCA",
        "KernelKMeans",
        "KernelPerceptron",
        "NadarayaWatson",
        "SoftNeighborsClassifier",
    )
    for cls in names:
        options = {"random_state": 0} if cls == "KernelKMeans" else {}

        def make(cls: str = cls, options: dict[str, Any] = options) -> Model:
            return getattr(mercer, cls)(kernel="precomputed", **options)

        yield f"given-{cls}", make, K, labels if _classifies(make()) else y, new
    shared = K + 50.0  # of which a bias sees nothing
    yield (
        "given-probability",
        lambda: mercer.KernelSVC("precomputed", probability=True),
        K,
        labels,
        new,
    )
    yield (
        "given-weighted",
        lambda: Weighted(mercer.KernelSVC("precomputed", multiclass="ovr", probability=True)),
        K,
        labels,
        new,
    )
    yield "given-shared", lambda: mercer.KernelSVC("precomputed"), shared, labels, new + 50.0
    yield "given-shared-svr", lambda: mercer.KernelSVR("precomputed"), shared, y, new + 50.0
    yield (
        "given-one-class-weighted",
        lambda: Weighted(mercer.OneClassSVM("precomputed", nu=0.3)),
        K,
        y,
        new,
    )
    words = ["".join(np.random.default_rng(i).choice(list("ab"), size=6)) for i in range(40)]
    k = CallableKernel(
        lambda A, B: np.array(
            [[float(sum(a[i : i + 2] in b for i in range(5))) for b in B] for a in A]
        )
    )
    for cls in ("KernelSVC", "KernelSVR", "OneClassSVM"):

        def item(cls: str = cls) -> Model:
            return getattr(mercer, cls)(k.normalized())

        t = np.array([w.count("a") for w in words])
        yield (
            f"items-{cls}",
            item,
            words,
            t > 3 if cls == "KernelSVC" else t.astype(float),
            words[:7],
        )
    t = np.array([w.count("a") for w in words])
    yield (
        "items-classes",
        lambda: mercer.KernelSVC(k.normalized(), probability=True),
        words,
        np.digitize(t, [3, 4]),
        words[:7],
    )
    small = (
        "KernelPCA",
        "KernelKMeans",
        "KernelLogistic",
        "KernelPerceptron",
        "NadarayaWatson",
        "SoftNeighborsClassifier",
        "Perceptron",
    )
    for cls in small:

        def other(cls: str = cls) -> Model:
            return getattr(mercer, cls)(kernel=k.normalized(), random_state=0)

        yield (
            f"items-{cls}",
            other,
            words,
            t > 3 if _classifies(other()) else t.astype(float),
            words[:7],
        )


def large() -> Iterator[tuple[str, Callable[[], Model], Any, Any, Any]]:
    """Beyond the sizes up to which one block, one factor or one piece serves."""
    X, y, labels = table(3300, 5, np.float32)
    new = table(40, 5, np.float32, seed=1)[0]
    yield "large-ridge", lambda: mercer.KernelRidge(Gaussian(2.0), 0.1), X, y, new
    yield (
        "large-ridge-falkon",
        lambda: mercer.KernelRidge(Gaussian(2.0), 0.1, Landmarks(2100), random_state=0),
        X,
        y,
        new,
    )
    yield "large-svc", lambda: mercer.KernelSVC(Gaussian(2.0)), X, labels, new
    yield "large-svc-poly", lambda: mercer.KernelSVC(Polynomial(2)), X[:2500], labels[:2500], new
    yield (
        "large-gp",
        lambda: mercer.GaussianProcessRegressor(
            Gaussian(2.0), 0.01, Landmarks(200), random_state=0
        ),
        X,
        y,
        new,
    )
    yield "large-svr", lambda: mercer.KernelSVR(Gaussian(2.0)), X[:2600], y[:2600], new
    yield (
        "large-one-class",
        lambda: mercer.OneClassSVM(Gaussian(2.0), nu=0.3),
        X[:2600],
        y[:2600],
        new,
    )
    yield (
        "large-svc-two",
        lambda: mercer.KernelSVC(Gaussian(2.0), memory_limit="8MB"),
        X,
        labels > 1,
        new,
    )
    yield "large-svc-ovr", lambda: mercer.KernelSVC(Gaussian(2.0), multiclass="ovr"), X, labels, new
    yield (
        "large-svc-given",
        lambda: mercer.KernelSVC("precomputed"),
        Gaussian(2.0)(X[:2300]),
        labels[:2300],
        Gaussian(2.0)(new, X[:2300]),
    )
    yield (
        "large-gp-learn",
        lambda: mercer.GaussianProcessRegressor(
            Gaussian(2.0), via=Landmarks(60), n_restarts=0, random_state=0
        ),
        X,
        y,
        new,
    )
    yield (
        "large-gp-all",
        lambda: mercer.GaussianProcessRegressor(
            Gaussian(2.0),
            via="iterative",
            learn_rows="all",
            n_restarts=0,
            fixed=("bandwidth",),
            random_state=0,
        ),
        X,
        y,
        new,
    )
    bits = (X > 0).astype(np.float32)
    yield "large-svc-bits", lambda: mercer.KernelSVC(Gaussian(1.0)), bits, labels, bits[:40]


def _classifies(model: Model) -> bool:
    model = getattr(model, "model", model)
    return (
        hasattr(model, "predict_proba")
        or hasattr(model, "classes_")
        or type(model).__name__
        in (
            "KernelSVC",
            "KernelLogistic",
            "Perceptron",
            "KernelPerceptron",
            "SoftNeighborsClassifier",
            "GaussianProcessClassifier",
        )
    )


def answers(
    name: str, make: Callable[[], Model], X: Any, y: Any, new: Any
) -> Iterator[tuple[str, np.ndarray]]:
    """All that a model says, before and after a stream and a file."""
    yield from (
        array(f"{name}:before", lambda: make().sample_y(new, 2, posterior=False))
        if hasattr(make(), "sample_y")
        else ()
    )
    try:
        model = make().fit(X, y)
    except (ValueError, NotImplementedError) as e:
        yield f"{name}:fit", np.array([str(e)])
        return
    if name.startswith("large"):
        yield f"{name}.plan_", np.array([str(model.plan_)])
        yield from array(f"{name}:predict", lambda: model.predict(new))
        return
    yield from said(name, model, new)
    if hasattr(model, "cv_scores"):
        yield from array(f"{name}:cv_scores", lambda: model.cv_scores([0.01, 0.1, 1.0]))
    if hasattr(model, "partial_fit"):
        yield from array(f"{name}:partial_fit", lambda: ask(model.partial_fit(X[:20], y[:20]), new))
        if hasattr(model, "forget"):
            yield from array(f"{name}:forget", lambda: ask(model.forget(X[:10], y[:10]), new))
        if name.startswith(STREAMS):
            yield from streamed(f"{name}:stream", make, X, y, new)
    if hasattr(model, "merge"):
        yield from array(
            f"{name}:merge", lambda: ask(make().fit(X, y).merge(make().fit(X, y)), new)
        )
    if hasattr(model, "compress"):
        yield from array(f"{name}:compress", lambda: ask(make().fit(X, y).compress(10), new))
        yield (
            f"{name}.compression_",
            np.array([str(getattr(_compressed(make().fit(X, y)), "compression_", ""))]),
        )


def _compressed(model: Model) -> Model:
    try:
        return model.compress(8)
    except ValueError as e:
        return e


def streamed(
    name: str, make: Callable[[], Model], X: Any, y: Any, new: Any
) -> Iterator[tuple[str, np.ndarray]]:
    """What a model says that was never fitted but by batches."""
    options = {"classes": np.unique(y)} if _classifies(make()) else {}
    yield from array(
        name,
        lambda: ask(make().partial_fit(X[:30], y[:30], **options).partial_fit(X[30:], y[30:]), new),
    )
    model = make()
    try:
        model.partial_fit(X[:30], y[:30], **options).partial_fit(X[30:], y[30:])
    except ValueError:
        return
    for attribute in ATTRIBUTES + OF_SMALL:
        yield from array(
            f"{name}.{attribute}", lambda attribute=attribute: getattr(model, attribute)
        )
    yield f"{name}.plan_", np.array([str(model.plan_)])


def ask(model: Model, new: Any) -> Any:
    return model.predict(new) if hasattr(model, "predict") else model.transform(new)


def said(name: str, model: Model, new: Any) -> Iterator[tuple[str, np.ndarray]]:
    more = (
        OF_MACHINES
        if type(model).__name__ in ("KernelSVC", "KernelSVR", "OneClassSVM")
        else OF_SMALL
        if name.startswith(SMALL)
        else ()
    )
    for attribute in ATTRIBUTES + more:
        yield from array(
            f"{name}.{attribute}", lambda attribute=attribute: getattr(model, attribute)
        )
    yield f"{name}.plan_", np.array([str(getattr(model, "plan_", ""))])
    for method in METHODS:
        rows = (
            model.transform(new)
            if method == "inverse_transform" and hasattr(model, "transform")
            else new
        )
        yield from array(
            f"{name}:{method}", lambda method=method, rows=rows: getattr(model, method)(rows)
        )
    yield from array(f"{name}:std", lambda: model.predict(new, return_std=True)[1])
    yield from array(f"{name}:cov", lambda: model.predict(new, return_cov=True)[1])
    yield from array(f"{name}:jackknife", lambda: model.predict_interval(new, method="jackknife+"))
    if hasattr(model, "calibration"):
        yield from array(f"{name}.kernel_", lambda: str(model.kernel_))
        yield from array(f"{name}:calibration", lambda: np.array([*model.calibration().values()]))
        yield from array(
            f"{name}:quantiles", lambda: model.predict_quantiles(new, [0.1, 0.7], of="f")
        )
        yield from array(f"{name}:of f", lambda: model.predict(new, return_std=True, of="f"))
        yield from array(
            f"{name}:prior", lambda: model.sample_y(new, 2, posterior=False, random_state=1)
        )
        yield from array(
            f"{name}:prior functions", lambda: model.sample_functions(2, False, n_features=64)(new)
        )
    yield from array(f"{name}:functions", lambda: model.sample_functions(2, n_features=64)(new))


def array(name: str, of: Callable[[], Any]) -> Iterator[tuple[str, np.ndarray]]:
    try:
        value = of()
    except (AttributeError, TypeError, ValueError, KeyError) as e:
        yield (
            name,
            np.array(
                [type(e).__name__ if isinstance(e, AttributeError) else f"{type(e).__name__}: {e}"]
            ),
        )
        return
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, tuple):
        parts = value
        for i, part in enumerate(parts):
            if part is not None and not callable(part):
                yield f"{name}[{i}]", np.asarray(part)
        return
    if value is None or callable(value) or isinstance(value, list | Items):
        return
    found = np.asarray(value)
    if found.dtype != object:
        yield name, found


def everything(part: str = "") -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {key: value for case in cases() if part in case[0] for key, value in answers(*case)}


def compare(before: dict[str, np.ndarray], now: dict[str, np.ndarray]) -> int:
    """Print what differs, the largest difference of numbers with it; how many."""
    different = 0
    for key in sorted(before.keys() | now.keys()):
        a, b = before.get(key), now.get(key)
        if (
            a is not None
            and b is not None
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.tobytes() == b.tobytes()
        ):
            continue
        different += 1
        print(f"{key}: {described(a, b)}")
    print(f"{len(before)} answers, {different} differ")
    return different


def described(a: np.ndarray | None, b: np.ndarray | None) -> str:
    if a is None or b is None:
        return "is new" if a is None else "is gone"
    if a.dtype.kind == "f" and a.shape == b.shape and b.dtype.kind == "f":
        far = np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0)
        return f"{far:.1e} of {np.nanmax(np.abs(a), initial=0):.1e} ({a.dtype}, {b.dtype})"
    return f"{a.ravel()[:3]} {a.shape} {a.dtype} -> {b.ravel()[:3]} {b.shape} {b.dtype}"


def main(argv: list[str]) -> int:
    if len(argv) not in (2, 3) or argv[0] not in ("save", "compare"):
        print(__doc__)
        return 2
    part = argv[2] if len(argv) == 3 else ""
    found = everything(part)
    if argv[0] == "save":
        np.savez_compressed(
            argv[1], **{key.replace("/", "|"): value for key, value in found.items()}
        )
        print(f"{len(found)} answers")
        return 0
    with np.load(argv[1]) as kept:
        names = {key: key.replace("|", "/") for key in kept.files}
        return int(
            compare(
                {
                    name: kept[key]
                    for key, name in names.items()
                    if part in name.split(":")[0].split(".")[0]
                },
                found,
            )
            > 0
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
