"""Random maps of products and of inner products: sketched tensor products, positive features, and
arc-cosine units."""

from __future__ import annotations

import math
from functools import reduce
from operator import mul
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Floats, Is
from mercer.kernels import ArcCosine, Exp, Kernel, Linear, Polynomial, Scale
from mercer.kernels.base import positive, whole
from mercer.lifts.algebra import Composite, independent
from mercer.lifts.base import Lift, Seed, by_rows, stream_of
from mercer.lifts.maclaurin import exponential
from mercer.ops.frequencies import frequencies
from mercer.ops.measures import Normal
from mercer.ops.philox import Stream
from mercer.ops.sketches import CountSketch, convolve, spectrum
from mercer.ops.tiles import cuts
from mercer.pairs.side import square_norms
from mercer.store import register

# the branch of the seed that hashes come from: the parts of a product may have the same seed
OWN = 0x5E7C
PART_BYTES = 64 << 20  # of the parts' features at a time


def _size(n_features: object) -> int:
    return whole(
        int(n_features) if isinstance(n_features, np.integer) else n_features, "n_features", least=1
    )


def _sketches(random_state: Seed, widths: list[int], D: int) -> list[CountSketch]:
    """Independent hashes for every factor."""
    stream: Stream = stream_of(random_state).child(OWN)
    return [CountSketch.draw(stream.child(i), p, D) for i, p in enumerate(widths)]


