"""What the holdout says of predictors: scores, importance of columns, worst rows, calibration; and
which class is decided for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.automl.metrics import IN_UNITS, Metric, Score, influence_error, normalised
from mercer.automl.predictors import Predictor
from mercer.automl.rows import TableRows, hashes
from mercer.inputs import Array
from mercer.invariants import Number, Whole
from mercer.store import encode, register

MAX_POINTS = 2_000
N_WORST = 10
N_BINS = 10
IMPORTANCE_ROWS = 2_000
N_REPEATS = 3
ROUNDING = 1e-12  # of a score, or in shares: what is lost by less is lost by rounding
MAX_PREDICTED_ROWS = 200_000  # rows for all columns together
MAX_SHUFFLED = 200  # columns at most
MIN_SHUFFLED_ROWS = 300  # rows that are shuffled in any case
LEAST_SHOWN = 1e-4  # probabilities below it are only said to be
MAX_WORK = 2e9  # values of the model that all predictions together may meet


@register("automl.Decision")
@dataclass(frozen=True)
class Decision:
    """The likeliest class; where `code` >= 0, of two classes that one from `threshold` on.

    >>> Decision().at(0.2, 2)
    Decision(code=1, threshold=0.2)
    """

    code: int = -1
    threshold: float = 0.5

    must = dict(code=Whole(-1, 2), threshold=Number(finite=False))

    def at(self, threshold: float, n_classes: int) -> Decision:
        """With another threshold on the probability of the same class; of the second where the
        likelier one was decided for."""
        if n_classes != 2:
            what = f"{n_classes:,} classes" if n_classes else "numbers"
            raise ValueError(
                f"threshold needs a model of two classes, and this one predicts {what}; leave threshold out."
            )
        if not (
            isinstance(threshold, int | float)
            and not isinstance(threshold, bool)
            and 0 <= threshold <= 1
        ):
            raise ValueError(f"threshold must be a probability from 0 to 1, got {threshold!r}.")
        return Decision(1 if self.code < 0 else self.code, float(threshold))

    def __call__(self, P: Array) -> Array:
        if self.code < 0:
            return np.asarray(P.argmax(1))
        return np.where(P[:, self.code] >= self.threshold, self.code, 1 - self.code)


def shown_threshold(value: float) -> str:
    """Never as 0, from which on every row would be predicted.

    >>> shown_threshold(0.12345), shown_threshold(1e-9)
    ('of 0.123', 'below 0.0001')
    """
    return f"of {value:.3g}" if value >= LEAST_SHOWN else f"below {LEAST_SHOWN}"


def best_f1_decision(y: Array, P: Array, w: Array | None = None) -> Decision:
    """The threshold on the rarer of two classes that makes F1, the harmonic mean of precision and
    recall, largest; rows count by their weights.

    >>> best_f1_decision(np.array([0, 0, 0, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.6, 0.4]])).threshold
    0.4
    """
    w = np.ones(len(y)) if w is None or not w.any() else np.asarray(w, np.float64)
    known = np.isfinite(P).all(1) & (w > 0)
    y, P, w = y[known], P[known], w[known]
    code = int(np.argmin(np.bincount(y, minlength=2)))
    p, true = P[:, code], w * (y == code)
    order = np.argsort(-p, kind="stable")
    hits, taken = np.cumsum(true[order]), np.cumsum(w[order])
    f1 = 2 * hits / (taken + true.sum())
    last = np.append(np.diff(p[order]) != 0, True)  # equal probabilities are taken together
    return Decision(code, float(p[order][int(np.argmax(np.where(last, f1, -1)))]))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one predictor said of the holdout, and the metric of it."""

    predicted: Array
    score: Score
    low: float
    high: float


def evaluate_predictions(rows: TableRows, metric: Metric, predicted: Array) -> Evaluation:
    """The score of these predictions with its 95 % interval; rows of one group are not
    independent."""
    score = metric(rows.y, predicted, rows.weight)
    return Evaluation(predicted, score, *score.interval(rows.group))


