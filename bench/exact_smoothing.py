"""Kernel votes against scikit-learn's pairwise kernels by hand, and the kernel perceptron in one
pass against published accuracies."""

import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from bench import data
from bench.exact_solvers import Later
from bench.harness import Case, Measure
from bench.memory import peak_memory
from bench.operator import rows
from mercer.kernels import Gaussian
from mercer.models.perceptron import KernelPerceptron
from mercer.models.smoothing import NadarayaWatson

CHUNK = 1000  # rows of the peer's matrix held at once: 200 MB in float32
ORDERS = 5  # shuffles of the rows, each one pass


def smoother(n, d, bandwidth=1.0):
    X, Z = rows(n, d, np.float32), rows(n, d, np.float32, seed=7)
    y = (np.sin(X[:, 0]) * X[:, 1]).astype(np.float32)
    m = NadarayaWatson(Gaussian(bandwidth)).fit(X, y)

    def by_hand(count=n):
        pieces = (
            rbf_kernel(Z[i : i + CHUNK], X, gamma=0.5 / bandwidth**2)
            for i in range(0, count, CHUNK)
        )
        return np.concatenate([K @ y / K.sum(axis=1) for K in pieces])

    def check(ours, peer):
        error = float(np.abs(ours - peer).max())
        return None if error < 1e-3 else f"predictions differ by {error:.2g}"

    def warm():
        m.predict(Z[:2000])
        by_hand(2000)

    name = f"NadarayaWatson, {n:,} x {d} points and queries, float32"
    return Case(name, lambda: m.predict(Z), by_hand, check, 8.0, repeats=2, warmup=warm)


@cache
def sets():
    """Training rows, test rows and the kernel of each set."""
    ijcnn1 = (
        *data.libsvm("ijcnn1.trn.bz2", dense=True),
        *data.libsvm("ijcnn1.t.bz2", n_features=22, dense=True),
    )
    letter = (
        *data.libsvm("letter.scale.xz", dense=True),
        *data.libsvm("letter.scale.t.xz", n_features=16, dense=True),
    )
    return {"ijcnn1": (*ijcnn1, Gaussian.of(gamma=2)), "letter": (*letter, Gaussian.of(gamma=4))}


def accuracies(split, gamma=None, **options):
    """Test accuracy in percent of the mean and of the last hypothesis, each a mean over
    shuffles."""
    X, y, X_test, y_test, kernel = split
    kernel = kernel if gamma is None else Gaussian.of(gamma=gamma)
    found = []
    for seed in range(ORDERS):
        m = KernelPerceptron(kernel, shuffle=True, random_state=seed, **options).fit(X, y)
        late = m.score(X_test, y_test)
        found.append((late, m.set_params(average=False).score(X_test, y_test)))
    return 100 * np.mean(found, axis=0), 100 * np.std(found, axis=0)


# Published, one pass (target), with the settings here: margin 0 is the plain perceptron; late
# hypotheses count more as average grows.
# Gamma (where it is not the SVM's of `sets`), margin and average are the best of a few on a
# held-out fifth of the training rows. The
# plain perceptron is shown at the SVM's gamma and at its own best: no gamma from 1 to 16 takes it
# to the published figures.
TABLE = [
    ("ijcnn1", "published perceptron", 98.61, dict(average=3)),
    ("ijcnn1", "published perceptron", 98.61, dict(average=3, gamma=4)),
    ("ijcnn1", "published perceptron", 98.61, dict(average=7, margin=0.7, gamma=8)),
    ("letter", "published perceptron", 96.41, dict(average=1)),
    ("letter", "published perceptron", 96.41, dict(average=3, margin=1.4, gamma=8)),
    ("ijcnn1", "published Projectron++", 92.36, dict(budget=100, policy="projectron++", average=3)),
    (
        "ijcnn1",
        "published merging",
        97.27,
        dict(budget=100, policy="merging", average=15, margin=1.0),
    ),
    ("ijcnn1", "published Projectron++", 94.73, dict(budget=500, policy="projectron++", average=3)),
    (
        "ijcnn1",
        "published merging",
        98.08,
        dict(budget=500, policy="merging", average=15, margin=0.5, gamma=4),
    ),
    ("letter", "published Projectron++", 75.90, dict(budget=500, policy="projectron++", average=3)),
    (
        "letter",
        "published merging",
        89.68,
        dict(budget=500, policy="merging", average=3, margin=1.5, gamma=2),
    ),
]


def perceptron(name, peer, published, options):
    told = ", ".join(f"{key} {value}" for key, value in options.items())
    label = f"KernelPerceptron, one pass, {name}, {told}"

    def measure():
        mean, spread = accuracies(sets()[name], **options)
        title = f"{label} (+- {spread[0]:.2f}; last {mean[1]:.2f} +- {spread[1]:.2f}); {peer}"
        return Measure(title, float(mean[0]), published, 1.0, "%", lower_is_better=False)

    return Later(label, measure)


BATCH, WIDTH = 1 << 15, 20


def write(path, n):
    """Rows [x, y] in float32, batch by batch."""
    with Path(path).open("wb") as stream:
        for i in range(0, n, BATCH):
            X = rows(min(BATCH, n - i), WIDTH, np.float32, seed=i)
            np.column_stack([X, X[:, 0] * X[:, 1] > 0]).astype(np.float32).tofile(stream)


def stream_fit(path):
    m = KernelPerceptron(Gaussian(4.0), 500, "projectron", average=3)
    with Path(path).open("rb") as stream:
        while len(Z := np.fromfile(stream, np.float32, BATCH * (WIDTH + 1)).reshape(-1, WIDTH + 1)):
            m.partial_fit(Z[:, :WIDTH], Z[:, WIDTH], classes=[0.0, 1.0])
    return m


def stream(n):
    label = f"KernelPerceptron, stream of {n:,} x {WIDTH}, budget 500: memory above the baseline"

    def measure():
        with tempfile.TemporaryDirectory() as folder:
            path, small = Path(folder) / "rows.bin", Path(folder) / "few.bin"
            write(path, n)
            write(small, 3000)
            grown = peak_memory(partial(stream_fit, path), warmup=partial(stream_fit, small))
            return Measure(label, grown / 1e6, 100.0, 1.0, "MB")

    return Later(label, measure)


def cases():
    yield Later("NadarayaWatson", lambda: smoother(50_000, 8))
    for line in TABLE:
        yield perceptron(*line)
    yield stream(1_000_000)