@register("lifts.TensorSketch")
class TensorSketch(Lift):
    """irfft(prod_i rfft(S_i (x, sqrt(bias)))): a sketch of all monomials of degree p.

    Unbiased for (bias + x'z)^p. S_1, ..., S_p are independent count sketches. The variance is
    at most (3^p - 1) / 2 k(x, x) k(z, z) / n_features.

    Parameters
    ----------
    degree : int, default=2
        The p.
    n_features : int, default=256
        The number of features.
    bias : float, default=1.0
        That of the kernel, >= 0.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sketches.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps (2013).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 4)) / 2
    >>> F = TensorSketch(degree=2, n_features=4096, random_state=0).fit_transform(X)
    >>> float(np.abs(F @ F.T - Polynomial(2)(X)).max()) < 1
    True
    """

    sparse: ClassVar[bool] = True

    must = dict(sketches_=Each(Is("CountSketch", D="n_features_out_")))

    def __init__(
        self, degree: int = 2, n_features: int = 256, bias: float = 1.0, random_state: Seed = None
    ) -> None:
        self.degree = degree
        self.n_features = n_features
        self.bias = bias
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        self.n_features_out_ = _size(self.n_features)
        self.kernel_ = Polynomial(whole(self.degree, "degree", least=1), self.bias)
        width = X.shape[1] + (self.kernel_.bias > 0)
        self.sketches_ = _sketches(
            self.random_state, [width] * self.kernel_.degree, self.n_features_out_
        )

    def _map(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        root = math.sqrt(self.kernel_.bias)
        spectra = [spectrum(S, X.dtype, sparse=sp.issparse(X), offset=root) for S in self.sketches_]
        by_rows(
            X,
            self.n_features_out_,
            lambda part, rows: convolve([part] * len(spectra), spectra, F[rows]),
        )
        return F


@register("lifts.SketchedTensor")
class SketchedTensor(Composite):
    """A sketch of the tensor product of several maps: unbiased for the product of the kernels.

    The maps are drawn independently of each other: squaring one random map is biased.

    Parameters
    ----------
    lifts : list of Lift
        The maps.
    n_features : int, default=256
        The number of features.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sketches.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps (2013).

    Examples
    --------
    >>> from mercer.lifts import Monomials
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) / 2
    >>> phi = SketchedTensor([Monomials(1), Monomials(2)], 4096, random_state=0).fit(X)
    >>> float(np.abs(phi.transform(X) @ phi.transform(X).T - phi.kernel_(X)).max()) < 1
    True
    """

    must = dict(sketches_=Each(Is("CountSketch", D="n_features_out_")))

    def __init__(self, lifts: Any, n_features: int = 256, random_state: Seed = None) -> None:
        self.lifts = lifts
        self.n_features = n_features
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {
            **super().get_params(deep),
            "n_features": self.n_features,
            "random_state": self.random_state,
        }

    def set_params(self, **params: Any) -> Self:
        self.n_features = params.pop("n_features", self.n_features)
        self.random_state = params.pop("random_state", self.random_state)
        return super().set_params(**params) if params else self

    def _learn(self, X: Matrix) -> None:
        self.n_features_out_ = _size(self.n_features)
        self.lifts_ = [phi.fit(X) for phi in independent(self.lifts)]
        self.kernel_ = reduce(mul, (phi.kernel_ for phi in self.lifts_))
        self.sketches_ = _sketches(
            self.random_state, [phi.n_features_out_ for phi in self.lifts_], self.n_features_out_
        )

    def _map(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        step = max(
            256, PART_BYTES // (X.dtype.itemsize * sum(phi.n_features_out_ for phi in self.lifts_))
        )
        for rows in cuts(len(F), step):
            self._fill([phi.transform(X[rows]) for phi in self.lifts_], F[rows])
        return F

    def _fill(self, parts: list[Matrix], out: Array) -> None:
        spectra = [
            spectrum(S, out.dtype, sparse=sp.issparse(P))
            for S, P in zip(self.sketches_, parts, strict=True)
        ]
        by_rows(
            out, out.shape[1], lambda part, rows: convolve([P[rows] for P in parts], spectra, part)
        )


@register("lifts.PositiveFeatures")
class PositiveFeatures(Lift):
    """exp(w_j'y - |y|^2 / 2) f(x) / sqrt(D), w_j ~ N(0, I): positive, unbiased for exp(c x'z).

    Rows are centred at the mean mu of those of `fit`, y = sqrt(c) (x - mu), because the
    relative variance of a term is exp(|y + y'|^2) - 1; exp(c x'z) = f(x) exp(y'y') f(z) with
    f(x) = exp(c mu'x - c |mu|^2 / 2), exactly. Directions come in pairs w, -w.

    Parameters
    ----------
    kernel : Kernel, default=None
        exp(c x'z), c > 0; None is exp(x'z / v), v the mean of |x|^2.
    n_features : int, default=256
        The number D of features.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the directions.

    References
    ----------
    Choromanski et al., Rethinking attention with Performers (2021).

    Examples
    --------
    >>> from mercer.kernels import exp
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) / 2 + 1
    >>> F = PositiveFeatures(exp(Linear()), n_features=4096, random_state=0).fit_transform(X)
    >>> bool((F > 0).all() and np.abs(F @ F.T / exp(Linear())(X) - 1).mean() < 0.1)
    True
    """

    sparse: ClassVar[bool] = True

    must = dict(directions_=Floats(None, "n_features_in_"), mean_=Floats("n_features_in_"))

    def __init__(
        self, kernel: Kernel | None = None, n_features: int = 256, random_state: Seed = None
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = exponential(X) if self.kernel is None else self.kernel
        self.n_features_out_ = _size(self.n_features)
        self.mean_ = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        W = _normals(self.random_state, X.shape[1], -(-self.n_features_out_ // 2))
        self.directions_ = np.concatenate([W, -W])[: self.n_features_out_] * math.sqrt(
            _scale_of(self.kernel_)
        )

    def _map(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        W, c, mu = self.directions_, _scale_of(self.kernel_), self.mean_
        root, shift = W.T.astype(X.dtype), (W @ mu + math.log(len(W)) / 2).astype(X.dtype)

        def fill(part: Matrix, rows: slice) -> None:
            mixed = np.asarray(part @ mu, dtype=np.float64)
            own = c * (2 * mixed - square_norms(part) / 2 - mu @ mu)  # log f(x) - |y|^2 / 2
            G = np.asarray(part @ root) - shift
            G += own[:, None].astype(X.dtype)
            np.exp(G, out=F[rows])

        by_rows(X, len(W), fill)
        return F


def _scale_of(kernel: object) -> float:
    """c of exp(c x'z)."""
    match kernel:
        case Exp(kernel=Linear(metric=None)):
            return 1.0
        case Exp(kernel=Scale(factor=c, kernel=Linear(metric=None))):
            return positive(c, "the scale inside exp")
    raise ValueError(
        f"kernel must be exp(Linear()) or exp(c * Linear()), got {kernel!r}; use k.lift or Maclaurin for others."
    )


def _normals(random_state: Seed, d: int, m: int) -> Array:
    """m rows of N(0, I), orthogonal to each other in blocks."""
    return frequencies(Normal(), d, m, stream_of(random_state), "orthogonal")


@register("lifts.ArcCosineFeatures")
class ArcCosineFeatures(Lift):
    """sqrt(2/D) max(w_j'x, 0)^order with w_j ~ N(0, I): random units.

    Their inner product is the arc-cosine kernel on average.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        The power of the units: steps, ramps or squared ramps.
    n_features : int, default=256
        The number D of features.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the directions.

    References
    ----------
    Cho and Saul, Kernel methods for deep learning (2009).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> F = ArcCosineFeatures(order=1, n_features=4096, random_state=0).fit_transform(X)
    >>> bool(np.abs(F @ F.T - ArcCosine(1)(X)).mean() < 0.1)
    True
    """

    sparse: ClassVar[bool] = True

    must = dict(directions_=Floats(None, "n_features_in_"))

    def __init__(self, order: int = 1, n_features: int = 256, random_state: Seed = None) -> None:
        self.order = order
        self.n_features = n_features
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = ArcCosine(self.order)
        self.n_features_out_ = _size(self.n_features)
        W = _normals(self.random_state, X.shape[1], -(-self.n_features_out_ // 2))
        self.directions_ = np.concatenate([W, -W])[: self.n_features_out_]

    def _map(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        W, scale = (
            self.directions_.T.astype(X.dtype),
            X.dtype.type(math.sqrt(2 / self.n_features_out_)),
        )

        def fill(part: Matrix, rows: slice) -> None:
            P = np.asarray(part @ W)
            F[rows] = (
                np.heaviside(P, X.dtype.type(0.5))
                if self.order == 0
                else np.maximum(P, 0) ** self.order
            )
            F[rows] *= scale

        by_rows(X, len(F.T), fill)
        return F
