"""Random Fourier features: a stationary kernel as a mean of cosines, k(x, z) = E cos(w'(x - z))."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from mercer.bounds import fourier_features
from mercer.costs.choice import choose
from mercer.costs.frequencies import PRODUCTS, turned
from mercer.inputs import Array, Matrix
from mercer.invariants import Is, Text
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import kernel_of, resolve
from mercer.kernels.named import Gamma
from mercer.lifts.base import Lift, by_rows, stream_of
from mercer.lifts.spectral import SpectralMeasure, back, spectrum
from mercer.ops.fastfood import Fastfood
from mercer.ops.frequencies import REFLECTIONS, RULES
from mercer.ops.measures import Radial
from mercer.ops.philox import Stream, uniforms
from mercer.ops.tiles import cuts
from mercer.ops.trig import sincos
from mercer.pairs.linear import through
from mercer.store import register

Angles = Callable[[Matrix], Array]
MAX_PROMISED_FEATURES = 20_000  # features beyond which a bound is not followed
KINDS = ("auto", *RULES, "structured")
KEPT_BYTES = (
    32 << 20
)  # frequencies are kept while they are smaller than this, else drawn again in pieces


@register("lifts.RandomFourier")
class RandomFourier(Lift):
    """phi(x) = sqrt(a/m) (cos w_1'x, ..., cos w_m'x, sin w_1'x, ..., sin w_m'x).

    w is from the kernel's spectral measure, a is the kernel's value at distance zero. With
    form="shift", sqrt(2a/D) cos(w_j'x + b_j), b_j uniform on [0, 2 pi).

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A stationary kernel or a product of such; None is a Gaussian scaled to the data.
    n_features : int, default=256
        The number D of features, even with form="pairs".
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    form : {"pairs", "shift"}, default="pairs"
        "pairs" has an exact diagonal and less error.
    frequencies : str, default="auto"
        "auto", "iid", "orthogonal", "qmc", "design" or "structured". All are unbiased; the
        promises of `mercer.bounds` hold for "iid", "auto" has the least error in practice, and
        "structured" (Fastfood: one radial kernel) takes O(D log d) time a row and O(D) memory,
        for many columns.
    eps : float, default=None
        Instead of n_features, as many as `mercer.bounds.fourier_features` asks for so that with
        probability 1 - delta no pair of the rows of `fit` is off by more than eps; give
        frequencies="iid", for which that is a promise.
    delta : float, default=0.01
        See `eps`.
    random_state : int, RandomState, Generator or None, default=None
        The map is its seed: frequencies are drawn from it by counter, any of them alone
        (`draw`).

    References
    ----------
    Rahimi and Recht, Random features for large-scale kernel machines (2007).

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> F = RandomFourier(Gaussian(2.0), n_features=1024, random_state=0).fit_transform(X)
    >>> bool(np.abs(F @ F.T - Gaussian(2.0)(X)).max() < 0.05)
    True
    """

    sparse: ClassVar[bool] = True
    gamma: Gamma = None  # as in files of before there was one

    must = dict(
        spectrum_=Is("SpectralMeasure"),
        stream_=Is("Stream"),
        form=Text("pairs", "shift"),
        frequencies=Text(*KINDS),
    )

    def _laws(self) -> str | None:
        last = max((c for a in self.spectrum_.atoms for c in a.columns or ()), default=0)
        if last >= self.n_features_in_:
            return f"draws frequencies of column {last} of {self.n_features_in_}"
        try:
            for atom in self.spectrum_.atoms:
                atom.seen(self.n_features_in_)
        except ValueError as e:
            return f"has a spectrum of other rows: {e}"
        return None

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        n_features: int = 256,
        *,
        gamma: Gamma = None,
        form: str = "pairs",
        frequencies: str = "auto",
        eps: float | None = None,
        delta: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_features = n_features
        self.form = form
        self.frequencies = frequencies
        self.eps = eps
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Settle the kernel, and draw its frequencies."""
        X = self._check(X, reset=True)
        self._learn(X)
        next(self._pieces(X[:1]))  # refuses what cannot be drawn, such as Sinc in four columns
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """`fit`, and the features of the same rows, to rounding: of few wide ones without forming
        the frequencies."""
        X = self._check(X, reset=True)
        self._learn(X)
        return self._map(X, self._formed(X))

    def _formed(self, X: Matrix) -> bool:
        """Whether the frequencies are formed to map these rows once."""
        n, m, atoms = X.shape[0], self.n_frequencies_, self.spectrum_.atoms
        ways = turned(n, self.n_features_in_, m)
        radial = all(isinstance(a.measure, Radial) for a in atoms)
        if (
            self.frequencies not in ("auto", "orthogonal", "design")
            or not radial
            or sp.issparse(X)
            or 8 * n * m > KEPT_BYTES
        ):
            del ways[PRODUCTS]
        return choose("frequencies", ways) != PRODUCTS

    def _learn(self, X: Matrix) -> None:
        _check_settings(self.n_features, self.form, self.frequencies)
        self.kernel_ = positioned(resolve(kernel_of(self), X), self._table(X))
        self.spectrum_ = _spectrum_of(self.kernel_)
        self.stream_: Stream = stream_of(self.random_state)
        self.n_features_out_ = (
            int(self.n_features) if self.eps is None else self._promised(X.shape[0])
        )
        self._kept: dict[str, Array] | None = None

    def _promised(self, n: int) -> int:
        assert self.eps is not None
        size = fourier_features(
            n, self.eps / (self.spectrum_.amplitude or 1.0), self.delta, self.form
        )
        if size > MAX_PROMISED_FEATURES:
            raise ValueError(
                f"eps={self.eps:g} asks for {size:,} features by the bound; use k.lift(eps=...), which probes how many do."
            )
        return size

    @property
    def n_frequencies_(self) -> int:
        return self.n_features_out_ // 2 if self.form == "pairs" else self.n_features_out_

    def draw(self, start: int = 0, stop: int | None = None) -> Array:
        """Frequencies start to stop, (stop - start, d); any of them alone are the same bits."""
        if self.frequencies == "structured":
            fast, bandwidth, S = self.structured
            return back(fast.matrix()[slice(start, stop)] / bandwidth, S)
        return self._drawn(start, stop, np.float64)

    def _drawn(self, start: int, stop: int | None, dtype: Any) -> Array:
        size = self.n_features_in_, self.n_frequencies_
        kind = self.frequencies
        return self.spectrum_.frequencies(*size, self.stream_, kind, start, stop, dtype)

    @property
    def structured(self) -> tuple[Fastfood, Array, Any]:
        """Structured frequencies, what to divide columns by, and what they are first mapped by."""
        return self.spectrum_.structured(self.n_features_in_, self.n_frequencies_, self.stream_)

    def _pieces(self, X: Matrix) -> Iterator[tuple[slice, Angles]]:
        """Which frequencies, and the function that gives rows' angles w'x with them; in as few
        pieces as memory allows.
        """
        d, m = self.n_features_in_, self.n_frequencies_
        if self.frequencies == "structured":
            yield slice(0, m), _fast(*self.structured)
        elif d * m * 8 > KEPT_BYTES:
            step = max(64, KEPT_BYTES // (8 * d))
            yield from ((s, _times(self._drawn(s.start, s.stop, X.dtype))) for s in cuts(m, step))
        else:
            kept = self._kept = self._kept or {}
            if X.dtype.char not in kept:
                kept[X.dtype.char] = self._drawn(0, m, X.dtype)
            yield slice(0, m), _times(kept[X.dtype.char])

    def _map(self, X: Matrix, formed: bool = True) -> Array:
        m, amplitude = self.n_frequencies_, self.spectrum_.amplitude
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        pieces = self._pieces(X)
        if not formed:
            X = self.spectrum_.angles(X, m, self.stream_, self.frequencies)
            pieces = iter([(slice(0, m), np.asarray)])
        for piece, angles in pieces:
            if self.form == "pairs":
                self._pairs(
                    X,
                    angles,
                    float(np.sqrt(amplitude / m)),
                    F[:, piece],
                    F[:, m + piece.start : m + piece.stop],
                )
            else:
                shift = (
                    2
                    * np.pi
                    * uniforms(self.stream_.child(-1 % 2**32), piece.start, piece.stop, 1)[:, 0]
                )
                self._shifted(
                    X, angles, shift.astype(X.dtype), float(np.sqrt(2 * amplitude / m)), F[:, piece]
                )
        return F

    def _pairs(self, X: Matrix, angles: Angles, scale: float, cos: Array, sin: Array) -> None:
        by_rows(X, 2 * cos.shape[1], lambda x, rows: sincos(angles(x), scale, cos[rows], sin[rows]))

    def _shifted(self, X: Matrix, angles: Angles, shift: Array, scale: float, out: Array) -> None:
        def fill(x: Matrix, rows: slice) -> None:
            np.cos(angles(x) + shift, out=out[rows])
            out[rows] *= out.dtype.type(scale)

        by_rows(X, out.shape[1], fill)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kept": None}  # the seed is enough


def _times(W: Array) -> Angles:
    return lambda x: np.asarray(x @ W.T)


def _fast(frequencies: Fastfood, bandwidth: Array, S: Any) -> Angles:
    def angles(x: Matrix) -> Array:
        x = x if S is None else through(x, S)
        rows = (x.toarray() if sp.issparse(x) else x) / bandwidth.astype(x.dtype)
        out = np.empty((len(rows), frequencies.m), rows.dtype)
        frequencies.project(rows, out)
        return out

    return angles


def _spectrum_of(k: Kernel) -> SpectralMeasure:
    s = spectrum(k)
    if s is None:
        raise ValueError(
            f"{k!r} is not a stationary kernel or a product of such, so it has no Fourier features; use k.lift or Nystrom."
        )
    return replace(s, rotations=REFLECTIONS)


def _check_settings(n_features: Any, form: str, kind: str) -> None:
    if form not in ("pairs", "shift"):
        raise ValueError(f"form must be 'pairs' or 'shift', got {form!r}.")
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(f"n_features must be an integer >= 1, got {n_features!r}.")
    if form == "pairs" and n_features % 2:
        raise ValueError(
            f"n_features must be even with form='pairs' (a cosine and a sine each), got {n_features}; use {n_features + 1}."
        )
    if not (isinstance(kind, str) and kind in KINDS):
        raise ValueError(f"frequencies must be one of {', '.join(KINDS)}, got {kind!r}.")
