"""Certificates: what a drawn map's error is, stated with a confidence, from exact kernel values on
fresh pairs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, solve_triangular
from scipy.stats import binom
from sklearn.base import clone

from mercer.inputs import Array, Table, table
from mercer.kernels.defaults import is_precomputed
from mercer.lifts.algebra import reseeded
from mercer.lifts.base import Lift, Seed
from mercer.store import register

SAMPLED_PAIRS, SAMPLED_ROWS, REDRAWN_MAPS = 20_000, 400, 16


@register("lifts.Certificate")
@dataclass(frozen=True)
class Certificate:
    """What is known of the error phi(x)'phi(z) - k(x, z) over the pairs of different rows of X.

    It speaks of pairs of X, not of points to come.

    Parameters
    ----------
    bound : float
        With confidence `confidence`, a fraction `quantile` of all pairs has an error of at most
        this: an order statistic of the errors of `n_pairs` pairs drawn uniformly, independently
        of the map, by the binomial law, whatever the law of the errors.
    quantile : float
        The fraction of pairs.
    confidence : float
        The confidence.
    n_pairs : int
        The pairs drawn.
    n_features : int
        The features of the map.
    max : float
        The largest error of the pairs drawn.
    rms : float
        Their root mean square.
    bias : float
        The mean error over 16 maps drawn anew, on rows that they were not fitted on, in
        standard errors: beyond 4 it is hardly chance (one in a thousand).
    distance_bound : float
        As `bound`, of the relative error of the kernel distance.
    spectral : float
        The least e with (1 - e)(K + a I) <= F F' + a I <= (1 + e)(K + a I) on a sample of rows,
        a = `alpha`: what matters for learning.
    alpha : float
        The a.
    effective_dimension : float
        tr K (K + a I)^-1 there.

    Examples
    --------
    >>> from mercer.lifts import Parabolic
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> found = Parabolic().fit(X).certify(X, random_state=0)
    >>> found.confidence, found.bound < 1e-9
    (0.99, True)
    """

    bound: float
    quantile: float
    confidence: float
    n_pairs: int
    n_features: int
    max: float
    rms: float
    bias: float
    distance_bound: float
    spectral: float
    alpha: float
    effective_dimension: float

    def __str__(self) -> str:
        return (
            f"With {self.confidence:.4g} confidence the kernel error is at most {self.bound:.3g} for {self.quantile:.4g} of the pairs "
            f"of rows (root mean square {self.rms:.3g}, largest of {self.n_pairs:,} pairs {self.max:.3g}; {self.n_features:,} features).\n"
            f"For as many the kernel distance is right to {self.distance_bound:.2%}. Spectral error against K + {self.alpha:.3g} I: "
            f"{self.spectral:.3g}; effective dimension {self.effective_dimension:.3g}; bias {self.bias:.1f} standard errors."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `Certificate(**d)` makes it again."""
        return asdict(self)

    def plot(self, ax: Any = None) -> Any:
        """Root mean square, bound and largest error as bars on a Matplotlib axis."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as e:
                raise ImportError(
                    "Certificate.plot draws with Matplotlib, which is not installed; pip install matplotlib."
                ) from e
            ax = pyplot.gca()
        ax.bar(["rms", f"{self.quantile:.1%} bound", "max"], [self.rms, self.bound, self.max])
        ax.set_ylabel("kernel error")
        ax.set_title(f"{self.n_pairs:,} pairs, {self.confidence:.0%} confidence")
        return ax


def certify(
    phi: Lift,
    X: Any,
    confidence: float = 0.99,
    quantile: float = 0.995,
    *,
    alpha: float | None = None,
    n_pairs: int = SAMPLED_PAIRS,
    random_state: Seed = None,
) -> Certificate:
    """Certify a fitted map on the rows X.

    The pairs are drawn afresh, so that nothing that chose the map has seen them.
    """
    rows, rng = table(X, "X", items=phi.kernel_.takes_items), np.random.default_rng(random_state)
    rank = order(n_pairs, confidence, quantile)
    error, relative = errors(phi, rows, *draw_pairs(len(rows), n_pairs, rng))
    sample = rows[np.sort(rng.choice(len(rows), min(SAMPLED_ROWS, len(rows)), replace=False))]
    spectral, a, dimension = _spectral(phi, sample, alpha)
    size = np.sort(np.abs(error))
    return Certificate(
        bound=float(size[rank]),
        quantile=quantile,
        confidence=confidence,
        n_pairs=n_pairs,
        n_features=phi.n_features_out_,
        max=float(size[-1]),
        rms=float(np.sqrt(np.mean(error**2))),
        bias=_bias(phi, sample, rng),
        distance_bound=_at(relative, rank),
        spectral=spectral,
        alpha=a,
        effective_dimension=dimension,
    )


def order(n: int, confidence: float, quantile: float) -> int:
    """Which of n sorted errors (from 0) is at least their law's quantile with that confidence.

    >>> order(919, 0.99, 0.995), order(20_000, 0.99, 0.995)
    (918, 19922)
    """
    if not (0 < confidence < 1 and 0 < quantile < 1):
        raise ValueError(
            f"confidence and quantile must be between 0 and 1, got {confidence!r} and {quantile!r}."
        )
    rank = int(binom.ppf(confidence, n, quantile))
    if rank >= n:
        raise ValueError(
            f"{n} pairs cannot show {confidence} confidence of the {quantile} quantile; give a larger n_pairs."
        )
    return rank


def draw_pairs(n: int, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of different rows, uniformly (a row with itself where there is only one)."""
    i = rng.integers(n, size=size)
    return i, (i + rng.integers(1, max(n, 2), size=size)) % n


