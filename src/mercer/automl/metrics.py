"""Metrics as a value and the influence of every row on it: intervals and paired differences then
need no resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mercer.automl import ranking
from mercer.inputs import Array
from mercer.tables.errors import Misnamed

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
# share of the rarer of two classes below which accuracy says little; below which a threshold is
# sought that finds it, as the likelier class would hardly ever be that one
RARE_CLASS = 0.2
VERY_RARE_CLASS = 0.1
TITLES = {
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "auc": "area under the curve",
    "average_precision": "average precision",
}
IN_UNITS = ("rmse", "mae")  # of the target


@dataclass(frozen=True, eq=False)
class Score:
    """A metric on some rows: its value, and to first order what each row adds to its error (they
    sum to zero)."""

    value: float
    influence: Array
    proportion: bool = False
    # of a share: the rows it rests on, where it is 0 or 1; one more or less would move it by 1 /
    # count
    count: float = 0.0
    low: float = -float("inf")
    high: float = float("inf")

    def error(self, groups: Array | None = None) -> float:
        """The standard error; `groups` numbers the groups whose rows are not independent.

        >>> round(accuracy(np.array([0, 1, 1, 1]), np.eye(2)[[0, 1, 1, 0]], np.ones(4)).error(), 3)
        0.25
        """
        return influence_error(self.influence, groups)

    def shown_error(self, groups: Array | None = None) -> float:
        """The same, of a share at least what one row more or less would make: where all rows agree
        that is no proof.

        >>> accuracy(np.zeros(50, int), np.eye(2)[[0] * 50], np.ones(50)).shown_error()
        0.02
        """
        return max(self.error(groups), 1 / self.count if self.count else 0.0)

    def interval(self, groups: Array | None = None) -> tuple[float, float]:
        """95 %: normal within what the metric can be, or Wilson's for shares, which is not empty
        where every row was right."""
        error, n = (
            self.error(groups),
            len(self.influence) if groups is None else len(np.unique(groups)),
        )
        if not self.proportion or not np.isfinite(self.value):
            return max(self.low, self.value - Z * error), min(self.high, self.value + Z * error)
        p = self.value
        return wilson(
            p,
            min(n, p * (1 - p) / error**2) if 0 < p < 1 and error > 0 else min(n, self.count or n),
        )


def influence_error(influence: Array, groups: Array | None = None) -> float:
    """The root of the sum of squares of the groups' total influences."""
    totals = (
        influence
        if groups is None
        else np.bincount(np.unique(groups, return_inverse=True)[1], influence)
    )
    m = len(totals)
    return float(np.sqrt(np.square(totals).sum() * m / max(m - 1, 1)))


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share p of n.

    >>> [round(v, 3) for v in wilson(1.0, 30)]
    [0.886, 1.0]
    """
    middle, half = p + Z**2 / (2 * n), Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return max(0.0, float((middle - half) / (1 + Z**2 / n))), min(
        1.0, float((middle + half) / (1 + Z**2 / n))
    )


def difference(a: Score, b: Score, groups: Array | None = None) -> tuple[float, float, float]:
    """a - b on the same rows, with its 95 % interval; of shares no end is beyond -1 or 1.

    >>> one, two = (accuracy(np.zeros(2, int), np.eye(2)[[k, k]], np.ones(2)) for k in (0, 1))
    >>> difference(one, two)[2]
    1.0
    """
    value, error = a.value - b.value, difference_error(a, b, groups)
    most = 1.0 if a.proportion and b.proportion else float("inf")
    return value, max(-most, value - Z * error), min(most, value + Z * error)


def difference_error(a: Score, b: Score, groups: Array | None = None) -> float:
    """The standard error of a - b on the same rows; of shares never less than one row more or less
    would make.

    As Agresti and Min (2005) add a pair to each kind of disagreement: where all rows agree that is
    no proof.

    >>> one, two = (accuracy(np.zeros(50, int), np.eye(2)[[0] * (50 - k) + [1] * k], np.ones(50)) for k in (0, 1))
    >>> bool(difference_error(one, two) > one.value - two.value), difference_error(one, one)
    (True, 0.02)
    """
    least = max(1 / s.count if s.count else 0.0 for s in (a, b))
    return float(np.hypot(influence_error(a.influence - b.influence, groups), least))


def normalised(w: Array) -> Array:
    """Weights that sum to 1; equal ones where none has weight.

    >>> normalised(np.array([1.0, 3.0])), normalised(np.zeros(2))
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    return w / w.sum() if w.any() else np.full(len(w), 1 / max(len(w), 1))


