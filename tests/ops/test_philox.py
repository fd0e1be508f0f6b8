"""Random tables: any rows alone are the rows of the whole, streams are independent, values follow
their laws."""

import numpy as np
import pytest
from scipy import stats

from mercer.ops import philox
from mercer.ops.philox import Stream

TABLES = {
    "bits": philox.bits,
    "uniforms": philox.uniforms,
    "normals": philox.normals,
    "signs": philox.signs,
    "gammas": lambda *rows: philox.gammas(*rows, shape=0.7),
    "integers": lambda *rows: philox.integers(*rows, high=10),
}
LAWS = {
    "uniforms": stats.uniform(),
    "normals": stats.norm(),
    "gammas": stats.gamma(0.7),
}
tables = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@tables
@pytest.mark.parametrize("width", [1, 3, 4, 5, 64])
@pytest.mark.parametrize("rows", [(0, 0), (0, 1), (7, 8), (250, 300), (999, 1000)])
def test_rows_alone_are_rows_of_the_whole(table, width, rows):
    whole = table(Stream(3, (1,)), 0, 1000, width)
    assert whole.shape == (1000, width)
    np.testing.assert_array_equal(table(Stream(3, (1,)), *rows, width), whole[slice(*rows)])


@tables
def test_far_rows_cost_nothing(table):
    assert table(Stream(3), 10**18, 10**18 + 2, 64).shape == (2, 64)


@tables
@pytest.mark.parametrize(
    "other", [Stream(4), Stream(3, (0,)), Stream(3, (0, 0)), Stream(3).child(1)]
)
def test_streams_differ(table, other):
    assert not np.array_equal(table(Stream(3), 0, 50, 4), table(other, 0, 50, 4))


def test_the_same_bits_everywhere():
    words = [9222752016540279612, 10434118539548529099, 2990624694007802132]
    assert philox.bits(Stream(7, (1, 2)), 5, 6, 3).tolist() == [words]


@pytest.mark.parametrize("name", LAWS)
def test_values_follow_their_law(name):
    values = TABLES[name](Stream(11), 0, 5000, 4)
    assert stats.kstest(values.ravel(), LAWS[name].cdf).pvalue > 1e-4
    assert abs(np.corrcoef(values.T) - np.eye(4)).max() < 5 / np.sqrt(5000)
    assert abs(np.corrcoef(values[:-1, 0], values[1:, 0])[0, 1]) < 5 / np.sqrt(5000)


def test_streams_are_uncorrelated():
    G = np.hstack(
        [philox.normals(Stream(5, path), 0, 5000, 1) for path in [(), (0,), (1,), (0, 1), (1, 0)]]
    )
    assert abs(np.corrcoef(G.T) - np.eye(5)).max() < 5 / np.sqrt(5000)


def test_signs_and_integers_are_fair():
    assert abs(philox.signs(Stream(1), 0, 10_000, 1).mean()) < 5 / np.sqrt(10_000)
    counts = np.bincount(philox.integers(Stream(1), 0, 10_000, 1, high=7).ravel(), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_permutations_are_fair():
    first = np.bincount([philox.permutation(Stream(s), 5)[0] for s in range(2000)], minlength=5)
    assert stats.chisquare(first).pvalue > 1e-4


def test_uniforms_stay_inside(monkeypatch):
    """Also at the ends of the 64-bit range, where an infinite normal value would come from."""
    ends = np.array([[0, 2**64 - 1]], np.uint64)
    monkeypatch.setattr(philox, "bits", lambda *rows: ends)
    low, high = philox.uniforms(Stream(0), 0, 1, 2)[0]
    assert 0 < low < high < 1
    assert np.isfinite(philox.normals(Stream(0), 0, 1, 2)).all()
