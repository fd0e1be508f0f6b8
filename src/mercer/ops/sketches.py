"""Count sketches and their convolutions: in Fourier space the sketch of a tensor product is the
product of the sketches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Floats, Ints, Whole, check
from mercer.ops.jit import njit
from mercer.ops.philox import Stream, integers, signs
from mercer.store import register

Spectrum = Callable[[Matrix], Array]
# bytes of a row, per binary digit of D, up to which a matrix product is quicker than a Fourier
# transform
DENSE_ROW_BYTES = 48.0


@register("ops.CountSketch")
@dataclass(frozen=True, eq=False)
class CountSketch:
    """The linear map e_j -> signs_j e_(bins_j) of R^p into R^D: E (Sx)'(Sz) = x'z (Charikar, Chen
    and Farach-Colton, 2002)."""

    bins: Array
    signs: Array
    D: int

    must = dict(bins=Ints("p", below="D"), signs=Floats("p"), D=Whole(1))

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def draw(cls, stream: Stream, p: int, D: int) -> CountSketch:
        return cls(
            integers(stream.child(0), 0, p, 1, D)[:, 0], signs(stream.child(1), 0, p, 1)[:, 0], D
        )

    def matrix(self) -> Matrix:
        """S' (p, D), one entry a row."""
        return sp.csr_array(
            (self.signs, self.bins, np.arange(len(self.bins) + 1)), shape=(len(self.bins), self.D)
        )

    def fourier(self, rows: slice = slice(None)) -> Array:
        """The real Fourier transform of S' by rows, (p, D // 2 + 1) complex: signs_j exp(-2 pi i
        bins_j f / D)."""
        turns = (
            self.bins[rows, None] * np.arange(self.D // 2 + 1) % self.D
        )  # whole turns left out, exactly
        return self.signs[rows, None] * np.exp(-2j * math.pi / self.D * turns)


def reference(parts: Sequence[Array], sketches: Sequence[CountSketch]) -> Array:
    """The sketched tensor product, plainly: bins add up modulo D, signs multiply, over all products
    of one entry of each part."""
    out = np.zeros((len(parts[0]), sketches[0].D))
    for index in np.ndindex(*(P.shape[1] for P in parts)):
        at = sum(int(S.bins[j]) for S, j in zip(sketches, index, strict=True)) % out.shape[1]
        sign = math.prod(float(S.signs[j]) for S, j in zip(sketches, index, strict=True))
        out[:, at] += sign * np.prod([P[:, j] for P, j in zip(parts, index, strict=True)], axis=0)
    return out


def spectrum(
    S: CountSketch, dtype: np.dtype[np.generic], *, sparse: bool = False, offset: float = 0.0
) -> Spectrum:
    """The function x -> Fourier transform of S (x, offset): by a matrix product for few columns,
    else of the sketch itself."""
    p = len(S.bins) - (offset > 0)
    constant = (offset * S.fourier(slice(p, None)).sum(0)).astype(
        np.result_type(dtype, np.complex64)
    )
    few = CountSketch(S.bins[:p], S.signs[:p], S.D)
    if sparse:
        return _plus(constant, _sparse(few.matrix().astype(dtype)))
    cheap = p * np.dtype(dtype).itemsize <= DENSE_ROW_BYTES * math.log2(max(S.D, 2))
    return _plus(constant, _by_product(few, dtype) if cheap else _by_transform(few, dtype))


def _plus(constant: Array, f: Spectrum) -> Spectrum:
    def plus(X: Matrix) -> Array:
        out = f(X)
        out += constant
        return out

    return plus if constant.any() else f


def _by_product(S: CountSketch, dtype: np.dtype[np.generic]) -> Spectrum:
    T = S.fourier()
    pairs = (
        np.stack([T.real, T.imag], axis=-1).reshape(len(T), -1).astype(dtype)
    )  # real and imaginary parts in turn
    return lambda X: (X @ pairs).view(np.result_type(dtype, np.complex64))


def _by_transform(S: CountSketch, dtype: np.dtype[np.generic]) -> Spectrum:
    values = S.signs.astype(dtype)

    def transform(X: Array) -> Array:
        if X.shape[1] != len(values):
            raise ValueError(
                f"the rows have {X.shape[1]} columns, and the sketch {len(values)}; give the columns it was drawn for."
            )
        out = np.zeros((len(X), S.D), dtype)
        scatter(X, S.bins, values, out)
        return np.asarray(scipy.fft.rfft(out, overwrite_x=True))

    return transform


def _sparse(matrix: Matrix) -> Spectrum:
    return lambda X: np.asarray(scipy.fft.rfft((X @ matrix).toarray(), overwrite_x=True))


@njit
def scatter(X, bins, values, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, bins[j]] += values[j] * X[i, j]


def convolve(parts: Sequence[Matrix], spectra: Sequence[Spectrum], out: Array) -> None:
    """out = the circular convolution of the parts' sketches, (rows, D)."""
    total = spectra[0](parts[0])
    for X, f in zip(parts[1:], spectra[1:], strict=True):
        total *= f(X)
    out[:] = scipy.fft.irfft(total, out.shape[1], overwrite_x=True)
