"""Lifts of texts inside kernel estimators, and maps that learn from targets: folds see nothing of
what they judge."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import (
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    LearnedMetric,
    NGrams,
    Perceptron,
    kernels,
    lifts,
)

RNG = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(40)]
Y = RNG.integers(0, 2, 60)
TEXTS = [
    " ".join([*RNG.choice(WORDS, 8), *(["good"] if y else ["bad"]) * (i % 3)])
    for i, y in enumerate(Y)
]
MODELS = {
    "ridge": KernelRidge,
    "svc": KernelSVC,
    "logistic": KernelLogistic,
    "perceptron": Perceptron,
}
PHI = NGrams(words=(1, 2), n_features=512, keep_names=True)


@pytest.mark.parametrize("phi", [PHI, NGrams(vocabulary="learn", weight="tfidf")], ids=type)
@pytest.mark.parametrize("name", MODELS)
def test_a_lift_of_texts_is_a_step_before(name, phi):
    own = dict(lift=lifts.Identity()) if name == "perceptron" else dict(kernel="linear")
    m = MODELS[name](lift=phi).fit(TEXTS, Y)
    twin = MODELS[name](**own).fit(clone(phi).fit_transform(TEXTS), Y)
    np.testing.assert_allclose(m.coef_, twin.coef_, atol=1e-6)
    np.testing.assert_array_equal(
        m.predict(TEXTS), twin.predict(clone(phi).fit(TEXTS).transform(TEXTS))
    )


@pytest.mark.parametrize("name", MODELS)
def test_files_and_names(name, tmp_path):
    m = MODELS[name](lift=PHI).fit(TEXTS, Y)
    m.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(
        mercer.load(tmp_path / "m.mercer").predict(TEXTS), m.predict(TEXTS)
    )
    (strongest,) = m.coef_by_name(top=6).values()
    assert {"good", "bad"} & {n for names, _ in strongest for n in names.split(" | ")}


def test_texts_of_every_container():
    m = KernelSVC(lift=PHI).fit(TEXTS, Y)
    for X in (np.array(TEXTS), pd.Series(TEXTS), pa.array(TEXTS), (t for t in TEXTS)):
        assert m.predict(X).tolist() == m.predict(TEXTS).tolist()
    assert KernelSVC(lift=PHI).fit(pa.chunked_array([TEXTS]), Y).coef_.tolist() == m.coef_.tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("X", "match"),
    [
        ("one text", "a list of texts.*got one text"),
        (pd.DataFrame({"t": TEXTS}), "got a frame"),
        (np.array(TEXTS)[:, None], "got 2 dimensions"),
        ({"a": 1}, "got dict"),
        (3, "got int"),
        ([], "0 texts"),
        ([*TEXTS[:-1], None], "document 59 is None"),
        ([*TEXTS[:-1], 2.5], "document 59 is 2.5"),
    ],
    ids=str,
)
def test_what_is_no_list_of_texts_is_refused_in_a_sentence(name, X, match):
    with pytest.raises(ValueError, match=match):
        MODELS[name](lift=PHI).fit(X, Y)
    with pytest.raises(ValueError, match=match):
        MODELS[name](lift=PHI).fit(TEXTS, Y).predict(X)


def test_maps_without_targets_say_what_to_do():
    ratio = NGrams(weight="ratio", n_features=64)
    for m in (KernelKMeans(2, lift=ratio), KernelPCA(2, lift=ratio), Perceptron(lift=ratio)):
        with pytest.raises(ValueError, match=r"NGrams learns from y.*give one that does not"):
            m.fit(TEXTS, Y)
    assert KernelPCA(2, lift=PHI).fit_transform(TEXTS).shape == (60, 2)
    assert GaussianProcessRegressor(lift=PHI).fit(TEXTS, Y).predict(TEXTS).shape == (60,)


# maps that learn from targets
def held_out(score, make, X, y, fold):
    """The scores of models that are fitted without a fold, map and all."""
    found = []
    for j in range(3):
        on, held = fold != j, fold == j
        m = make().fit([X[i] for i in np.flatnonzero(on)] if isinstance(X, list) else X[on], y[on])
        asked = [X[i] for i in np.flatnonzero(held)] if isinstance(X, list) else X[held]
        found.append(score(m, asked, y[held]))
    return found


def folds(n):
    fold = np.arange(n) % 3
    return fold, [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]


def likelihood(m, X, y):
    return np.mean(log_expit(np.where(y == 1, 1, -1) * m.decision_function(X)))


RATIO = NGrams(words=(1, 1), weight="ratio", n_features=1024)


@pytest.mark.parametrize("name", ["svc", "logistic", "ridge"])
def test_ratios_are_learnt_without_the_fold_they_are_judged_by(name):
    fold, cv = folds(60)
    given = dict(svc="Cs", logistic="alphas", ridge="alphas")[name]
    values, penalty = [0.01, 10.0], dict(svc="C", logistic="alpha", ridge="alpha")[name]
    m = MODELS[name](lift=RATIO, cv=cv, **{given: values}).fit(TEXTS, Y)
    scores = m.cv_scores(values) if name == "ridge" else m.path_.scores
    order = values if name == "ridge" else m.path_.values.tolist()
    for i, value in enumerate(order):
        score = likelihood if name == "logistic" else lambda m, X, y: m.score(X, y)
        expected = held_out(
            score, lambda v=value: MODELS[name](lift=RATIO, **{penalty: v}), TEXTS, Y, fold
        )
        np.testing.assert_allclose(scores[i], expected, atol=2e-2 if name == "logistic" else 1e-4)


@pytest.mark.parametrize("name", ["svc", "logistic", "ridge"])
def test_nothing_is_seen_where_there_is_nothing_to_see(name):
    rng, (_, cv) = np.random.default_rng(3), folds(60)
    noise, y = [" ".join(f"w{i}" for i in rng.integers(0, 200, 12)) for _ in range(60)], Y
    given = dict(svc="Cs", logistic="alphas", ridge="alphas")[name]

    def mean(m):
        return (m.cv_scores([0.1]) if name == "ridge" else m.path_.scores).mean()

    at = {given: [10.0 if name == "svc" else 0.1]}
    apart = MODELS[name](lift=RATIO, cv=cv, **at).fit(noise, y)
    whole = clone(RATIO).fit_transform(noise, y)
    leaking = MODELS[name]("linear", cv=cv, **at).fit(whole, y)
    assert mean(leaking) > mean(apart) + 0.25


@pytest.mark.parametrize(
    "phi", [lifts.Leaves(random_state=0), LearnedMetric(rounds=2, random_state=0)], ids=type
)
def test_folds_of_maps_of_numbers(phi):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 6))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=90)
    fold, cv = folds(90)
    m = KernelRidge(lift=phi, cv=cv, alphas=[0.1, 10.0], tol=1e-10).fit(X, y)
    scores = m.cv_scores([0.1, 10.0])
    assert m.alpha_ in (0.1, 10.0)
    for i, alpha in enumerate([0.1, 10.0]):
        expected = held_out(
            lambda m, X, y: m.score(X, y),
            lambda a=alpha: KernelRidge(lift=phi, alpha=a, tol=1e-10),
            X,
            y,
            fold,
        )
        np.testing.assert_allclose(scores[i], expected, atol=1e-5)


def test_left_out_rows_of_a_learnt_map_are_refused_and_intervals_hold():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    y = rng.normal(size=300)  # nothing to learn: a map that saw the rows would seem to know them
    leaves = lifts.Leaves(cross_fit=None, random_state=0)
    with pytest.raises(ValueError, match=r"Leaves learns from y.*number of folds"):
        KernelRidge(lift=leaves, cv="loo").fit(X, y)
    m = KernelRidge(lift=leaves, alpha=1e-3).fit(X[:200], y[:200])
    with pytest.raises(AttributeError, match="learns from y"):
        m.loo_predictions_  # noqa: B018
    with pytest.raises(ValueError, match="learns from y"):
        m.predict_interval(X, method="jackknife+")
    low, high = m.predict_interval(X[200:])
    assert ((low <= y[200:]) & (y[200:] <= high)).mean() > 0.8


def test_searches_of_scikit_learn_take_texts():
    search = GridSearchCV(
        KernelSVC(lift=RATIO), {"C": [0.1, 1.0], "lift__words": [(1, 1), (1, 2)]}, cv=3
    )
    assert search.fit(TEXTS, Y).predict(TEXTS[:2]).shape == (2,)
    assert KernelSVC(kernels.Linear()).__sklearn_tags__().input_tags.two_d_array
    assert not KernelSVC(lift=RATIO).__sklearn_tags__().input_tags.two_d_array
