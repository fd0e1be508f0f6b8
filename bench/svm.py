"""Exact kernel SVMs against scikit-learn-intelex (where it is installed) and scikit-learn: fit and
predict at equal quality.

The same kernel, C, tol=1e-3 and 1 GB of cache for all; a ratio only where the dual objective is
within 1e-4 of the peer's, and the test accuracy within 0.1 point of the peer's and of the published
one.
"""

from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from bench import data
from bench.harness import Case, Quality
from mercer.kernels import Gaussian
from mercer.models.svm.classifier import KernelSVC
from mercer.operators import KernelOperator

CACHE_MB, TOL, CLOSE = 1000, 1e-3, 1e-4


@dataclass(frozen=True)
class Task:
    """Rows, and the settings of a Gaussian SVM; `known` is the published accuracy."""

    name: str
    C: float
    gamma: float
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    known: float | None = None

    def ours(self):
        return KernelSVC(
            Gaussian.of(gamma=self.gamma),
            C=self.C,
            via="exact",
            tol=TOL,
            memory_limit=CACHE_MB * 1e6,
        )

    def peer(self, of):
        return of(C=self.C, gamma=self.gamma, tol=TOL, cache_size=CACHE_MB)


def libsvm(name, train, test, d, C, gamma, known):
    X, y = data.libsvm(train, n_features=d, dense=True)
    return Task(name, C, gamma, X, y, *data.libsvm(test, n_features=d, dense=True), known)


def synthetic(n=20_000, d=20):
    X, y = make_classification(
        2 * n,
        d,
        n_informative=d // 2,
        n_redundant=d // 5,
        n_clusters_per_class=4,
        flip_y=0.05,
        random_state=0,
    )
    X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
    return Task(f"synthetic {n:,} x {d}", 1.0, 1 / d, X[:n], y[:n], X[n:], y[n:])


def objective(m, gamma):
    """sum |b| - b'Kb/2, summed over all pairs of classes, in float64 from the coefficients as
    scikit-learn lays them out."""
    vectors, coef, counts = (
        np.asarray(m.support_vectors_, np.float64),
        np.asarray(m.dual_coef_),
        np.asarray(m.n_support_),
    )
    if len(coef) == 1:
        return _value(vectors, coef[0], gamma)
    ends = np.concatenate([[0], np.cumsum(counts)])
    of = [slice(ends[k], ends[k + 1]) for k in range(len(counts))]
    return sum(
        _value(
            np.concatenate([vectors[of[a]], vectors[of[b]]]),
            np.concatenate([coef[b - 1, of[a]], coef[a, of[b]]]),
            gamma,
        )
        for a, b in combinations(range(len(counts)), 2)
    )


def _value(vectors, b, gamma):
    return float(np.abs(b).sum() - b @ (KernelOperator(Gaussian.of(gamma=gamma), vectors) @ b) / 2)


def equal(task, ours, peer):
    """The accuracies, or the sentence that says what is not equal."""
    values = [objective(m, task.gamma) for m in (ours, peer)]
    if abs(values[0] - values[1]) > CLOSE * abs(values[1]):
        return f"the dual objective {values[0]:.8g} is not within {CLOSE} of {values[1]:.8g}"
    score = ours.score(task.X_test, task.y_test)
    if task.known is not None and score < task.known - 1e-3:
        return (
            f"accuracy {score:.5f} is below the published {task.known:.5f} by more than 0.1 point"
        )
    return Quality("test accuracy", score, peer.score(task.X_test, task.y_test), slack=1e-3)


def both(task, name, of, fit_target, predict_target, repeats):
    """Fit, then predict with the models of the last fits."""
    models = {}

    def fit(who, make):
        models[who] = make().fit(task.X, task.y)
        return models[who]

    def warm():
        for m in (task.ours(), task.peer(of)):
            m.fit(task.X[:600], task.y[:600]).predict(task.X[:100])

    def check(ours, peer):
        verdicts.append(equal(task, ours, peer))
        return verdicts[-1]

    verdicts = []
    fits = Case(
        f"{task.name}: fit, against {name}",
        partial(fit, "ours", task.ours),
        partial(fit, "peer", partial(task.peer, of)),
        check,
        fit_target,
        repeats,
        warmup=warm,
    )
    predicts = Case(
        f"{task.name}: predict, against {name}",
        lambda: models["ours"].predict(task.X_test),
        lambda: models["peer"].predict(task.X_test),
        lambda ours, peer: verdicts[-1],
        predict_target,
        repeats,
        warmup=lambda: None,
    )
    return fits, predicts


@cache
def intelex():
    """scikit-learn-intelex's SVC, or None after one printed line."""
    try:
        from sklearnex.svm import SVC as peer
    except ImportError:
        print(
            "scikit-learn-intelex is not installed: its cases are left out (pip install scikit-learn-intelex).",
            flush=True,
        )
        return None
    return peer


def tasks():
    yield synthetic()
    yield libsvm("ijcnn1", "ijcnn1.trn.bz2", "ijcnn1.t.bz2", 22, 32.0, 2.0, 0.98697)
    yield libsvm("letter", "letter.scale.xz", "letter.scale.t.xz", 16, 16.0, 4.0, 0.9796)
    yield libsvm("a9a", "a9a.xz", "a9a.t.xz", 123, 1.0, 0.05, 0.8509)


def cases():
    for task in tasks():
        if intelex() is not None:
            yield from both(task, "scikit-learn-intelex", intelex(), 1.5, 1.5, 3)
        yield from both(task, "scikit-learn", SVC, 8.0, 20.0, 3)