def importance(
    predictor: Predictor,
    rows: TableRows,
    metric: Metric,
    origin: Sequence[int],
    names: Sequence[str],
    seed: int = 0,
) -> tuple[tuple[str, float, float], ...]:
    """How much worse the score gets where an original column is shuffled, with a standard error;
    the most important first.

    Of very many columns only those are shuffled that go with the predictions most.
    """
    of = np.asarray(origin)
    few = rows.sample(
        min(
            IMPORTANCE_ROWS,
            max(MIN_SHUFFLED_ROWS, MAX_PREDICTED_ROWS // (N_REPEATS * len(np.unique(of)))),
        ),
        seed,
    )
    few, repeats = _in_time(
        values_a_row(predictor), few, min(len(np.unique(of)), MAX_SHUFFLED), seed
    )
    X, predicted = np.array(few.X), predictor(few.X)
    base = metric(few.y, predicted, few.weight)
    asked = _likeliest(X, predicted, of)
    found = [
        (
            names[j],
            *_shuffled(predictor, few, X, metric, base, np.flatnonzero(of == j), seed, repeats),
        )
        for j in asked
    ]
    return tuple(sorted(found, key=lambda v: -v[1]))


def values_a_row(predictor: Predictor) -> float:
    """How many values of the model a row meets: those of its arrays, of a machine those of one
    cell."""
    cells = len(getattr(getattr(predictor, "estimator", None), "models", ())) or 1
    return float(sum(a.size for a in encode(predictor)[1])) / cells


def _in_time(a_row: float, rows: TableRows, columns: int, seed: int) -> tuple[TableRows, int]:
    """Where a model is so large that it would take long, one repeat, and then fewer rows; by sizes,
    not by a clock."""
    if a_row * len(rows) * columns * N_REPEATS <= MAX_WORK:
        return rows, N_REPEATS
    return rows.sample(max(MIN_SHUFFLED_ROWS, int(MAX_WORK / (a_row * columns))), seed), 1


def _likeliest(X: Array, predicted: Array, of: Array) -> list[int]:
    """The columns to shuffle: all, or those with the largest sum of squared correlations with what
    is predicted."""
    columns = np.unique(of)
    if len(columns) <= MAX_SHUFFLED:
        return columns.tolist()
    A, B = (M - M.mean(0) for M in (X.astype(np.float64), predicted.reshape(len(X), -1)))
    shares = np.square(
        A.T @ B / np.maximum(np.linalg.norm(A, axis=0)[:, None] * np.linalg.norm(B, axis=0), 1e-300)
    ).sum(1)
    return np.sort(
        columns[np.argsort(-np.bincount(of, shares)[columns], kind="stable")[:MAX_SHUFFLED]]
    ).tolist()


def _shuffled(
    predictor: Predictor,
    rows: TableRows,
    X: Array,
    metric: Metric,
    base: Score,
    columns: Array,
    seed: int,
    repeats: int,
) -> tuple[float, float]:
    losses, errors = [], []
    own = X[:, columns]
    for repeat in range(repeats):
        X[:, columns] = own[np.argsort(hashes(rows.row_id, seed + 101 + repeat))]
        score = metric(rows.y, predictor(X), rows.weight)
        X[:, columns] = own
        losses.append(metric.gain(base.value) - metric.gain(score.value))
        errors.append(influence_error(base.influence - score.influence, rows.group))
    loss, error = float(np.mean(losses)), float(np.mean(errors))
    least = ROUNDING * (abs(base.value) if metric.name in IN_UNITS else 1.0)
    return loss if abs(loss) > least else 0.0, error if error > least else 0.0


def points(rows: TableRows, predicted: Array, seed: int = 0) -> tuple[tuple[float, float], ...]:
    """(actual, predicted) of at most 2,000 rows."""
    few = np.argsort(hashes(rows.row_id, seed), kind="stable")[:MAX_POINTS]
    return tuple(zip(rows.y[few].tolist(), predicted[few].tolist(), strict=True))


def worst(
    rows: TableRows, predicted: Array, classes: Sequence[str], decided: Array | None = None
) -> list[dict[str, Any]]:
    """The rows that were missed by most: far numbers, or wrong classes where the right one was
    thought improbable. `row` counts from 1.

    The error is |actual - predicted|, or 1 less the probability of the actual class. `decided` are
    the codes of the classes that are predicted, the likeliest where it is None.
    """
    if not classes:
        error = np.abs(rows.y - predicted)
        return [
            _missed(rows, i, float(rows.y[i]), float(predicted[i]), float(error[i]))
            for i in _largest(error)
        ]
    error = 1 - predicted[np.arange(len(rows)), rows.y]
    top = predicted.argmax(1) if decided is None else decided
    return [
        _missed(
            rows,
            i,
            classes[rows.y[i]],
            f"{classes[top[i]]} ({predicted[i, top[i]]:.0%})",
            float(error[i]),
        )
        for i in _largest(np.where(top == rows.y, -1.0, error))
        if top[i] != rows.y[i]
    ]


def _largest(error: Array) -> list[int]:
    return np.argsort(-error, kind="stable")[:N_WORST].tolist()


def _missed(rows: TableRows, i: int, actual: Any, predicted: Any, error: float) -> dict[str, Any]:
    return {
        "row": int(rows.row_id[i]) + 1,
        "actual": actual,
        "predicted": predicted,
        "error": error,
        "values": {},
    }


def confusion(y: Array, decided: Array, k: int) -> tuple[tuple[int, ...], ...]:
    """How many rows of each class (down) were given each class (across).

    >>> confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    ((1, 0), (1, 1))
    """
    counts = np.zeros((k, k), np.int64)
    np.add.at(counts, (y, decided), 1)
    return tuple(tuple(row) for row in counts.tolist())


def confusion_weights(
    y: Array, decided: Array | None, k: int, weight: Array | None
) -> tuple[tuple[float, ...], ...]:
    """What the rows of `confusion` weigh; nothing where they have no weights, or no classes.

    >>> confusion_weights(np.array([0, 1, 1]), np.array([0, 1, 0]), 2, np.array([1.0, 2.5, 3.0]))
    ((1.0, 0.0), (3.0, 2.5))
    """
    if weight is None or decided is None:
        return ()
    sums = np.zeros((k, k))
    np.add.at(sums, (y, decided), weight)
    return tuple(tuple(row) for row in sums.tolist())


def calibration(
    y: Array, P: Array, weight: Array | None = None
) -> tuple[tuple[float, float, int], ...]:
    """(mean probability, share that it came true, rows), in ten bins: of the second class of two,
    else of the likeliest; mean and share are weighted where rows are."""
    if P.shape[1] == 2:
        p, true = P[:, 1], y == 1
    else:
        p, true = P.max(1), P.argmax(1) == y
    bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    w = np.ones(len(p)) if weight is None else weight
    found = []
    for b in np.unique(bins).tolist():
        mine = bins == b
        v = normalised(w[mine])
        found.append((float(v @ p[mine]), float(v @ true[mine]), int(mine.sum())))
    return tuple(found)
