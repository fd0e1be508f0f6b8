"""The choices by cost: functions of shapes alone, between the ways that there are."""

import numpy as np

from mercer.costs import eigenvectors, gram, quickest
from mercer.costs.choice import forced
from mercer.costs.pivots import ENOUGH, MORE, PivotSearch
from mercer.models.pca.eigenvectors import way_of


def test_more_work_takes_longer():
    assert gram(100, 5) < gram(100, 50) < gram(200, 50)
    for way in ("exact", "iterative"):
        assert eigenvectors(500, 12)[way] < eigenvectors(600, 12)[way]


def test_the_whole_matrix_is_for_few_rows_or_many_components():
    assert quickest(eigenvectors(150, 12)) == "exact"
    assert way_of(2000, 2) == "iterative"
    assert way_of(2000, 500) == "exact"


def falling(power, n, ridge=0.1):
    """Whether more pivots pay at 128, 256, ... of eigenvalues n i^-power."""
    s = PivotSearch(n, 16, 1e-3, 1 / ridge)
    left = np.cumsum((n * np.arange(1.0, 4097) ** -power)[::-1])[::-1]
    ranks = [0, *range(128, 4000, 128)]
    return [s.worth_more(ranks[:i], [left[r] for r in ranks[:i]]) for i in range(3, len(ranks))]


def test_pivots_are_drawn_until_they_cost_more_than_steps():
    for power in (1.2, 2.0, 3.0):
        worth = falling(power, 20_000)
        assert worth == sorted(worth, reverse=True)
    for power in (1.2, 1.5):  # more rows, more pivots
        few, some, many = (falling(power, n).count(True) for n in (2_000, 20_000, 200_000))
        assert few < some < many


def test_pivots_stop_where_they_tell_nothing_and_may_be_forced():
    s = PivotSearch(20_000, 1, 1e-6, 1.0)
    assert s.worth_more([0, 64], [9.0, 5.0])
    assert not s.worth_more([0, 64, 128], [9.0, 5.0, 5.0])
    assert not s.worth_more([0, 64, 128], [9.0, 5.0, 0.0])
    assert not PivotSearch(130, 1, 1e-6, 1e9).worth_more([0, 64, 128], [130.0, 50.0, 20.0])
    with forced(pivots=ENOUGH):
        assert not s.worth_more([0, 64, 128], [2e4, 6e3, 4e3])
    with forced(pivots=MORE):
        assert s.worth_more([0, 64, 128], [2e4, 6e3, 4e3])
