"""Rows of weight 0 in a fit are as if they were not there."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mercer import fit_table
from mercer.tables import DataError


def table(n: int, light: int) -> pa.Table:
    """y = 2 a, and rows of weight 0 between them that say something else by far."""
    rng = np.random.default_rng(7)
    a, w = rng.normal(size=n + light), np.ones(n + light)
    w[rng.permutation(n + light)[:light]] = 0.0
    return pa.table({"a": a, "w": w, "y": np.where(w > 0, 2 * a, 1e9)})


def test_they_move_no_model_no_score_and_no_interval() -> None:
    rows = table(90, 60)
    model = fit_table(rows, "y", weight="w", time=2.0)
    result = model.result
    assert result.rows_train + result.rows_holdout == 90
    assert result.chosen.holdout > 0.99
    told = model.predict(rows.filter(pc.greater(rows["w"], 0)))
    gap = np.asarray(told["upper"]) - np.asarray(told["lower"])
    assert gap.max() < 10
    assert '60 rows have weight 0 by "w" and were left out.' in result.warnings


def test_too_few_of_some_weight_is_said() -> None:
    with pytest.raises(DataError, match="held out of some weight are too few"):
        fit_table(table(12, 60), "y", weight="w", time=1.0)
