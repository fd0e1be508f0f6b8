"""Kernel ridge and kernel PCA without features: against scikit-learn where it can go, against
stated limits where it cannot.

Long calls run each in a process of its own, which also tells their memory: what crashes there fails
alone.
"""

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from bench import data
from bench.features import target
from bench.harness import Case, Measure, Quality, Row
from bench.memory import peak_memory
from bench.operator import rows
from mercer.kernels import Gaussian
from mercer.linalg.least_squares import exact
from mercer.linalg.solvers import CG
from mercer.models import KernelPCA
from mercer.models.ridge.falkon import falkon
from mercer.operators import KernelOperator
from mercer.ops.philox import Stream, permutation

MINUTES, GIGABYTES = 5.0, 4.0
LANDMARKS = 5000
CRASHES = (
    15_000  # rows beyond which LAPACK's Cholesky factor with several threads has crashed the peer
)


@dataclass(frozen=True)
class Later:
    """A measure that is taken when it is its turn: what it raises fails it alone."""

    name: str
    measure: Callable[[], Measure]

    def run(self) -> Row:
        return self.measure().run()


def apart(call, warmup=None):
    """Seconds, bytes at the peak and the result (an array) of a call in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        grown = peak_memory(partial(_recorded, path, call), warmup)
        with np.load(path) as found:
            return float(found["seconds"]), grown, found["result"]


def _recorded(path, call):
    start = perf_counter()
    result = call()
    np.savez(path, seconds=perf_counter() - start, result=result)


# kernel ridge at 20,000 rows
def ours_ridge(n, d, bandwidth, alpha):
    X, Z = rows(n, d, np.float64), rows(2000, d, np.float64, seed=7)
    s = exact(
        KernelOperator(Gaussian(bandwidth), X), target(X), alpha, intercept=False, solver=CG()
    )
    return (KernelOperator(Gaussian(bandwidth), Z, X) @ s.coef)[:, 0]


def their_ridge(n, d, bandwidth, alpha):
    X, Z = rows(n, d, np.float64), rows(2000, d, np.float64, seed=7)
    with threadpool_limits(1, user_api="blas") if n > CRASHES else nullcontext():
        return (
            TheirRidge(kernel="rbf", gamma=1 / (2 * bandwidth**2), alpha=alpha)
            .fit(X, target(X))
            .predict(Z)
        )


def ridge(n, d, bandwidth, alpha):
    run = cache(
        lambda f: apart(partial(f, n, d, bandwidth, alpha), partial(f, 3000, d, bandwidth, alpha))
    )
    told = " (the peer on one BLAS thread: it crashes on two)" if n > CRASHES else ""
    name = f"kernel ridge, n={n:,}, d={d}, bandwidth {bandwidth:g}, alpha {alpha:g}{told}"

    def seconds():
        (ours, _, f), (peer, _, g) = run(ours_ridge), run(their_ridge)
        off = np.abs(f - g).max()
        return Measure(
            name,
            ours,
            peer,
            10.0,
            "s",
            quality=None if off <= 1e-4 else f"predictions differ by {off:.1e}",
        )

    yield Later(name, seconds)
    memory = f"{name}: peak memory"
    yield Later(
        memory,
        lambda: Measure(memory, run(ours_ridge)[1] / 1e6, run(their_ridge)[1] / 1e6, 5.0, "MB"),
    )


# beyond what a dense matrix allows
def kin40k():
    split = data.uci_cv("kin40k", 0).standardized(target=True)
    return [a.astype(np.float32) for a in (split.X, split.y, split.X_test, split.y_test)]


def covtype(n=100_000, test=50_000):
    """Class 2 against the rest; the ten measurements standardised, the 44 indicators as they
    are."""
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
    """The same landmarks as Nystrom features in float64, and their normal equations: the error to
    reach."""
    from mercer.lifts import Nystrom
    from mercer.linalg import least_squares as primal
    from mercer.stats import Moments

    load, bandwidth, alpha = SETS[name]
    X, y, X_test, _ = load()
    phi = Nystrom(
        Gaussian(bandwidth), landmarks=X[np.sort(permutation(Stream(1), len(X))[:LANDMARKS])]
    ).fit(X)
    m = Moments.zero(np.zeros(phi.n_features_out_ + 1))
    for i in range(0, len(X), 5000):
        m.add(np.column_stack([phi.transform(X[i : i + 5000]), y[i : i + 5000]]))
    s = primal.solve(m, phi.n_features_out_, alpha)
    parts = [phi.transform(X_test[i : i + 5000]) @ s.coef for i in range(0, len(X_test), 5000)]
    return np.concatenate(parts)[:, 0] + s.intercept[0]


def error(name, prediction):
    y = SETS[name][0]()[3]
    return (
        float(np.mean(np.sign(prediction) != y))
        if name == "covtype"
        else float(np.sqrt(np.mean((prediction - y) ** 2)))
    )


def large(name, way):
    """Seconds and memory, reading and predicting included, and the test error."""
    run = cache(lambda: apart(partial(way, name)))
    label = f"kernel ridge, {name}, {way.__name__.replace('_', ' ')}"
    timed, held = (
        f"{label}: seconds, against {MINUTES:g} minutes",
        f"{label}: memory, against {GIGABYTES:g} GB",
    )

    def seconds():
        found, reference = error(name, run()[2]), error(name, by_nystrom(name))
        quality = Quality(
            "test error", found, reference, slack=0.01 * reference, higher_is_better=False
        )
        return Measure(timed, run()[0], 60 * MINUTES, 1.0, "s", quality=quality)

    yield Later(timed, seconds)
    yield Later(held, lambda: Measure(held, run()[1] / 1e6, 1e3 * GIGABYTES, 1.0, "MB"))


# kernel PCA
def pca(n, d, k, bandwidth):
    X = rows(n, d, np.float64)
    ours = lambda: KernelPCA(k, Gaussian(bandwidth), "iterative").fit(X)
    peer = lambda: TheirPCA(k, kernel="rbf", gamma=1 / (2 * bandwidth**2), eigen_solver="auto").fit(
        X
    )

    def check(m, p):
        off = np.abs(m.eigenvalues_ / p.eigenvalues_ - 1).max()
        return None if off <= 1e-6 else f"eigenvalues differ by {off:.1e} of themselves"

    warmup = lambda: KernelPCA(k, Gaussian(bandwidth), "iterative").fit(X[:1000])
    return Case(
        f"kernel PCA, n={n:,}, d={d}, {k} components",
        ours,
        peer,
        check,
        5.0,
        repeats=1,
        warmup=warmup,
    )


def randomised(n, d, k, bandwidth):
    """The eigenvalues, above the eigenvectors (n + 1, k)."""
    m = KernelPCA(k, Gaussian(bandwidth), "iterative", random_state=0).fit(rows(n, d, np.float64))
    return np.vstack([m.eigenvalues_, m.dual_coef_ * np.sqrt(m.eigenvalues_)])


def eigen_failure(found, X, bandwidth, sample=3000, chunk=1000):
    """Whether these are the leading eigenpairs, by scikit-learn's kernel: residuals with all rows,
    sizes by those of a sample."""
    values, V = found[0], found[1:]
    gamma, n = 1 / (2 * bandwidth**2), len(X)
    K = np.concatenate(
        [rbf_kernel(X[i : i + chunk], X, gamma=gamma) @ V for i in range(0, n, chunk)]
    )  # V is centred
    left = np.linalg.norm(K - K.mean(0) - V * values, axis=0).max() / values[0]
    G = rbf_kernel(X[:sample], gamma=gamma)
    G -= G.mean(0)
    G -= G.mean(1)[:, None]
    rough = n / sample * np.linalg.eigvalsh(G)[: -len(values) - 1 : -1]
    off, total = np.abs(values / rough - 1).max(), abs(values.sum() / rough.sum() - 1)
    fine = left <= 1e-6 and off <= 0.3 and total <= 0.05
    told = f"each up to {off:.2g}, their sum {total:.2g} off those of a sample"
    return None if fine else f"residuals of {left:.1e} of the largest eigenvalue; {told}"


def large_pca(n, d, k, bandwidth, gigabytes=1.5):
    run = cache(lambda: apart(partial(randomised, n, d, k, bandwidth)))
    label = f"kernel PCA, n={n:,}, d={d}, {k} components, randomised"
    timed, held = (
        f"{label}: seconds, against {MINUTES:g} minutes",
        f"{label}: memory, against {gigabytes:g} GB",
    )
    verdict = lambda: eigen_failure(run()[2], rows(n, d, np.float64), bandwidth)
    yield Later(timed, lambda: Measure(timed, run()[0], 60 * MINUTES, 1.0, "s", quality=verdict()))
    yield Later(held, lambda: Measure(held, run()[1] / 1e6, 1e3 * gigabytes, 1.0, "MB"))


def cases():
    yield from ridge(20_000, 10, 3.0, 1e-2)
    yield pca(10_000, 10, 50, 3.0)
    yield from large_pca(50_000, 10, 50, 3.0)
    yield from large("kin40k", by_landmarks)
    yield from large("kin40k", by_all_rows)
    yield from large("covtype", by_landmarks)
