"""The first use of every estimator in a fresh process, and a small fit in a warm one.

First use: seconds of import, `fit` and `predict` of 100 x 5 beyond the imports of NumPy and of
scikit-learn's base: with an empty cache of Numba's, with the cache that this left, and those of
scikit-learn's counterpart. Small fits: 100 rows again in a warm process, which may take 2 ms longer
than the counterpart's, and a Gaussian process of 200 rows at its defaults. `--quick` leaves out the
empty caches of all but `KernelSVC`, `--only NAME` takes some of the estimators.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as TheirGP
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.svm import SVC

from bench.harness import Measure
from mercer import GaussianProcessRegressor, KernelRidge, KernelSVC
from mercer.lifts import RandomFourier

WARM, COLD = 1.0, 3.0  # seconds allowed, with a cache of compiled loops and without
SLOWER, LEARNT = 2e-3, 0.1  # seconds more than the counterpart; of a GP of 200 rows
REPEATS = 2
ROWS = """
import time
import numpy as np, sklearn.base
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 5))
y, labels = X[:, 0] + rng.normal(size=100), X[:, 0] > 0
texts = [" ".join(rng.choice(["red", "green", "blue", "gold"], 6)) for _ in X]
start = time.perf_counter()
{use}
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Use:
    """What is run, ours and scikit-learn's counterpart, where there is one."""

    ours: str
    peer: str | None = None


def fit(module: str, model: str, target: str = "y", ask: str = "predict", rows: str = "X") -> str:
    made = model if "(" in model else f"{model}()"
    return f"from {module} import {made.split('(')[0]} as M; M({made.split('(', 1)[1]}.fit({rows}, {target}).{ask}({rows})"


USES = {
    "FeatureMachineClassifier": Use(fit("mercer", "FeatureMachineClassifier", "labels")),
    "FeatureMachineRegressor": Use(fit("mercer", "FeatureMachineRegressor")),
    "GaussianProcessClassifier": Use(
        fit("mercer", "GaussianProcessClassifier", "labels"),
        fit("sklearn.gaussian_process", "GaussianProcessClassifier", "labels"),
    ),
    "GaussianProcessRegressor": Use(
        fit("mercer", "GaussianProcessRegressor"),
        fit("sklearn.gaussian_process", "GaussianProcessRegressor"),
    ),
    "KernelKMeans": Use(fit("mercer", "KernelKMeans(3)"), fit("sklearn.cluster", "KMeans(3)")),
    "KernelLogistic": Use(
        fit("mercer", "KernelLogistic", "labels"),
        fit("sklearn.linear_model", "LogisticRegression", "labels"),
    ),
    "KernelPCA": Use(
        fit("mercer", "KernelPCA(2)", ask="transform"),
        fit("sklearn.decomposition", "KernelPCA(2, kernel='rbf')", ask="transform"),
    ),
    "KernelPerceptron": Use(
        fit("mercer", "KernelPerceptron", "labels"),
        fit("sklearn.linear_model", "Perceptron", "labels"),
    ),
    "KernelRidge": Use(
        fit("mercer", "KernelRidge"), fit("sklearn.kernel_ridge", "KernelRidge(kernel='rbf')")
    ),
    "KernelSVC": Use(fit("mercer", "KernelSVC", "labels"), fit("sklearn.svm", "SVC", "labels")),
    "KernelSVR": Use(fit("mercer", "KernelSVR"), fit("sklearn.svm", "SVR")),
    "LearnedMetric": Use(fit("mercer", "LearnedMetric", "labels", "transform")),
    "NGrams": Use(
        fit("mercer", "NGrams", "labels", "transform", "texts"),
        fit("sklearn.feature_extraction.text", "TfidfVectorizer", "labels", "transform", "texts"),
    ),
    "NadarayaWatson": Use(fit("mercer", "NadarayaWatson")),
    "OneClassSVM": Use(fit("mercer", "OneClassSVM"), fit("sklearn.svm", "OneClassSVM")),
    "Perceptron": Use(
        fit("mercer", "Perceptron", "labels"), fit("sklearn.linear_model", "Perceptron", "labels")
    ),
    "SoftNeighborsClassifier": Use(
        fit("mercer", "SoftNeighborsClassifier", "labels"),
        fit("sklearn.neighbors", "KNeighborsClassifier", "labels"),
    ),
    "SparseClassifier": Use(fit("mercer", "SparseClassifier", "labels")),
    "SparseRegressor": Use(
        fit("mercer", "SparseRegressor"), fit("sklearn.linear_model", "LassoCV")
    ),
    "WeightedUnion": Use(
        "from mercer import WeightedUnion; from mercer.lifts import Identity; "
        "WeightedUnion([('x', Identity(), [0, 1]), ('z', Identity(), [2])]).fit(X, y).transform(X)"
    ),
    "RandomFourier": Use(
        "from mercer.lifts import RandomFourier; from mercer.kernels import Gaussian; "
        "RandomFourier(Gaussian(), 200, random_state=0).fit_transform(X)",
        fit("sklearn.kernel_approximation", "RBFSampler", ask="transform"),
    ),
    "Nystrom": Use(
        "from mercer.lifts import Nystrom; from mercer.kernels import Gaussian; "
        "Nystrom(Gaussian(), 50, random_state=0).fit_transform(X)",
        fit("sklearn.kernel_approximation", "Nystroem(n_components=50)", ask="transform"),
    ),
}


