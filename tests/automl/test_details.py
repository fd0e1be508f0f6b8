"""Models in words: what trees are and whether they lack rounds."""

import pytest

from mercer.automl.details import trees_detail, trees_shortage, trees_shortened
from mercer.automl.recipes import TreeGrowth
from mercer.automl.trees import grow_like
from tests.automl.arrays import problem
from tests.automl.test_trees import DESIGN


@pytest.mark.parametrize("classes", [0, 3])
def test_trees_say_whose_they_are_and_what_they_lack(classes):
    p = problem(100, classes=classes)
    few, large = (
        grow_like(p.rows, DESIGN, classes, 0, growth)
        for growth in (TreeGrowth(2), TreeGrowth(2, 5.0))
    )
    name = "HistGradientBoostingClassifier" if classes else "HistGradientBoostingRegressor"
    assert name in trees_detail(few)
    assert "default settings" in trees_detail(few)
    assert trees_shortage(few) == "stopped after 2 of 100 rounds, to keep to time"
    assert "2 rounds at a learning rate of 5" in trees_detail(large)
    assert trees_shortage(large) == ""
    assert trees_shortened(few) == trees_shortage(few)
    assert trees_shortened(large).startswith("2 rounds at a learning rate of 5 instead of 100 at")
    assert trees_shortened(grow_like(p.rows, DESIGN, classes, 0, TreeGrowth())) == ""
