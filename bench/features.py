"""Learning on features against scikit-learn's pipelines, and a stream against the bare matrix
products."""

import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from bench import data
from bench.harness import Case, Measure, Quality
from bench.memory import peak_memory
from bench.operator import rows
from mercer import KernelLogistic, KernelRidge
from mercer.kernels import Gaussian
from mercer.methods import Fourier

ALPHAS = np.logspace(-4, 4, 20)


def target(X, seed=3):
    rng = np.random.default_rng(seed)
    return np.sin(X[:, 0]) * X[:, 1] + np.tanh(X[:, 2] - X[:, 3]) + 0.3 * rng.normal(size=len(X))


def ridge(n, d, D):
    X, X_test = rows(n, d, np.float64), rows(5_000, d, np.float64, seed=7)
    y, y_test, b = target(X), target(X_test, 4), float(np.sqrt(d))

    def ours():
        return KernelRidge(Gaussian(b), via=Fourier(D), cv=5, alphas=ALPHAS, random_state=0).fit(
            X, y
        )

    def peer():
        F = RBFSampler(gamma=1 / (2 * b * b), n_components=D, random_state=0)
        Z = F.fit_transform(X)
        search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=5, n_jobs=2).fit(Z, y)
        return make_pipeline(F, search.best_estimator_)

    def check(m, p):
        return Quality("test R^2", m.score(X_test, y_test), p.score(X_test, y_test), slack=1e-3)

    name = f"Fourier + ridge, n={n:,}, d={d}, D={D:,}, alpha among 20 by 5 folds"
    return Case(
        name,
        ours,
        peer,
        check,
        10.0,
        repeats=1,
        warmup=partial(KernelRidge(via=Fourier(64), cv=5).fit, X[:500], y[:500]),
    )


SEEDS = (0, 1, 2)  # one draw of the features moves the accuracy by more than the methods differ


def logistic(D, alpha=1.0):
    X, y = data.libsvm("a9a.xz", dense=True)
    X_test, y_test = data.libsvm("a9a.t.xz", n_features=123, dense=True)
    b = float(np.sqrt(1 / (2 * 0.05)))

    def ours():
        return [
            KernelLogistic(Gaussian(b), via=Fourier(D), alpha=alpha, random_state=s).fit(X, y)
            for s in SEEDS
        ]

    def peer():  # at its default tol it stops 0.4 % above the minimum, so not at the same objective
        samplers = [RBFSampler(gamma=0.05, n_components=D, random_state=s) for s in SEEDS]
        return [
            make_pipeline(f, LogisticRegression(C=1 / alpha, tol=1e-5, max_iter=2000)).fit(X, y)
            for f in samplers
        ]

    def check(m, p):
        return Quality(
            "mean test accuracy of 3 draws",
            *(np.mean([f.score(X_test, y_test) for f in v]) for v in (m, p)),
            slack=1e-3,
        )

    return Case(f"logistic, a9a, D={D:,}", ours, peer, check, 3.0, repeats=1)


BATCH, WIDTH, FEATURES = 1 << 16, 20, 1000


def write(path, n):
    """Rows [x, y] in float32, batch by batch."""
    with Path(path).open("wb") as stream:
        for i in range(0, n, BATCH):
            X = rows(min(BATCH, n - i), WIDTH, np.float32, seed=i)
            np.column_stack([X, target(X, i)]).astype(np.float32).tofile(stream)


def batches(path):
    with Path(path).open("rb") as stream:
        while len(Z := np.fromfile(stream, np.float32, BATCH * (WIDTH + 1)).reshape(-1, WIDTH + 1)):
            yield Z[:, :WIDTH], Z[:, WIDTH]


def stream_fit(path):
    """One pass over the file by partial_fit; solved once a batch, as a stream is."""
    m = KernelRidge(Gaussian(4.0), via=Fourier(FEATURES), random_state=0)
    for X, y in batches(path):
        m.partial_fit(X, y)
    return m


def products(n):
    """Float32 GEMM (rows by frequencies) and SYRK (features) of the same shapes, and nothing
    else."""
    X, W, seconds = rows(BATCH, WIDTH, np.float32), rows(WIDTH, FEATURES // 2, np.float32), 0.0
    F = rows(BATCH, FEATURES + 1, np.float32)
    for _ in range(0, n, BATCH):
        start = perf_counter()
        X @ W
        F.T @ F
        seconds += perf_counter() - start
    return seconds


def stream(n):
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "rows.bin", Path(folder) / "few.bin"
        write(path, n)
        write(small, 2000)
        start = perf_counter()
        m = stream_fit(path)
        seconds = perf_counter() - start
        test = rows(5_000, WIDTH, np.float32, seed=999)
        score = m.score(test, target(test, 998))
        verdict = None if score > 0.5 else f"test R^2 is only {score:.3f}"
        name = f"streamed fit, {n:,} x {WIDTH}, D={FEATURES:,}, against its bare products"
        yield Measure(name, seconds, products(n), 1 / 1.4, "s", quality=verdict)
        grown = peak_memory(partial(stream_fit, path), warmup=partial(stream_fit, small))
        yield Measure(
            "streamed fit: memory above the baseline, against 1 GB", grown / 1e6, 1000.0, 1.0, "MB"
        )


def cases():
    yield ridge(100_000, 20, 2000)
    yield logistic(2000)
    yield from stream(5_000_000)