def seconds(use: str, cache: str) -> float:
    """Of a fresh process, with Numba's cache in this folder."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ROWS.format(use=use)],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(told.stdout.split()[-1])


def first_uses(name: str, use: Use, *, cold: bool) -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as cache:
        empty = seconds(use.ours, cache)
        warm = min(seconds(use.ours, cache) for _ in range(REPEATS))
        peer = None if use.peer is None else min(seconds(use.peer, cache) for _ in range(REPEATS))
    told = "" if peer is None else f"; scikit-learn {peer:.2f} s"
    yield Measure(f"{name}, first use, warm cache{told}", warm, WARM, 1.0, "s")
    if cold:
        yield Measure(f"{name}, first use, no cache", empty, COLD, 1.0, "s")


# small fits
def small_fits() -> Iterator[Measure]:
    """Fits of a warm process; what they may take is the counterpart's time and 2 ms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y, labels = X[:, 0] + rng.normal(size=100), X[:, 0] > 0
    kernel = ConstantKernel() * RBF(np.ones(5)) + WhiteKernel()
    sides: dict[str, tuple[Any, Any, Any]] = {
        "KernelRidge": (KernelRidge(), TheirRidge(kernel="rbf"), y),
        "KernelSVC": (KernelSVC(), SVC(), labels),
        "GaussianProcessRegressor": (GaussianProcessRegressor(), TheirGP(kernel), y),
        "RandomFourier": (RandomFourier(random_state=0), RBFSampler(random_state=0), None),
    }
    for name, (ours, peer, target) in sides.items():
        mine, theirs = (best(model, X, target) for model in (ours, peer))
        title = f"{name}, fit of 100 rows again; scikit-learn {1e3 * theirs:.1f} ms"
        yield Measure(title, mine, theirs + SLOWER, 1.0, "s")
    X = rng.normal(size=(200, 5))
    mine = best(GaussianProcessRegressor(), X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=200))
    yield Measure("GaussianProcessRegressor, fit of 200 rows again", mine, LEARNT, 1.0, "s")


def best(model: Any, X: Any, y: Any) -> float:
    """The least seconds of a fit, of at least ten of them or a second."""
    model.fit(X, y)
    least, began = np.inf, perf_counter()
    while perf_counter() - began < 1.0:
        start = perf_counter()
        model.fit(X, y)
        least = min(least, perf_counter() - start)
    return float(least)


def cases(*, quick: bool = False, only: tuple[str, ...] = ()) -> Iterator[Measure]:
    """quick: without a cache `KernelSVC` alone."""
    if not only:
        yield from small_fits()
    for name, use in USES.items():
        if not only or name in only:
            yield from first_uses(name, use, cold=not quick or name == "KernelSVC")
