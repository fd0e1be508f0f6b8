"""How the kernel matrix of a likelihood and its slopes are read: every pair once, one tile, or tile
by tile; and up to how many rows processes are exact.

Seconds were measured on one thread (Gaussian and Matern, 100 to 2,600 rows, 1 to 25 columns); tiles
are shared between threads, and two of them are taken for granted, as no choice may ask for more.
"""

from __future__ import annotations

PAIRS, WHOLE, TILES = "every pair once", "one tile", "tiles"

START = {PAIRS: 3e-5, WHOLE: 8e-5, TILES: 2e-4}  # of one reading, however few the rows
VALUE = {PAIRS: 1.1e-9, WHOLE: 3.3e-9, TILES: 4.2e-9}  # of n^2
FAR = {PAIRS: 6e-13, WHOLE: 2e-12, TILES: 0.0}  # of n^3: what no longer stays near a core
WIDTHS = {PAIRS: 1.5e-9, WHOLE: 6e-10, TILES: 8e-10}  # of n^2, for bandwidths of columns
COLUMN = {PAIRS: 8e-11, WHOLE: 5e-11, TILES: 5e-11}  # of n^2 and each of these columns
TILE_ROWS = 320  # of a tile; threads have some each from twice as many on
SPEEDUP = 1.7  # of two threads over one
MAX_PAIRED_ROWS = 2600  # beyond, nothing was measured, and vectors of pairs take much memory

MAX_EXACT_ROWS = 5000  # that "auto" factors: a step of the search is then a second or so
MAX_CLASSIFIER_ROWS = 3000  # the same of a classifier, which factors a few times a step


def readings(
    n: int, width: int, parameters: int, *, paired: bool, items: bool = False
) -> dict[str, float]:
    """Seconds of one reading of n rows of so many columns by a formula of so many parameters;
    `paired` where it asks for nothing but distances of dense rows in float64.

    >>> from mercer.costs import quickest
    >>> [quickest(readings(n, 5, 1, paired=True)) for n in (100, 1000, 3000)]
    ['every pair once', 'every pair once', 'tiles']
    >>> [quickest(readings(n, 5, 1, paired=False)) for n in (100, 1000)]
    ['one tile', 'tiles']
    """
    ways = [TILES]
    if not items:
        ways.insert(0, WHOLE)
    if paired and n <= MAX_PAIRED_ROWS:
        ways.insert(0, PAIRS)
    columns = width if parameters > 1 else 0
    return {way: _seconds(way, n, columns) for way in ways}


def _seconds(way: str, n: int, columns: int) -> float:
    own = (WIDTHS[way] + COLUMN[way] * columns) * (columns > 1)
    taken = START[way] + n**2 * (VALUE[way] + own + FAR[way] * n)
    return taken / SPEEDUP if way == TILES and n >= 2 * TILE_ROWS else taken
