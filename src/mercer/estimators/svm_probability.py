"""Cross-fitted calibration: the sigmoid of every score, from scores of rows that their model did not see."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from mercer.inputs import Array
from mercer.learners.smo_calibrate import sigmoid

FOLDS = 5


def calibrated(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array]:
    """(a, b), one of each a score."""
    y, classes = column_or_1d(y), model.classes_
    w = np.ones(len(y)) if sample_weight is None else _check_sample_weight(sample_weight, y, dtype=np.float64)
    used = np.flatnonzero(w > 0)
    least = enough_rows(np.searchsorted(classes, y[used]))
    weight = w[used] * (len(used) / w[used].sum())  # as many as there are rows, whatever the unit of weights
    scores = np.empty((len(y),) if len(classes) == 2 else (len(y), len(classes)))
    folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
    for train, test in folds.split(used, y[used]):
        scores[used[test]] = _fold(model, X, y, w, used[train], used[test])
    f, codes = scores[used].reshape(len(used), -1), np.searchsorted(classes, y[used])
    found = [sigmoid(f[:, k], codes == (1 if len(classes) == 2 else k), weight) for k in range(f.shape[1])]
    return np.array([a for a, _ in found]), np.array([b for _, b in found])


def enough_rows(codes: Array) -> int:
    """The size of the smallest class, which folds must be able to share."""
    least = int(np.bincount(codes).min())
    if least < 2:
        raise ValueError("probability=True needs two rows of every class, as each fold must leave some; give more rows.")
    return least


def _fold(model: Any, X: Any, y: Array, w: Array, train: Array, test: Array) -> Array:
    """Scores of the test rows by a model of the others."""
    part = clone(model).set_params(probability=False, warm_start=False)
    if hasattr(model, "support_"):
        part.set_params(kernel=model.kernel_, via="exact")  # by position, as checked rows have no names
    elif isinstance(part.via, str) and part.via == "auto":
        part.set_params(via="features")  # as the model, though a fold has fewer rows
    rows, labels = _safe_split(part, X, y, train)
    part.fit(rows, labels, w[train])
    return part.decision_function(_safe_split(part, X, y, test, train)[0])
