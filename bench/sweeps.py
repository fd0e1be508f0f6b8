"""L1 over products that are never built: sweeps, paths and folds against what issue and memory
allow, and how often what was planted is found. No peer can hold these features."""

import time
from functools import partial

import numpy as np

from bench.harness import Measure
from bench.memory import peak_memory
from mercer import SparseRegressor
from mercer.inputs import Table
from mercer.lifts import Monomials
from mercer.models.sparse.implicit import ProductFeatures, implicit

N, PLANTED, R2 = 2000, 10, 0.9


def planted(seed, d, degree, distinct):
    """Uniform columns, targets of ten products of equal variance and noise, and the products."""
    rng = np.random.default_rng(seed)
    X, f, words = rng.uniform(-1, 1, (N, d)), np.zeros(N), []
    while len(words) < PLANTED:
        size = rng.integers(1, degree + 1)
        word = tuple(sorted(rng.choice(d, size, replace=not distinct).tolist()))
        z = np.prod(X[:, word], axis=1)
        f += rng.choice([-1, 1]) * (z - z.mean()) / z.std()
        words.append(word)
    return X, f + rng.normal(size=N) * f.std() * np.sqrt(1 / R2 - 1), set(words)


def learner(degree, distinct, n_alphas, **options):
    lift = Monomials(degree, interaction_only=distinct, include_bias=False)
    return SparseRegressor(lift, n_alphas=n_alphas, random_state=0, **options)


def fitted(d, degree, distinct, n_alphas, folds, seed=0):
    """A path down to a thousandth of the largest penalty, with folds or without."""
    X, y, words = planted(seed, d, degree, distinct)
    m = learner(degree, distinct, n_alphas, cv=folds or 5)
    if folds:
        return m.fit(X, y), words
    return m.set_params(alpha=1e-3 * largest_of(m, X, y)).fit(X, y), words


def largest_of(m, X, y):
    """The least penalty at which nothing is kept."""
    w = np.full(N, 1 / N)
    found = dictionary(m, X).largest(w * (y - y.mean()), 1, 0.0)
    return float(np.abs(found.values[0]))


def dictionary(m, X):
    return implicit(ProductFeatures(m.lift.fit(X)), Table(X), np.full(N, 1 / N), m.scale == "unit")


def timed(name, limit, *args):
    start = time.perf_counter()
    m, words = fitted(*args)
    seconds = time.perf_counter() - start
    path = m.path_
    features = m.model_.map.features
    kept = set(features.words(path.ids))
    short = None if words <= kept else f"{len(words - kept)} of those planted are not found"
    far = None if path.gaps.max() <= 1e-6 else f"a gap of {path.gaps.max():.1e}"
    return Measure(name, seconds, limit, 1.0, "s", quality=short or far)


def memory(name, *args):
    small = partial(fitted, 40, 3, False, 3, 2)
    grown = peak_memory(partial(fitted, *args), warmup=small)
    return Measure(f"{name}: memory", grown / 1e6, 1000.0, 1.0, "MB")


def sweep(name, d, degree, distinct, limit):
    m = learner(degree, distinct, 1, scale="columns")
    X, y, _ = planted(0, d, degree, distinct)
    D, r = dictionary(m, X), (y - y.mean()) / N
    above = 0.8 * float(np.abs(D.largest(r, 1, 0.0).values[0]))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        D.largest(r, 100, above)
        times.append(time.perf_counter() - start)
    return Measure(f"{name}: a sweep in float32", 1000 * min(times), 1000 * limit, 1.0, "ms")


def recovered(seeds=20):
    """How often all ten are among the features kept at a twentieth of the largest penalty."""
    hits = 0
    for seed in range(seeds):
        X, y, words = planted(seed, 200, 3, False)
        m = learner(3, False, 20)
        m.set_params(alpha=0.05 * largest_of(m, X, y)).fit(X, y)
        hits += words <= set(m.model_.map.features.words(m.model_.ids))
    return Measure("ten planted among 1,373,700: found, of 20", hits, 20.0, 1.0, "", False)


def cases():
    cubic, four = (
        "1,373,700 cubic products of 200 columns",
        "4,087,975 products of 4 of 100 columns",
    )
    yield sweep(cubic, 200, 3, False, 0.09)
    yield sweep(four, 100, 4, True, 0.3)
    yield recovered()
    yield timed(f"{cubic}: path of 50", 20.0, 200, 3, False, 50, 0)
    yield timed(f"{four}: path of 30", 60.0, 100, 4, True, 30, 0)
    yield timed(f"{cubic}: path of 50, 5 folds", 90.0, 200, 3, False, 50, 5)
    yield memory(f"{cubic}: path of 50, 5 folds", 200, 3, False, 50, 5)
    yield memory(f"{four}: path of 30", 100, 4, True, 30, 0)