# regression: y and predictions (n,)
def r2(y: Array, f: Array, w: Array) -> Score:
    """1 - sum w (y - f)^2 / sum w (y - mean)^2."""
    v = normalised(w)
    e, s = np.square(y - f), np.square(y - v @ y)
    A, B = float(v @ e), float(v @ s) or 1.0
    return Score(1 - A / B, v * (A * s / B - e) / B, high=1.0)


def rmse(y: Array, f: Array, w: Array) -> Score:
    v, e = normalised(w), np.square(y - f)
    A = float(v @ e)
    return Score(A**0.5, v * (e - A) / (2 * A**0.5) if A > 0 else 0 * e, low=0.0)


def mae(y: Array, f: Array, w: Array) -> Score:
    return _mean(np.abs(y - f), w)


# classification: codes y (n,) and probabilities (n, K)
def accuracy(y: Array, P: Array, w: Array) -> Score:
    return _mean((P.argmax(1) == y).astype(np.float64), w, proportion=True)


def balanced_accuracy(y: Array, P: Array, w: Array) -> Score:
    """The mean over classes, of which some row has weight, of the share that was recognised."""
    right = (P.argmax(1) == y).astype(np.float64)
    classes = np.unique(y[w > 0] if w.any() else y)
    parts = [_mean(right, w * (y == c), proportion=True) for c in classes]
    return _together(parts)


def log_loss(y: Array, P: Array, w: Array) -> Score:
    """-mean log p(y), p at least 1e-15."""
    p = np.asarray(P[np.arange(len(y)), y], np.float64)
    return _mean(-np.log(np.clip(p, 1e-15, 1)), w)


def auc(y: Array, P: Array, w: Array) -> Score:
    """The chance that a row of the class has a higher p than one of another; with more than two
    classes the mean over them."""
    codes = (
        [1] if P.shape[1] == 2 else [c for c in range(P.shape[1]) if 0 < np.sum(y == c) < len(y)]
    )
    return _ranked(ranking.area, codes, y, P, w)


def average_precision(y: Array, P: Array, w: Array) -> Score:
    """The mean, over the rows of the class, of the share of it among the rows that are ranked as
    high; of two classes the rarer, of more the mean over them.

    >>> y = np.array([0, 0, 1, 1])
    >>> round(average_precision(y, np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]]), np.ones(4)).value, 4)
    0.8333
    """
    counts = np.bincount(y, w, minlength=P.shape[1])
    present = [c for c in range(P.shape[1]) if 0 < counts[c] < counts.sum()]
    codes = [1 if counts[1] <= counts[0] else 0] if P.shape[1] == 2 else present
    return _ranked(ranking.precision, codes, y, P, w)


def _ranked(of: ranking.Ranking, codes: list[int], y: Array, P: Array, w: Array) -> Score:
    """The mean over the classes of which there are rows on both sides."""
    found = [of(y == c, np.asarray(P[:, c], np.float64), w) for c in codes]
    parts = [
        Score(value, influence, True, count) for value, influence, count in filter(None, found)
    ]
    return _together(parts) if parts else Score(float("nan"), np.zeros(len(y)))


def _together(parts: list[Score]) -> Score:
    """The mean of the shares of several classes; the rarest is the one that moves it most."""
    count = len(parts) * min(s.count for s in parts)
    return Score(
        float(np.mean([s.value for s in parts])),
        np.mean([s.influence for s in parts], axis=0),
        True,
        count,
    )


def _mean(values: Array, w: Array, *, proportion: bool = False) -> Score:
    v, u = normalised(w), w if w.any() else np.ones(len(w))
    mean = float(u @ values) / (
        float(u @ np.ones(len(u))) or 1.0
    )  # summed alike, so that a share of all is 1 and not 1 + 2e-16
    count = float(np.sum(w > 0)) if proportion else 0.0
    return Score(mean, v * (values - mean), proportion, count, low=0.0)


def over_folds(metric: Metric, y: Array, P: Array, w: Array, fold: Array) -> Score:
    """The score of out-of-fold predictions. What compares rows or classes with each other, the mean
    over the folds.

    Pooled, the area under the curve would compare probabilities of different models, and a class
    that is rarer in the rows which train is more frequent in those which test: a constant would be
    below chance. Classes with fewer rows than folds are left out, where two remain. Where a fold
    lacks a class its balanced accuracy would be that of the others alone, and so all rows are
    pooled.
    """
    if metric.of not in (auc, average_precision, balanced_accuracy):
        return metric(y, P, w)
    counts, k = np.bincount(y), len(np.unique(fold))
    frequent = np.flatnonzero(counts >= k)
    used = np.isin(y, frequent) if len(frequent) > 1 else np.ones(len(y), bool)
    if metric.of is balanced_accuracy and _lacking(y, used & (w > 0), fold):
        return metric(y, P, w)
    found = [
        (i, metric(y[i], P[i], w[i]))
        for f in np.unique(fold)
        for i in [np.flatnonzero(used & (fold == f))]
        if len(i)
    ]
    return _mean_of(len(y), [(i, s) for i, s in found if np.isfinite(s.value)])


