"""Kernel ridge and kernel PCA without features: against scikit-learn where it can go, against stated limits where it cannot."""

from functools import partial
from time import perf_counter

import numpy as np
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.kernel_ridge import KernelRidge as TheirRidge

from bench import data
from bench.features import target
from bench.harness import Case, Measure, Quality
from bench.memory import peak_memory
from bench.operator import rows
from mercer.estimators import KernelPCA
from mercer.kernels import Gaussian
from mercer.learners.falkon import falkon
from mercer.learners.kernel_ridge import exact
from mercer.learners.solvers import CG
from mercer.operators import KernelOperator
from mercer.ops.philox import Stream, permutation

MINUTES, GIGABYTES = 5.0, 4.0
LANDMARKS = 5000


# kernel ridge at 20,000 rows
def ours_ridge(n, d, bandwidth, alpha):
    X = rows(n, d, np.float64)
    return exact(KernelOperator(Gaussian(bandwidth), X), target(X), alpha, intercept=False, solver=CG())


def their_ridge(n, d, bandwidth, alpha):
    X = rows(n, d, np.float64)
    return TheirRidge(kernel="rbf", gamma=1 / (2 * bandwidth**2), alpha=alpha).fit(X, target(X))


def ridge(n, d, bandwidth, alpha):
    X, Z = rows(n, d, np.float64), rows(2000, d, np.float64, seed=7)

    def check(ours, theirs):
        off = np.abs((KernelOperator(Gaussian(bandwidth), Z, X) @ ours.coef)[:, 0] - theirs.predict(Z)).max()
        return None if off <= 1e-4 else f"predictions differ by {off:.1e}"

    name = f"kernel ridge, n={n:,}, d={d}, bandwidth {bandwidth:g}, alpha {alpha:g}"
    run = lambda f, m: partial(f, m, d, bandwidth, alpha)
    yield Case(name, run(ours_ridge, n), run(their_ridge, n), check, 10.0, repeats=1, warmup=run(ours_ridge, 3000))
    mine = peak_memory(run(ours_ridge, n), warmup=run(ours_ridge, 2000))
    theirs = peak_memory(run(their_ridge, n), warmup=run(their_ridge, 2000))
    yield Measure(f"{name}: peak memory", mine / 1e6, theirs / 1e6, 5.0, "MB")


# beyond what a dense matrix allows
def kin40k():
    split = data.uci_cv("kin40k", 0).standardized(target=True)
    return [a.astype(np.float32) for a in (split.X, split.y, split.X_test, split.y_test)]


def covtype(n=100_000, test=50_000):
    """Class 2 against the rest; the ten measurements standardised, the 44 indicators as they are."""
    T = data.table("covtype.csv.xz").to_numpy(np.float32)
    T = T[permutation(Stream(0), len(T))[: n + test]]
    X, y = T[:, :-1].copy(), np.where(T[:, -1] == 2, 1.0, -1.0)
    X[:, :10] = (X[:, :10] - X[:n, :10].mean(0)) / X[:n, :10].std(0)
    return X[:n], y[:n], X[n:], y[n:]


SETS = {"kin40k": (kin40k, 2.0, 1e-2), "covtype": (covtype, 1.0, 1.0)}


def by_landmarks(name):
    """Uniform landmarks; also the prediction of the test rows."""
    load, bandwidth, alpha = SETS[name]
    X, y, X_test, _ = load()
    Z = X[np.sort(permutation(Stream(1), len(X))[:LANDMARKS])]
    s = falkon(Gaussian(bandwidth), Z, lambda: [(X, y[:, None], None)], alpha, memory=2.5e9)
    return (KernelOperator(Gaussian(bandwidth), X_test, Z[s.kept]) @ s.coef + s.intercept)[:, 0]


def by_all_rows(name):
    load, bandwidth, alpha = SETS[name]
    X, y, X_test, _ = load()
    s = exact(KernelOperator(Gaussian(bandwidth), X), y, alpha, solver=CG(tol=1e-4, memory=3.2e9))
    return (KernelOperator(Gaussian(bandwidth), X_test, X) @ s.coef + s.intercept)[:, 0]


def by_nystrom(name):
    """The same landmarks as Nystrom features in float64, and their normal equations: the error to reach."""
    from mercer.learners import ridge as primal
    from mercer.lifts import Nystrom
    from mercer.stats import Moments

    load, bandwidth, alpha = SETS[name]
    X, y, X_test, _ = load()
    phi = Nystrom(Gaussian(bandwidth), landmarks=X[np.sort(permutation(Stream(1), len(X))[:LANDMARKS])]).fit(X)
    m = Moments.zero(np.zeros(phi.n_features_out_ + 1))
    for i in range(0, len(X), 5000):
        m.add(np.column_stack([phi.transform(X[i : i + 5000]), y[i : i + 5000]]))
    s = primal.solve(m, phi.n_features_out_, alpha)
    parts = [phi.transform(X_test[i : i + 5000]) @ s.coef for i in range(0, len(X_test), 5000)]
    return np.concatenate(parts)[:, 0] + s.intercept[0]


def error(name, prediction):
    y = SETS[name][0]()[3]
    return float(np.mean(np.sign(prediction) != y)) if name == "covtype" else float(np.sqrt(np.mean((prediction - y) ** 2)))


def large(name, way):
    start = perf_counter()
    found = error(name, way(name))
    seconds = perf_counter() - start
    reference = error(name, by_nystrom(name))
    quality = Quality("test error", found, reference, slack=0.01 * reference, higher_is_better=False)
    label = f"kernel ridge, {name}, {way.__name__.replace('_', ' ')}"
    limit = f"{MINUTES:g} minutes"
    yield Measure(f"{label}: seconds with reading and predicting, against {limit}", seconds, 60 * MINUTES, 1.0, "s", quality=quality)
    yield Measure(f"{label}: memory, against {GIGABYTES:g} GB", peak_memory(partial(way, name)) / 1e6, 1e3 * GIGABYTES, 1.0, "MB")


# kernel PCA
def pca(n, d, k, bandwidth):
    X = rows(n, d, np.float64)
    ours = lambda: KernelPCA(k, Gaussian(bandwidth), "iterative").fit(X)
    peer = lambda: TheirPCA(k, kernel="rbf", gamma=1 / (2 * bandwidth**2), eigen_solver="auto").fit(X)

    def check(m, p):
        off = np.abs(m.eigenvalues_ / p.eigenvalues_ - 1).max()
        return None if off <= 1e-6 else f"eigenvalues differ by {off:.1e} of themselves"

    warmup = lambda: KernelPCA(k, Gaussian(bandwidth), "iterative").fit(X[:1000])
    return Case(f"kernel PCA, n={n:,}, d={d}, {k} components", ours, peer, check, 5.0, repeats=1, warmup=warmup)


def cases():
    yield from ridge(20_000, 10, 3.0, 1e-2)
    yield pca(10_000, 10, 50, 3.0)
    yield from large("kin40k", by_landmarks)
    yield from large("kin40k", by_all_rows)
    yield from large("covtype", by_landmarks)
