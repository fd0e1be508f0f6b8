"""Random Fourier features: a stationary kernel as a mean of cosines, k(x, z) = E cos(w'(x - z))."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from mercer.inputs import Array, Matrix
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import resolve
from mercer.lifts.base import Lift, by_rows, stream_of
from mercer.lifts.spectral import Spectrum, spectrum
from mercer.ops.frequencies import RULES
from mercer.ops.philox import Stream, uniforms
from mercer.ops.tiles import cuts
from mercer.ops.trig import sincos

KEPT_BYTES = 32 << 20  # frequencies are kept while they are smaller than this, else drawn again in pieces


class RandomFourier(Lift):
    r"""phi(x) = sqrt(a/m) (cos w_1'x, ..., cos w_m'x, sin w_1'x, ..., sin w_m'x), w from the kernel's spectral measure.

    With form="shift", sqrt(2a/D) cos(w_j'x + b_j), b_j uniform on [0, 2 pi). a is the kernel's value at distance zero.

    Parameters
    ----------
    kernel : a stationary kernel or a product of such; None is a Gaussian scaled to the data.
    n_features : the number D of features, even with form="pairs".
    form : "pairs" (exact diagonal, less error) or "shift".
    frequencies : "auto", "iid", "orthogonal", "qmc", "design" or "structured". All are unbiased; the promises of
        `mercer.bounds` hold for "iid", and "auto" has the least error in practice.
    random_state : the map is its seed: frequencies are drawn from it by counter, any of them alone.

    References: Rahimi and Recht, Random features for large-scale kernel machines (2007).

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> F = RandomFourier(Gaussian(2.0), n_features=1024, random_state=0).fit_transform(X)
    >>> bool(np.abs(F @ F.T - Gaussian(2.0)(X)).max() < 0.05)
    True
    """

    sparse: ClassVar[bool] = True

    def __init__(
        self, kernel: Kernel | str | None = None, n_features: int = 256, *, form: str = "pairs", frequencies: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.form = form
        self.frequencies = frequencies
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        _check_settings(self.n_features, self.form, self.frequencies)
        self.kernel_ = positioned(resolve(self.kernel, X), self._table(X))
        self.spectrum_ = _spectrum_of(self.kernel_)
        self.stream_: Stream = stream_of(self.random_state)
        self.n_features_out_ = int(self.n_features)
        self._kept: Array | None = None
        next(self._pieces(np.dtype(np.float64)))  # refuses what cannot be drawn, such as Sinc in four columns

    @property
    def n_frequencies_(self) -> int:
        return self.n_features_out_ // 2 if self.form == "pairs" else self.n_features_out_

    def draw(self, start: int = 0, stop: int | None = None) -> Array:
        """Frequencies start to stop, (stop - start, d); any of them alone are the same bits."""
        return self.spectrum_.frequencies(self.n_features_in_, self.n_frequencies_, self.stream_, self.frequencies, start, stop)

    def _pieces(self, dtype: np.dtype[Any]) -> Iterator[tuple[slice, Array]]:
        """All frequencies, in as few pieces as memory allows."""
        d, m = self.n_features_in_, self.n_frequencies_
        if d * m * 8 > KEPT_BYTES:
            yield from ((s, self.draw(s.start, s.stop).astype(dtype)) for s in cuts(m, max(64, KEPT_BYTES // (8 * d))))
            return
        kept = self.draw() if self._kept is None else self._kept
        self._kept = kept
        yield slice(0, m), kept.astype(dtype, copy=False)

    def _map(self, X: Matrix) -> Array:
        m, amplitude = self.n_frequencies_, self.spectrum_.amplitude
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        for piece, W in self._pieces(X.dtype):
            if self.form == "pairs":
                self._pairs(X, W, float(np.sqrt(amplitude / m)), F[:, piece], F[:, m + piece.start : m + piece.stop])
            else:
                shift = 2 * np.pi * uniforms(self.stream_.child(-1 % 2**32), piece.start, piece.stop, 1)[:, 0]
                self._shifted(X, W, shift.astype(X.dtype), float(np.sqrt(2 * amplitude / m)), F[:, piece])
        return F

    def _pairs(self, X: Matrix, W: Array, scale: float, cos: Array, sin: Array) -> None:
        def fill(x: Matrix, rows: slice) -> None:
            sincos(_dot(x, W), scale, cos[rows], sin[rows])

        by_rows(X, 2 * len(W), fill)

    def _shifted(self, X: Matrix, W: Array, shift: Array, scale: float, out: Array) -> None:
        def fill(x: Matrix, rows: slice) -> None:
            P = _dot(x, W)
            P += shift
            np.cos(P, out=out[rows])
            out[rows] *= out.dtype.type(scale)

        by_rows(X, len(W), fill)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kept": None}  # the seed is enough


def _dot(x: Matrix, W: Array) -> Array:
    return np.asarray(x @ W.T)


def _spectrum_of(k: Kernel) -> Spectrum:
    s = spectrum(k)
    if s is None:
        raise ValueError(f"{k!r} is not a stationary kernel or a product of such, so it has no Fourier features; use k.lift or Nystrom.")
    return s


def _check_settings(n_features: Any, form: str, kind: str) -> None:
    if form not in ("pairs", "shift"):
        raise ValueError(f"form must be 'pairs' or 'shift', got {form!r}.")
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(f"n_features must be an integer >= 1, got {n_features!r}.")
    if form == "pairs" and n_features % 2:
        raise ValueError(f"n_features must be even with form='pairs' (a cosine and a sine each), got {n_features}; use {n_features + 1}.")
    if kind not in ("auto", *RULES):
        raise ValueError(f"frequencies must be one of auto, {', '.join(RULES)}, got {kind!r}.")
