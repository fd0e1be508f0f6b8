"""The choices by cost: functions of shapes alone, between the ways that there are."""

from mercer.costs import eigenvectors, gram, quickest
from mercer.models.pca.eigenvectors import way_of


def test_more_work_takes_longer():
    assert gram(100, 5) < gram(100, 50) < gram(200, 50)
    for way in ("exact", "iterative"):
        assert eigenvectors(500, 12)[way] < eigenvectors(600, 12)[way]


def test_the_whole_matrix_is_for_few_rows_or_many_components():
    assert quickest(eigenvectors(150, 12)) == "exact"
    assert way_of(2000, 2) == "iterative"
    assert way_of(2000, 500) == "exact"
