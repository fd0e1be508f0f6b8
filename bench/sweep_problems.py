"""One problem of a random shape for every operation that has a peer: what is timed, its peer, and
the check that both are equally good.

First the shape is drawn, then `afford` tells by a rough forecast whether the peer would take too
long, or more than 4 GB, and only then there are rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.gaussian_process import GaussianProcessRegressor as TheirGP
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.metrics.pairwise import rbf_kernel

from bench.harness import Quality, Verdict
from bench.svm import objective
from bench.sweep_least import Least
from bench.sweep_rows import FLOPS, ROWS, VALUE, Draw, Rows, Shape, labels, response
from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import Gaussian, Linear
from mercer.lifts import Nystrom, RandomFourier
from mercer.models import KernelKMeans, KernelPCA, KernelSVC, KernelSVR
from mercer.operators import KernelOperator


@dataclass(frozen=True)
class Problem:
    """Two calls, and what says whether their results are equally good; `ways` are ours by every
    choice that there is, by name, and `least` the seconds of what none can be without, beside our
    result."""

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    check: Callable[[Any, Any], Verdict]
    ways: dict[str, Callable[[], Any]] = field(default_factory=dict)
    least: Callable[[Least, Any], float] | None = None


def near(tolerance: float) -> Callable[[Any, Any], Verdict]:
    def check(ours: Any, peer: Any) -> Verdict:
        off = float(np.abs(ours - peer).max() / np.abs(peer).max())
        return None if off <= tolerance else f"results differ by {off:.1e}"

    return check


def rounding(X: Any, wide: float, narrow: float) -> float:
    return narrow if X.dtype == np.float32 else wide


# matrices
def matrix(draw: Draw) -> tuple[Rows, Any, str]:
    """Rows, other rows or None, and what is told of both."""
    s = Shape.of(draw)
    m = draw.size(ROWS[0], s.n) if draw.chance(0.5) else None
    draw.afford(s.values(m), 3.0 * s.dtype.itemsize * s.n * (m or s.n))
    r = s.rows()
    told = f"{s.told}, {'square' if m is None else f'{m:,} columns'}"
    return r, None if m is None else r.made(m, draw.rng), told


def gram(draw: Draw) -> Problem:
    r, Z, told = matrix(draw)
    return Problem(
        told,
        lambda: r.kernel(r.X, Z),
        lambda: rbf_kernel(r.X, Z, gamma=r.gamma),
        near(rounding(r.X, 1e-9, 1e-4)),
        least=lambda least, K: least.gram(r.X, Z),
    )


def product(draw: Draw) -> Problem:
    r, Z, told = matrix(draw)
    v = draw.normal((r.X if Z is None else Z).shape[0]).astype(r.X.dtype)
    return Problem(
        told,
        lambda: KernelOperator(r.kernel, r.X, Z) @ v,
        lambda: rbf_kernel(r.X, Z, gamma=r.gamma) @ v,
        near(rounding(r.X, 1e-9, 1e-3)),
        least=lambda least, Kv: least.gram(r.X, Z, kept=False),
    )


# solvers
def ridge(draw: Draw) -> Problem:
    s, alpha = Shape.of(draw), draw.power(-2, 1)
    draw.afford(s.values() + s.n**3 / 3 / FLOPS, 24.0 * s.n**2)
    r = s.rows()
    y, test = response(draw.rng, r.X), r.made(min(s.n, 500), draw.rng)

    def ours(via: str = "exact") -> Any:
        return KernelRidge(r.kernel, alpha, via, fit_intercept=False).fit(r.X, y)

    def check(m: Any, p: Any) -> Verdict:
        off = float(np.abs(m.predict(test) - p.predict(test)).max())
        allowed = rounding(r.X, 1e-4, 1e-2)
        return None if off <= allowed else f"predictions differ by {off:.1e}"

    return Problem(
        f"{s.told}, alpha {alpha:.2g}",
        ours,
        lambda: TheirRidge(kernel="rbf", gamma=r.gamma, alpha=alpha).fit(r.X, y),
        check,
        {"iterative": lambda: ours("iterative")},
        lambda least, m: least.gram(r.X, kept=False) + least.solution(s.n, steps_of(m)),
    )


def steps_of(m: Any) -> int | None:
    """Of conjugate gradients, where these solved the equations."""
    return m.plan_.settings["steps"] if m.plan_.way == "conjugate gradients" else None


def svc(draw: Draw) -> Problem:
    s, C, classes = Shape.of(draw), draw.power(-0.5, 1.5), int(draw.rng.choice([2, 2, 3, 10]))
    draw.afford(s.values() + 10 * VALUE * s.n**2, 1e9 + 8.0 * s.n * s.d)
    r = s.rows()
    y, settings = labels(draw.rng, r.X, classes), {"C": C, "tol": 1e-3, "cache_size": 1000}

    def ours() -> Any:
        """Ties between votes go to the first class, as the peer's do."""
        m = KernelSVC(r.kernel, C=C, via="exact", tol=1e-3, memory_limit=1e9, break_ties=False)
        return m.fit(r.X, y)

    def check(m: Any, p: Any) -> Verdict:
        values = [objective(model, r.gamma) for model in (m, p)] if s.density is None else [1, 1]
        if values[0] < values[1] - 1e-3 * abs(values[1]):
            return f"the dual objective {values[0]:.6g} is below {values[1]:.6g}"
        return Quality("training accuracy", m.score(r.X, y), p.score(r.X, y), slack=0.01)

    return Problem(
        f"{s.told}, C {C:.2g}, {classes} classes",
        ours,
        lambda: peer_svm("SVC")(gamma=r.gamma, **settings).fit(r.X, y),
        check,
    )