def errors(phi: Lift, rows: Table, i: Array, j: Array, piece: int = 2048) -> tuple[Array, Array]:
    """The errors of the kernel, and the relative errors of the kernel distance, of the pairs
    (i, j).
    """
    parts = [
        _errors(phi, rows[i[s : s + piece]], rows[j[s : s + piece]])
        for s in range(0, len(i), piece)
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _errors(phi: Lift, x: Table, z: Table) -> tuple[Array, Array]:
    F, G, k = _features(phi, x), _features(phi, z), phi.kernel_
    x, z = x.astype(np.float64), z.astype(np.float64)  # exact values, also of float32 rows
    exact, size = k.paired(x, z), k.diag(x) + k.diag(z)
    square = size - 2 * exact
    distance, found = np.sqrt(np.maximum(square, 0)), np.linalg.norm(F - G, axis=1)
    relative = np.divide(
        np.abs(found - distance), distance, out=np.zeros_like(distance), where=square > 1e-12 * size
    )
    return np.einsum("ij,ij->i", F, G) - exact, relative


def _features(phi: Lift, rows: Table) -> Array:
    plain = type(phi)._map is Lift._map  # a map that reads its rows itself
    F = (
        phi.transform(rows.data) if plain else phi._map(rows.data)
    )  # rows are checked, and have no names
    return np.asarray(F.toarray() if sp.issparse(F) else F, dtype=np.float64)


def _at(values: Array, rank: int) -> float:
    return float(np.sort(values)[rank])


def _spectral(phi: Lift, sample: Table, alpha: float | None) -> tuple[float, float, float]:
    """The spectral error against K + alpha I, alpha (the mean of k(x, x) where not given), and
    the effective dimension.
    """
    K, F = phi.kernel_(sample.astype(np.float64)), _features(phi, sample)
    a = float(alpha if alpha is not None else np.trace(K) / len(K)) or 1.0
    L = cho_factor(K + a * np.eye(len(K)), lower=True)[0]
    half = solve_triangular(L, F @ F.T - K, lower=True)
    gap = np.linalg.eigvalsh(solve_triangular(L, half.T, lower=True))
    values = np.maximum(np.linalg.eigvalsh(K), 0)
    return float(np.abs(gap).max()), a, float((values / (values + a)).sum())


def _bias(phi: Lift, sample: Table, rng: np.random.Generator) -> float:
    """The mean error of maps drawn anew, over its standard error; 0 for maps that have no
    randomness.
    """
    half = (len(sample) + 1) // 2
    fitted, fresh = sample[:half], sample[half:] if len(sample) > 1 else sample
    K = phi.kernel_(fresh.astype(np.float64))
    redrawn = [
        reseeded(_same_kernel(phi), int(s)).fit(fitted.data)
        for s in rng.integers(1, 2**31, size=REDRAWN_MAPS)
    ]
    means = np.array([np.mean(F @ F.T - K) for F in (_features(psi, fresh) for psi in redrawn)])
    spread = means.std(ddof=1) / np.sqrt(REDRAWN_MAPS)
    return float(means.mean() / spread) if spread > 1e-9 * np.abs(K).max() else 0.0


def _same_kernel(phi: Lift) -> Any:
    """A clone for the same kernel, also where that was scaled to the data or names columns."""
    twin = clone(phi)
    return (
        twin.set_params(kernel=phi.kernel_)
        if "kernel" in twin.get_params(deep=False) and not is_precomputed(twin.kernel)
        else twin
    )
