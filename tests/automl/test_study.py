"""A study holds as many rows as memory allows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from mercer.automl import budget
from mercer.automl.metrics import METRICS
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.study import Study


def problem(n, p=3, seed=0, memory=4e9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    return SearchProblem(
        TableRows(X, X @ np.arange(1.0, p + 1) + rng.normal(size=n), np.arange(n)),
        METRICS["r2"],
        0,
        seed,
        memory,
    )


def test_a_study_holds_as_many_rows_as_memory_allows():
    data = SimpleNamespace(
        train=problem(50_000, 50).rows, columns=SimpleNamespace(classes_=(), encoders_={})
    )
    study = Study(data, METRICS["r2"], "", 6e7, 0, None)
    assert len(study.problem.rows) == budget.training_rows(6e7, 50, 2) < 50_000
    assert np.array_equal(
        study.problem.rows.row_id, data.train.sample(len(study.problem.rows)).row_id
    )
    assert replace(study, memory=4e9).problem.rows is data.train