def svr(draw: Draw) -> Problem:
    s, C = Shape.of(draw), draw.power(-0.5, 1.5)
    draw.afford(2 * s.values() + 20 * VALUE * s.n**2, 1e9 + 8.0 * s.n * s.d)
    r = s.rows()
    y, test = response(draw.rng, r.X), r.made(min(s.n, 1000), draw.rng)
    settings = {"C": C, "tol": 1e-3, "cache_size": 1000, "epsilon": 0.1}

    def check(m: Any, p: Any) -> Verdict:
        off = float(np.sqrt(np.mean((m.predict(test) - p.predict(test)) ** 2)))
        return None if off <= 1e-2 else f"predictions differ by {off:.1e} on average"

    return Problem(
        f"{s.told}, C {C:.2g}",
        lambda: KernelSVR(r.kernel, C=C, epsilon=0.1, tol=1e-3, memory_limit=1e9).fit(r.X, y),
        lambda: peer_svm("SVR")(gamma=r.gamma, **settings).fit(r.X, y),
        check,
    )


@cache
def peer_svm(name: str) -> Any:
    """scikit-learn-intelex's machine of this name, or scikit-learn's after one printed line."""
    try:
        import sklearnex.svm as module
    except ImportError:
        import sklearn.svm as module

        print("scikit-learn-intelex is not installed: the peer is scikit-learn.", flush=True)
    return getattr(module, name)


def process(draw: Draw) -> Problem:
    """A Gaussian process with learnt bandwidths, scale and noise."""
    s = Shape.of(draw, 2000, (1, 30), sparse=False)
    n, widths = s.n, s.d if draw.chance(0.5) else 1
    seconds = 40 * (2 * n**3 / FLOPS + n**2 * VALUE * (4 + widths))
    draw.afford(seconds, 8.0 * n**2 * (6 + widths))
    X = s.rows().X.astype(np.float64)
    y, kernel = response(draw.rng, X), Gaussian((1.0,) * s.d if widths > 1 else 1.0)

    def peer() -> Any:
        k = ConstantKernel() * RBF(np.ones(widths)) + WhiteKernel()
        return TheirGP(k, alpha=0.0).fit(X, y)

    def check(m: Any, p: Any) -> Verdict:
        values = m.log_marginal_likelihood_, p.log_marginal_likelihood_value_
        return Quality("log marginal likelihood", *values, slack=1e-4 * n + 1e-3)

    return Problem(
        f"n={n:,}, d={s.d}, {'one bandwidth a column' if widths > 1 else 'one bandwidth'}",
        lambda: GaussianProcessRegressor(kernel, prior_mean=0.0, random_state=0).fit(X, y),
        peer,
        check,
    )


