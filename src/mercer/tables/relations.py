"""Columns beside the target and beside each other, in the sample: codes, leaks of the target, copies."""
from __future__ import annotations

import numpy as np
from scipy.stats import f as f_distribution

from mercer.inputs import Array
from mercer.tables.scale import Scale

FIRST = 300  # rows of a quick look
LEAST = 20  # rows in which both are known, below which nothing is concluded
GAIN = 0.005  # share of the variance that levels must explain beyond a parabola
SURE = 1e-6
FEW = 8  # levels, up to which a feature for each costs little


def acts_as_codes(x: Array, y: Array, classification: bool) -> bool:
    """Whether whole numbers x stand for unordered levels: the means of y by level fit much better than a parabola in x.

    An F test at 1e-6 of the levels against the parabola, and at least half a percent of the variance gained, so that
    neither chance nor a slight bend counts; and with more than 8 levels, the means of neighbours must be no more alike than
    those of any two levels.

    >>> x = np.tile(np.arange(6.0), 50)
    >>> acts_as_codes(x, np.where(x % 2, 1.0, -1.0) + np.sin(np.arange(300)), False), acts_as_codes(x, x + np.sin(np.arange(300)), False)
    (True, False)
    """
    known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    levels, at = np.unique(x, return_inverse=True)
    n, g = len(x), len(levels)
    if g < 4 or n < max(LEAST, 5 * g):
        return False
    Y = _centred(y, classification)
    of_levels, of_parabola = _left(Y, np.eye(g)[at]), _left(Y, np.vander(Scale.standard(x)(x), 3))
    gain = (of_parabola - of_levels) / max(float(np.sum(Y**2)), 1e-300)
    ratio = (of_parabola - of_levels) / (g - 3) / max(of_levels / (n - g), 1e-300)
    return bool(gain > GAIN and f_distribution.sf(ratio, g - 3, n - g) < SURE and (g <= FEW or _roughness(Y, at) > 1))


def _roughness(Y: Array, at: Array) -> float:
    """Squared steps between the means of neighbouring levels over their variance (von Neumann): 2 for no order, 0 for a smooth one."""
    n = np.bincount(at)
    means = np.stack([np.bincount(at, column) / n for column in Y.T], axis=1)  # (g, c)
    w = np.minimum(n[1:], n[:-1])
    step = np.sum(w @ np.diff(means, axis=0) ** 2) / w.sum()
    return float(step / max(np.sum(n @ means**2) / n.sum(), 1e-300))


def _centred(y: Array, classification: bool) -> Array:
    """(n, c): indicators of the more frequent classes, or the ranks, which no outlier can rule."""
    if not classification:
        ranks = np.argsort(np.argsort(y)).astype(float)
        return (ranks - ranks.mean())[:, None]
    classes, counts = np.unique(y, return_counts=True)
    Y = (y[:, None] == classes[np.argsort(-counts)[:10]]).astype(float)
    return Y - Y.mean(0)


def _left(Y: Array, F: Array) -> float:
    """The sum of squares that least squares on F leaves."""
    return float(np.sum((Y - F @ np.linalg.lstsq(F, Y, rcond=None)[0]) ** 2))


def leaks(x: Array, y: Array, classification: bool) -> bool:
    """Whether x gives the target away: an invertible function of it in the sample.

    Classes: the levels of x and the classes, several rows of each, are matched one to one. Numbers: x rises or falls with
    y throughout, with as many distinct values; or at most 20 values of each are matched. A longer table of matches is no simple
    relation: where the rows of a few individuals repeat, every number of theirs is matched with every other.

    >>> y = np.arange(30.0)
    >>> leaks(np.exp(y / 10), y, False), leaks(y % 7, y, False), leaks(5 - y % 3, y % 3, True)
    (True, False, True)
    """
    known = ~np.isnan(x) & ~np.isnan(y)
    if known.sum() < max(LEAST, 0.5 * len(y)):
        return False
    x, y = x[known], y[known]
    if not _possible(x[:FIRST], y[:FIRST], classification):
        return False  # as nearly always
    n_x, n_y = len(np.unique(x)), len(np.unique(y))
    matched = 2 <= n_x == n_y <= len(y) / 3 and _matched(x, y)
    if classification:
        return matched
    return n_y >= 10 and ((n_x >= 0.9 * n_y and _along(x, y)) or (matched and n_y <= LEAST))


def _possible(x: Array, y: Array, classification: bool) -> bool:
    return _matched(x, y) or (not classification and _along(x, y))


def distinct_rows(columns: list[Array]) -> Array:
    """The first positions of the rows that differ; all rows where every column has few values, since then rows repeat by chance.

    >>> x = np.tile(np.arange(30.0), 4)
    >>> len(distinct_rows([x, x + 1])), len(distinct_rows([x % 2, x % 3]))
    (30, 120)
    """
    n = len(columns[0])
    if all(len(np.unique(c)) <= LEAST for c in columns):
        return np.arange(n)
    rows = np.ascontiguousarray(np.stack(columns, axis=1) + 0.0)  # 0.0 and -0.0 are one
    cells = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    return np.sort(np.unique(cells, return_index=True)[1])


def _matched(x: Array, y: Array) -> bool:
    """Whether each value of x goes with one of y, and the other way round."""
    pairs = len(np.unique(np.stack([x, y]), axis=1).T)
    return len(np.unique(x)) == len(np.unique(y)) == pairs


def _along(x: Array, y: Array) -> bool:
    """Whether x never falls, or never rises, while y rises."""
    up, down = x[np.lexsort((x, y))], x[np.lexsort((-x, y))]
    return bool(np.all(up[1:] >= up[:-1]) or np.all(down[1:] <= down[:-1]))


def copies(columns: dict[str, Array]) -> dict[str, str]:
    """For every column that equals an earlier one in the sample, the name of that one."""
    first: dict[bytes, str] = {}
    found = {}
    for name, values in columns.items():
        key = values.tobytes()
        if key in first and np.array_equal(columns[first[key]], values, equal_nan=True):
            found[name] = first[key]
        first.setdefault(key, name)
    return found