def _lacking(y: Array, used: Array, fold: Array) -> bool:
    """Whether a fold has no row of a class that is used."""
    met = len(np.unique(np.stack([y[used], fold[used]]), axis=1).T)
    return met < len(np.unique(y[used])) * len(np.unique(fold))


def _mean_of(n: int, found: list[tuple[Array, Score]]) -> Score:
    influence, m = np.zeros(n), len(found)
    for i, s in found:
        influence[i] = s.influence / m
    if not m:
        return Score(float("nan"), influence)
    return Score(
        float(np.mean([s.value for _, s in found])), influence, True, sum(s.count for _, s in found)
    )


@dataclass(frozen=True)
class Metric:
    """A named score of y and what was predicted: numbers, or probabilities (n, K)."""

    name: str
    task: str
    of: Callable[[Array, Array, Array], Score]
    higher_is_better: bool
    note: str
    labels: bool = (
        False  # whether it looks at the classes that are decided for, not at their probabilities
    )

    def decided(self, y: Array, P: Array, codes: Array, w: Array | None = None) -> Score:
        """The score of probabilities and of the classes that were decided for, whichever of them it
        looks at."""
        return self(y, np.eye(P.shape[1])[codes] if self.labels else P, w)

    def __call__(self, y: Array, f: Array, w: Array | None = None) -> Score:
        return self.of(y, f, np.ones(len(y)) if w is None else np.asarray(w, np.float64))

    def gain(self, value: float) -> float:
        """The value, or its negative where less is better."""
        return value if self.higher_is_better else -value


METRICS = {
    m.name: m
    for m in (
        Metric("r2", "regression", r2, True, "R² (1 is perfect, 0 is no better than the mean)"),
        Metric(
            "rmse", "regression", rmse, False, "root mean squared error, in units of the target"
        ),
        Metric("mae", "regression", mae, False, "mean absolute error, in units of the target"),
        Metric(
            "accuracy",
            "classification",
            accuracy,
            True,
            "share of rows given their right class",
            True,
        ),
        Metric(
            "balanced_accuracy",
            "classification",
            balanced_accuracy,
            True,
            "mean over classes of the share of the class recognised",
            True,
        ),
        Metric(
            "log_loss",
            "classification",
            log_loss,
            False,
            "mean of -log p of the right class (0 is perfect)",
        ),
        Metric(
            "auc",
            "classification",
            auc,
            True,
            "chance that a row of the class is ranked above one that is not (0.5 is chance)",
        ),
        Metric(
            "average_precision",
            "classification",
            average_precision,
            True,
            "precision averaged over the rows of the rarer class, most probable first",
        ),
    )
}


def number(value: float, metric: str) -> str:
    """Four digits, shares with three decimals.

    >>> number(0.81234, "r2"), number(45678.9, "rmse"), number(-0.0001, "r2")
    ('0.812', '45,680', '0.000')
    """
    if metric not in IN_UNITS:
        return _unsigned(f"{value:.3f}")
    digits = float(f"{value:.4g}")
    return _unsigned(f"{digits:,.0f}" if abs(digits) >= 1000 else f"{digits:g}")


def _unsigned(digits: str) -> str:
    """Without a minus before a zero."""
    return digits if digits.strip("-0.") else digits.lstrip("-")


def choose_metric(
    task: str, name: str | None = None, shares: Array | None = None
) -> tuple[Metric, str]:
    """The metric asked for, or the default and why: R², accuracy, and the area under the curve
    where one of two classes is rare.

    >>> choose_metric("classification", shares=[0.97, 0.03])[0].name
    'auc'
    """
    if name is not None:
        return metric_named(task, name), ""
    if task == "regression":
        return METRICS["r2"], ""
    if shares is not None and len(shares) == 2 and min(shares) < RARE_CLASS:
        why = f"the rarer class has {min(shares):.1%} of the rows, so accuracy would say little"
        return METRICS["auc"], why
    return METRICS["accuracy"], ""


def metric_named(task: str, name: str) -> Metric:
    """The metric of that name, however it is written."""
    key = str(name).lower().replace("-", "_").replace(" ", "_")
    known = [m.name for m in METRICS.values() if m.task == task]
    if key not in known:
        raise Misnamed(f"metric must be one of {', '.join(known)} for {task}, got {name!r}.")
    return METRICS[key]
