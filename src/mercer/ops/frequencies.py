"""Frequencies of random Fourier features: rows w with E cos(w'(x - z)) = k(x, z), any rows of them drawn alone."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from mercer.inputs import Array
from mercer.ops import sobol
from mercer.ops.designs import WIDEST_SEARCH, design, haar
from mercer.ops.measures import Measure, Radial
from mercer.ops.philox import Stream, permutation, uniforms
from mercer.ops.threads import single_blas

BLOCK = 512  # most rows of one search: the energy it minimises has n^2 terms
WIDEST_TURN = 2048  # rows turned together beyond that cost more, d n^2, than they gain


def frequencies(
    measure: Measure, d: int, m: int, stream: Stream, kind: str = "auto", start: int = 0, stop: int | None = None
) -> Array:
    """Rows start to stop of the m frequencies (m, d) of a map, at unit bandwidth (divide column j by bandwidth_j).

    Every row follows the measure exactly, whatever the kind, and rows of different streams are independent: the
    estimate is unbiased, also from a part of the rows, and sums over two streams serve the product of two kernels.

    kind: "iid"; "orthogonal", Haar bases with stratified norms; "qmc", scrambled Sobol points through inverse
    distribution functions; "design", optimised directions, stratified norms, turned at random; "auto", see `choose`.

    >>> from mercer.ops.measures import Normal
    >>> W = frequencies(Normal(), 4, 100, Stream(7))
    >>> np.array_equal(frequencies(Normal(), 4, 100, Stream(7), start=30, stop=40), W[30:40])
    True
    """
    start, stop, _ = slice(start, stop).indices(m)
    kind = choose(measure, d, m) if kind == "auto" else kind
    if kind not in RULES:
        raise ValueError(f"kind must be one of auto, {', '.join(RULES)}, got {kind!r}.")
    return RULES[kind](measure, d, m, stream, start, max(start, stop))


def choose(measure: Measure, d: int, m: int) -> str:
    """The rule of "auto": what had the least mean squared error over a grid of d, m, bandwidths and measures.

    A radial measure can be turned, so that designs are unbiased: they were best at all d (for the Gaussian Sobol points
    overtake them at d <= 4 and m of several thousand, where both errors are tiny). One with independent coordinates
    cannot: Sobol points, unless d is so large, beyond m/2, that they are no better than iid ones.

    >>> from mercer.ops.columns import CauchyColumns
    >>> from mercer.ops.measures import Normal
    >>> choose(Normal(), 8, 512), choose(CauchyColumns(), 8, 512), choose(CauchyColumns(), 800, 512)
    ('design', 'qmc', 'iid')
    """
    if isinstance(measure, Radial):
        return "design"
    return "qmc" if d <= min(m / 2, sobol.WIDEST) else "iid"


def _iid(measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int) -> Array:
    return measure.rows(uniforms(stream, start, stop, measure.width(d)), d)


def _qmc(measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int) -> Array:
    return measure.rows(sobol.points(stream, start, stop, measure.width(d)), d)


def _orthogonal(measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int) -> Array:
    n = _radial(measure).ambient(d)
    return _turned(_radial(measure), d, range(0, m + n, n), np.eye, stream, start, stop)


def _design(measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int) -> Array:
    law = _radial(measure)
    n = law.ambient(d)
    return _turned(law, d, _edges(m, n), lambda rows: design(law, n, rows), stream, start, stop)


def _edges(m: int, d: int) -> list[int]:
    """Where the blocks of designs begin: nearly equal, of at most 512 rows where they are searched, else d to 2d.

    >>> _edges(1300, 8), _edges(1300, 600)
    ([0, 433, 866, 1300], [0, 650, 1300])
    """
    if d == 1:
        return [0, m]  # strata alone: the more the better
    blocks = max(1, m // min(d, WIDEST_TURN) if d > WIDEST_SEARCH else -(-m // BLOCK))
    return [m * b // blocks for b in range(blocks + 1)]


def _radial(measure: Measure) -> Radial:
    if isinstance(measure, Radial):
        return measure
    raise ValueError(f"{measure!r} changes under rotations and has no orthogonal frequencies; use kind='qmc' or 'iid'.")


def _turned(
    law: Radial, d: int, edges: Sequence[int], vectors: Callable[[int], Array], stream: Stream, start: int, stop: int
) -> Array:
    """Rows start to stop of the blocks between edges, one of n rows made of `vectors(n)`; only those met are drawn."""
    met = [(b, a, z) for b, (a, z) in enumerate(pairwise(edges)) if a < stop and start < z]
    with single_blas():  # the same bits whatever the number of threads
        rows = [_block(law, vectors(z - a), stream.child(b))[max(start - a, 0) : stop - a, :d] for b, a, z in met]
    return np.concatenate([np.empty((0, d)), *rows])


def _block(law: Radial, U: Array, stream: Stream) -> Array:
    """Unit vectors U (n, d) under one rotation, norms through the n strata of their law, in random order."""
    n, d = U.shape
    u = (np.arange(n) + uniforms(stream.child(0), 0, n, 1)[:, 0]) / n
    r = law.radius(np.minimum(u, 1 - 2.0**-53), d)  # the last stratum may round to 1, where the norm is infinite
    k = min(n, d)  # where n < d, U is the identity beside zeros
    W = r[:, None] * (U[:, :k] @ haar(k, d, stream.child(1)))
    return W[permutation(stream.child(2), n)]  # so that each row alone follows the law


RULES = {"iid": _iid, "orthogonal": _orthogonal, "qmc": _qmc, "design": _design}