# maps
def fourier(draw: Draw) -> Problem:
    s, D = Shape.of(draw, sparse=False), 2 * draw.size(32, 4096)
    draw.afford(s.values(D), 24.0 * s.n * D)
    r = s.rows()
    probe = r.X[:300]
    K = r.kernel(probe)

    def error(phi: Any) -> float:
        F = phi.transform(probe)
        return float(np.mean(np.square(F @ F.T - K)))

    def ours() -> Any:
        phi = RandomFourier(r.kernel, D, random_state=0)
        return phi, phi.fit_transform(r.X)

    def peer() -> Any:
        phi = RBFSampler(gamma=r.gamma, n_components=D, random_state=0)
        return phi, phi.fit_transform(r.X)

    def check(m: Any, p: Any) -> Verdict:
        values = error(m[0]), error(p[0])
        return Quality("kernel error", *values, 0.05 * values[1] + 1e-12, higher_is_better=False)

    return Problem(f"{s.told} -> {D:,}", ours, peer, check)


def nystrom(draw: Draw) -> Problem:
    s = Shape.of(draw, sparse=False)
    n, m = s.n, min(draw.size(20, 1000), s.n // 2)
    draw.afford(s.values(m) + (2 * n * m**2 + 20 * m**3) / FLOPS, 24.0 * n * m)
    r = s.rows()

    def ours() -> Any:
        return Nystrom(r.kernel, m, random_state=0).fit_transform(r.X)

    def peer() -> Any:
        return Nystroem(gamma=r.gamma, n_components=m, random_state=0).fit_transform(r.X)

    def check(F: Any, G: Any) -> Verdict:
        left = [float(np.mean(np.abs(1 - np.sum(np.square(f), axis=1)))) for f in (F, G)]
        return Quality("what is left of k(x, x)", *left, 0.02 * left[1] + 1e-4, False)

    return Problem(f"{s.told}, {m} landmarks", ours, peer, check)


# unsupervised
def pca(draw: Draw) -> Problem:
    s, k = Shape.of(draw, 5000, sparse=False), draw.size(2, 30)
    draw.afford(s.values() + s.n**2 * (VALUE + 60 * k / FLOPS), 32.0 * s.n**2)
    r = s.rows()

    def ours(via: str = "auto") -> Any:
        return KernelPCA(k, r.kernel, via, random_state=0).fit(r.X)

    def check(m: Any, p: Any) -> Verdict:
        off = float(np.abs(m.eigenvalues_ - p.eigenvalues_).max() / p.eigenvalues_[0])
        return None if off <= rounding(r.X, 1e-6, 1e-4) else f"eigenvalues differ by {off:.1e}"

    return Problem(
        f"{s.told}, {k} components",
        ours,
        lambda: TheirPCA(k, kernel="rbf", gamma=r.gamma, random_state=0).fit(r.X),
        check,
        {"exact": lambda: ours("exact"), "iterative": lambda: ours("iterative")},
    )


def kmeans(draw: Draw) -> Problem:
    s, k = Shape.of(draw, sparse=False), draw.size(2, 50)
    draw.afford(120 * s.n * k * s.d / FLOPS, 24.0 * s.n * s.d)
    at = draw.normal(k, s.d) * draw.rng.uniform(0.5, 3)
    X = (s.rows().X + at[draw.rng.integers(0, k, s.n)]).astype(s.dtype)

    def check(m: Any, p: Any) -> Verdict:
        return Quality("inertia", m.inertia_, p.inertia_, 0.02 * p.inertia_, False)

    return Problem(
        f"{s.told}, {k} clusters",
        lambda: KernelKMeans(k, Linear(), n_init=3, random_state=0).fit(X),
        lambda: KMeans(k, n_init=3, random_state=0).fit(X),
        check,
    )


OPERATIONS: dict[str, Callable[[Draw], Problem]] = {
    "Gram": gram,
    "K @ v": product,
    "exact ridge": ridge,
    "SVC": svc,
    "SVR": svr,
    "GP learnt": process,
    "Fourier": fourier,
    "Nystrom": nystrom,
    "KernelPCA": pca,
    "k-means": kmeans,
}
