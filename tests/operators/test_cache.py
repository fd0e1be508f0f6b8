"""Rows kept stay within their limit."""

import numpy as np

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.operators import TileOperator
from mercer.operators.cache import RowCache
from mercer.operators.tiles import TILE_COLUMNS
from tests.models.svm.examples import example


def test_the_cache_stays_within_its_limit():
    X, _ = example(600)
    rows = TileOperator(Gaussian(), Table(X), np.float32)
    columns, room = RowCache(rows, 100 * 3 * TILE_COLUMNS * 4.0), np.zeros(600)
    for first in range(0, 600, 50):
        columns.add(room, np.arange(first, first + 50), np.ones(50))
        assert columns.held <= columns.limit
    np.testing.assert_allclose(room, Gaussian()(X).sum(1), rtol=1e-5)
    assert (columns.block_of >= 0).sum() == 100


def rows(n=300, offset=0.0, seed=0):
    return Table(np.random.default_rng(seed).normal(size=(n, 3)) + offset)
