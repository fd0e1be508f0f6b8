"""Results of fits to show: small simulated tables, every number in it computed from them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

import mercer
from mercer.automl.result import Contender, FitResult

NAMES = ("rooms", "age", "income", "latitude", "longitude", "occupants", "distance_to_sea", "noise")


class Fourier(StandardScaler):
    """Cosines of random directions, for a contender that is no polynomial."""

    def transform(self, X, copy=None):
        W = np.random.default_rng(0).normal(size=(X.shape[1], 100)) / 3.0
        Z = super().transform(X) @ W
        return np.hstack([np.cos(Z), np.sin(Z)])


@cache
def regression() -> FitResult:
    """Prices with a long tail; the metric is R² of the price."""
    X, rng = _table(1200)
    y = np.exp(
        11
        + 0.5 * X[:, 2]
        + 0.5 * np.sin(X[:, 3]) * X[:, 4]
        + 0.1 * X[:, 0] ** 2
        + 0.2 * rng.normal(size=len(X))
    )
    models = _models(lambda: Ridge(1.0), HistGradientBoostingRegressor(max_iter=60, random_state=0))
    fits = _fitted(models, X[:900], np.log(y[:900]))
    predicted = {name: np.exp(model.predict(X[900:])) for name, model in fits.items()}
    predicted["constant"] = np.full(300, y[:900].mean())
    truth = y[900:]
    scored = lambda yes, no: 1 - np.sum((yes - no) ** 2) / np.sum((yes - truth.mean()) ** 2)
    result = _judged(
        predicted, truth, scored, X[900:], lambda best, X: np.exp(fits[best].predict(X))
    )
    best = predicted[_chosen(result)]
    missed = np.abs(np.log(truth) - np.log(best))
    half = np.quantile(missed[::2], 0.9)
    inside = missed[1::2] <= half
    worst = np.argsort(-np.abs(truth - best))[:10]
    return replace(
        result,
        target="price",
        task="regression",
        task_reason="The target has 1,200 distinct numbers, so this is regression.",
        metric="r2",
        metric_note="R²: 1 is perfect, 0 is as good as the mean.",
        points=tuple(zip(truth.tolist(), best.tolist(), strict=True)),
        interval={
            "coverage_asked": 0.9,
            "coverage_measured": float(inside.mean()),
            "median_width": float(np.median(best) * 2 * half),
            "guarantee": "Split conformal: at least 90 % of new rows are covered on average, if they come from the same source.",
        },
        worst=tuple(
            _worst(i, truth[i], best[i], abs(truth[i] - best[i]), X[900 + i])
            for i in worst.tolist()
        ),
    )


@cache
def binary() -> FitResult:
    """Two classes of which one is rare; the metric is the log loss, of which less is better."""
    X, rng = _table(2000)
    y = (
        X[:, 2] - 1.2 + 3 * (X[:, 3] > 0.5) * (X[:, 4] > 0) + rng.logistic(size=len(X)) * 0.6 > 0
    ).astype(int)
    return _classified(X, y, ("stays", "leaves"), "churned")


@cache
def many_classes() -> FitResult:
    """Thirty classes, confused with their neighbours; the metric is the accuracy."""
    X, rng = _table(1500)
    turn = np.arctan2(X[:, 3], X[:, 4]) + 0.05 * rng.normal(size=len(X))
    y = np.minimum(29, ((turn + np.pi) / (2 * np.pi) * 30).astype(int).clip(0))
    return _classified(X, y, tuple(f"sector {index:02d}" for index in range(30)), "sector")


def _classified(X, y, classes, target):
    split = 3 * len(X) // 4
    trees = HistGradientBoostingClassifier(
        max_iter=20 if len(classes) == 2 else 4, max_leaf_nodes=6, random_state=0
    )
    models = _models(lambda: LogisticRegression(C=1.0, max_iter=60, tol=0.01), trees)
    fits = _fitted(models, X[:split], y[:split])
    chances = {
        name: _all(model.predict_proba(X[split:]), model.classes_, len(classes))
        for name, model in fits.items()
    }
    chances["constant"] = np.tile(
        np.bincount(y[:split], minlength=len(classes)) / split, (len(X) - split, 1)
    )
    truth, few = y[split:], len(classes) == 2
    loss = lambda yes, P: -np.mean(np.log(np.clip(P[np.arange(len(yes)), yes], 1e-6, 1)))
    right = lambda yes, P: np.mean(P.argmax(1) == yes)
    new = lambda best, X: _all(fits[best].predict_proba(X), fits[best].classes_, len(classes))
    result = _judged(chances, truth, loss if few else right, X[split:], new, higher=not few)
    P = chances[_chosen(result)]
    said = P.argmax(1)
    error = 1 - P[np.arange(len(truth)), truth]
    return replace(
        result,
        target=target,
        task="classification",
        task_reason=f"The target has {len(classes)} distinct words, so this is classification.",
        classes=classes,
        metric="log_loss" if few else "accuracy",
        metric_note="Log loss: 0 is perfect, less is better."
        if few
        else "Accuracy: the share of rows with the right class.",
        confusion=tuple(
            map(tuple, confusion_matrix(truth, said, labels=range(len(classes))).tolist())
        ),
        calibration=_calibration(
            P[:, 1] if few else P.max(1), truth == 1 if few else said == truth
        ),
        worst=tuple(
            _worst(i, classes[truth[i]], classes[said[i]], error[i], X[split + i])
            for i in np.argsort(-error)[:10].tolist()
        ),
    )


def _table(n):
    rng = np.random.default_rng(7)
    return rng.normal(size=(n, len(NAMES))), rng


def _models(final, trees):
    return {
        "linear": make_pipeline(StandardScaler(), final()),
        "explicit": make_pipeline(StandardScaler(), PolynomialFeatures(2), final()),
        "fourier": make_pipeline(Fourier(), final()),
        "trees": trees,
    }


def _fitted(models, X, y):
    with threadpool_limits(1):  # many tiny trees: threads would only wait for each other
        return {name: model.fit(X, y) for name, model in models.items()}


TITLES = {
    "constant": ("Constant", "the mean of the target, or the shares of the classes"),
    "linear": ("Linear", "the columns as they are"),
    "explicit": ("Kitchen sink", "squares and products of the columns"),
    "fourier": ("Fourier features", "Gaussian kernel, 200 features"),
    "trees": ("Gradient boosted trees", "scikit-learn's HistGradientBoosting"),
}


def _chosen(result):
    return result.chosen.kind


def _judged(predicted, truth, scored, X, new, higher=True):
    """Scores, bootstrap intervals, gain, importances: everything but what the task adds."""
    rng = np.random.default_rng(1)
    draws = rng.integers(len(truth), size=(200, len(truth)))
    score = {name: float(scored(truth, guess)) for name, guess in predicted.items()}
    best = (max if higher else min)(("linear", "explicit", "fourier"), key=score.get)
    boots = {
        name: np.array([scored(truth[rows], guess[rows]) for rows in draws])
        for name, guess in predicted.items()
    }
    ends = {name: np.quantile(values, (0.025, 0.975)).tolist() for name, values in boots.items()}
    gain = np.quantile(boots[best] - boots["linear"], (0.025, 0.975)).tolist()
    contenders = tuple(
        Contender(
            *_title(kind),
            *_parts(predicted[kind], truth, scored),
            score[kind],
            *ends[kind],
            0.4,
            kind == best,
            "not part of the choice" if kind == "trees" else "",
        )
        for kind in ("constant", "linear", "explicit", "fourier", "trees")
    )
    winner = (max if higher else min)(score, key=score.get)
    beaten = (
        f" {TITLES[winner][0]} do better here: {score[winner]:.3f}."
        if winner != best
        else " Nothing else that was tried is better."
    )
    return FitResult(
        version=mercer.__version__,
        command="mercer fit houses.csv --target price --time 60 --seed 0 --out houses.mercer --report houses.html",
        seed=0,
        created="2026-01-02 03:04:05 UTC",
        target="",
        task="",
        task_reason="",
        classes=(),
        metric="",
        higher_is_better=higher,
        metric_note="",
        rows_train=3 * len(truth),
        rows_holdout=len(truth),
        rows_dropped=12,
        holdout_rule="a random quarter, by seed 0",
        contenders=contenders,
        lift_gain=(score[best] - score["linear"], *gain),
        verdict=f"On rows it has never seen the model scores {score[best]:.3f} (95 % interval {ends[best][0]:.3f} to {ends[best][1]:.3f}); "
        f"a linear model scores {score['linear']:.3f} and the constant {score['constant']:.3f}.{beaten}",
        importance=_importance(
            X, truth, scored, lambda X: new(best, X), score[best], 1 if higher else -1
        ),
        columns=tuple(map(_column, NAMES)) + EXTRA,
        warnings=(
            "Column customer_id was left out: every value is different, so it looks like an id.",
            "Column price_eur was left out: it is the target again (correlation 1.000), a leak.",
            "The target is skewed; its logarithm was learnt.",
        ),
        worst=(),
        points=(),
        interval=None,
        confusion=(),
        calibration=(),
        model_bytes=184_320,
        latency_row_ms=0.42,
        latency_1000_ms=3.1,
        seconds=41.7,
        memory_peak_bytes=612_000_000,
        plan=str(
            mercer.Plan(
                "features",
                "900 rows and 8 columns",
                {"n_features": 200, "bandwidth": 2.0},
                bytes=2.9e6,
                passes=1,
                rejected=(("exact", "a stream was asked for"),),
            )
        ),
    )


def _parts(guess, truth, scored):
    """Mean and standard error over five parts, in the place of a cross-validation."""
    scores = [scored(truth[rows], guess[rows]) for rows in np.array_split(np.arange(len(truth)), 5)]
    return float(np.mean(scores)), float(np.std(scores, ddof=1) / 5**0.5)


def _title(kind):
    name, detail = TITLES[kind]
    return name, kind, detail


def _importance(X, truth, scored, new, score, sign):
    rng = np.random.default_rng(2)
    losses = [
        [sign * (score - scored(truth, new(_shuffled(X, j, rng)))) for _ in range(5)]
        for j in range(X.shape[1])
    ]
    rows = [
        (name, float(np.mean(loss)), float(np.std(loss, ddof=1) / 5**0.5))
        for name, loss in zip(NAMES, losses, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row[1]))


def _shuffled(X, j, rng):
    X = X.copy()
    X[:, j] = rng.permutation(X[:, j])
    return X


def _calibration(said, seen):
    order = np.argsort(said)
    return tuple(
        (float(said[part].mean()), float(seen[part].mean()), len(part))
        for part in np.array_split(order, 10)
    )


def _all(P, known, n_classes):
    whole = np.zeros((len(P), n_classes))
    whole[:, known] = P
    return whole


def _worst(i, actual, predicted, error, row):
    values = {name: f"{value:.3f}" for name, value in zip(NAMES, row, strict=True)}
    as_plain = lambda value: value if isinstance(value, str) else float(value)
    return {
        "row": i + 1,
        "actual": as_plain(actual),
        "predicted": as_plain(predicted),
        "error": float(error),
        "values": values,
    }


def _column(name):
    return dict(
        name=name,
        kind="number",
        action="Scaled by its median and quartiles.",
        details="",
        n_missing=0,
        n_distinct=1200,
        outputs=(name,),
        warnings=(),
    )


EXTRA = (
    dict(
        name="region",
        kind="category",
        action="One feature for each of 5 categories; 3 rare ones are pooled.",
        details="north, south, east, west, other",
        n_missing=17,
        n_distinct=7,
        outputs=("region=north", "region=south", "region=east", "region=west", "region=other"),
        warnings=(),
    ),
    dict(
        name="sold_on",
        kind="date",
        action="Year, month and weekday as cycles, and days since the first date.",
        details="",
        n_missing=0,
        n_distinct=801,
        outputs=("year", "month sin", "month cos", "weekday sin", "weekday cos", "elapsed"),
        warnings=(),
    ),
    dict(
        name="customer_id",
        kind="id",
        action="Left out.",
        details="every value is different",
        n_missing=0,
        n_distinct=1200,
        outputs=(),
        warnings=("It looks like an id.",),
    ),
    dict(
        name="price_eur",
        kind="leak",
        action="Left out.",
        details="",
        n_missing=0,
        n_distinct=1200,
        outputs=(),
        warnings=("It is the target again.",),
    ),
)
EXAMPLES = {"regression": regression, "binary": binary, "many": many_classes}


def hostile(text: str) -> FitResult:
    """The binary example with the text wherever text can be."""
    e = binary()
    column = dict(
        e.columns[0],
        name=text,
        kind=text,
        action=text,
        details=text,
        warnings=(text,),
        outputs=(text,),
    )
    return replace(
        e,
        version=text,
        command=text,
        created=text,
        target=text,
        task_reason=text,
        classes=(text, text),
        metric=text,
        metric_note=text,
        holdout_rule=text,
        contenders=tuple(
            replace(c, name=text, kind=c.kind, detail=text, note=text) for c in e.contenders
        ),
        verdict=text,
        importance=((text, 0.1, 0.01), *e.importance),
        columns=(column, *e.columns),
        warnings=(text,),
        worst=(
            {"row": 1, "actual": text, "predicted": text, "error": 0.1, "values": {text: text}},
        ),
        plan=text,
    )


def wide(n_columns: int = 200, n_classes: int = 100) -> FitResult:
    """Many columns with long names, many classes."""
    e, rng = many_classes(), np.random.default_rng(3)
    names = [f"column_{j:03d}_" + "very_long_name_" * (j % 9) for j in range(n_columns)]
    counts = rng.poisson(0.3, size=(n_classes, n_classes)) + 20 * np.eye(n_classes, dtype=int)
    return replace(
        e,
        classes=tuple(f"class {index} {'long ' * (index % 12)}" for index in range(n_classes)),
        confusion=tuple(map(tuple, counts.tolist())),
        importance=tuple((name, 1.0 / (j + 1), 0.01) for j, name in enumerate(names)),
        columns=tuple(map(_column, names)),
        worst=(
            {
                "row": 1,
                "actual": "class 1",
                "predicted": "class 2",
                "error": 0.9,
                "values": dict.fromkeys(names, "x" * 200),
            },
        ),
    )
