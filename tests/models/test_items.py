"""Wherever the kernel takes items (strings, objects), so does the learner, with the answers of the
Gram matrix."""

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

import mercer
from mercer.kernels import Callable, Constant, Gaussian
from mercer.methods import Fourier, Landmarks

WORDS = [
    "abab",
    "aab",
    "abba",
    "bbaa",
    "xyx",
    "xxy",
    "yxyx",
    "yy",
    "abxy",
    "bayx",
    "aaaa",
    "bbbb",
    "xxxx",
    "yyyy",
    "ab",
    "xy",
]
NEW = ["aba", "xyy", "q", "", "abab"]
Y = np.array([w.count("x") + w.count("y") - 2.0 * w.count("a") for w in WORDS])
CLASSES = np.array(["low", "high"])[(Y > 0).astype(int)]


def pairs(words):
    """Counts of letters and of neighbouring pairs of letters."""
    both = [a + b for a in "abxy" for b in "abxy"]
    grams = [
        [w.count(a) for a in "abxy"]
        + [sum(w[i : i + 2] == ab for i in range(len(w))) for ab in both]
        for w in words
    ]
    return np.array(grams, float).reshape(len(words), 20)


def spectrum(A, B):
    return Gaussian(3.0)(pairs(A), pairs(B))


@dataclass(frozen=True)
class Thing:
    word: str


def of_things(A, B):
    return spectrum([t.word for t in A], [t.word for t in B])


LEARNERS = {
    "ridge": mercer.KernelRidge(alpha=0.1),
    "ridge iterative": mercer.KernelRidge(alpha=0.1, via="iterative"),
    "ridge loo": mercer.KernelRidge(alpha=0.1, cv="loo"),
    "ridge folds": mercer.KernelRidge(alpha=0.1, via="exact", cv=KFold(4)),
    "process": mercer.GaussianProcessRegressor(noise=0.1),
    "process iterative": mercer.GaussianProcessRegressor(noise=0.1, via="iterative"),
    "process learnt": mercer.GaussianProcessRegressor(random_state=0),
    "process classifier": mercer.GaussianProcessClassifier(fixed=True),
    "components": mercer.KernelPCA(2),
    "components iterative": mercer.KernelPCA(2, via="iterative", random_state=0),
    "clusters": mercer.KernelKMeans(2, random_state=0),
    "vectors": mercer.KernelSVC(tol=1e-8),
    "regression vectors": mercer.KernelSVR(tol=1e-8),
    "one class": mercer.OneClassSVM(tol=1e-8),
    "average": mercer.NadarayaWatson(),
    "neighbours": mercer.SoftNeighborsClassifier(),
    "perceptron": mercer.KernelPerceptron(),
}
OVER_LANDMARKS = {
    "ridge": mercer.KernelRidge(alpha=0.1, via=Landmarks(16), random_state=0),
    "process": mercer.GaussianProcessRegressor(noise=0.1, via=Landmarks(16), random_state=0),
    "process classifier": mercer.GaussianProcessClassifier(
        fixed=True, via=Landmarks(16), random_state=0
    ),
    "components": mercer.KernelPCA(2, via=Landmarks(16), random_state=0),
    "clusters": mercer.KernelKMeans(2, via=Landmarks(16), random_state=0),
    "logistic": mercer.KernelLogistic(alpha=0.1, via=Landmarks(16), random_state=0),
}


def said(m, A):
    ways = ("predict", "decision_function", "predict_proba", "transform")
    return [np.asarray(getattr(m, way)(A)) for way in ways if hasattr(m, way)]


def target(m):
    return (
        CLASSES
        if isinstance(
            m,
            (
                mercer.GaussianProcessClassifier,
                mercer.KernelSVC,
                mercer.SoftNeighborsClassifier,
                mercer.KernelPerceptron,
                mercer.KernelLogistic,
            ),
        )
        else Y
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("things", [False, True], ids=["strings", "objects"])
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_take_items(name, things):
    kernel = Callable(of_things) if things else Callable(spectrum)
    X, Z = ([Thing(w) for w in ws] if things else ws for ws in (WORDS, NEW))
    m = clone(LEARNERS[name]).set_params(kernel=kernel).fit(X, target(LEARNERS[name]))
    twin = clone(LEARNERS[name]).set_params(kernel=Gaussian(3.0))
    if "learnt" in name:
        twin.set_params(fixed="all")  # a function has no bandwidth to learn
    twin.fit(pairs(WORDS), target(twin))
    for ours, theirs in zip(said(m, Z), said(twin, pairs(NEW)), strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(
                np.abs(ours), np.abs(theirs), rtol=1e-4, atol=1e-4
            )  # signs of components may differ
        elif name != "clusters":
            np.testing.assert_array_equal(ours, theirs)
    for again in (clone(m).fit(X, target(m)), pickle.loads(pickle.dumps(m))):
        for ours, theirs in zip(said(m, Z), said(again, Z), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", OVER_LANDMARKS)
def test_landmarks_of_items(name):
    m = (
        clone(OVER_LANDMARKS[name])
        .set_params(kernel=Callable(spectrum))
        .fit(WORDS, target(OVER_LANDMARKS[name]))
    )
    twin = clone(OVER_LANDMARKS[name]).set_params(kernel=Gaussian(3.0)).fit(pairs(WORDS), target(m))
    for ours, theirs in zip(said(m, NEW), said(twin, pairs(NEW)), strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"average", "neighbours", "ridge folds"}))
def test_models_of_strings_are_saved(name, tmp_path):
    kernel = Constant()  # what takes strings and has no function in it
    m = clone(LEARNERS[name]).set_params(kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant tells nothing apart
        m.fit(WORDS, target(m))
        m.save(tmp_path / "m")
        back = mercer.load(tmp_path / "m")
        for ours, theirs in zip(said(m, NEW), said(back, NEW), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_intervals_left_out_rows_and_streams_of_items():
    m = mercer.KernelRidge(Callable(spectrum), alpha=0.1).fit(WORDS, Y)
    twin = mercer.KernelRidge(Gaussian(3.0), alpha=0.1).fit(pairs(WORDS), Y)
    np.testing.assert_allclose(m.loo_predictions_, twin.loo_predictions_, rtol=1e-6)
    np.testing.assert_allclose(
        m.predict_interval(NEW, 0.5, "jackknife+"),
        twin.predict_interval(pairs(NEW), 0.5, "jackknife+"),
        rtol=1e-6,
    )
    gp = (
        mercer.GaussianProcessRegressor(Callable(spectrum), 0.1, via="exact")
        .fit(WORDS[:10], Y[:10])
        .partial_fit(WORDS[10:], Y[10:])
    )
    whole = mercer.GaussianProcessRegressor(Callable(spectrum), 0.1, via="exact").fit(WORDS, Y)
    np.testing.assert_allclose(gp.predict(NEW), whole.predict(NEW), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        gp.forget(WORDS[10:], Y[10:]).predict(NEW),
        mercer.GaussianProcessRegressor(Callable(spectrum), 0.1, via="exact")
        .fit(WORDS[:10], Y[:10])
        .predict(NEW),
        rtol=1e-6,
        atol=1e-6,
    )
    assert gp.predict(NEW, return_std=True)[1].shape == (5,)
    stream = mercer.KernelRidge(
        Callable(spectrum), alpha=0.1, via=Landmarks(16), random_state=0
    ).partial_fit(WORDS, Y)
    assert np.isfinite(stream.partial_fit(NEW, np.zeros(5)).predict(NEW)).all()


def test_what_items_cannot_do_is_said():
    for m, match in [
        (mercer.KernelRidge(Gaussian()), "."),
        (
            mercer.KernelRidge(Callable(spectrum), via=Fourier(10)),
            "items have no features but those of landmarks",
        ),
        (
            mercer.KernelPCA(2, Callable(spectrum), via=Fourier(10)),
            "items have no features but those of landmarks",
        ),
        (
            mercer.GaussianProcessRegressor(Callable(spectrum), 0.1, via=Fourier(10)),
            "items have no features but those of landmarks",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            m.fit(WORDS, Y)
    m = mercer.KernelRidge(Callable(lambda A, B: np.ones((len(A), len(B))))).fit(WORDS, Y)
    with pytest.raises(ValueError, match="model is of rows of items, but X lists numbers"):
        m.predict(pairs(NEW))
    with pytest.raises(ValueError, match="model is of rows of numbers, but X lists items"):
        m.fit(pairs(WORDS), Y).predict(NEW)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        m.fit(WORDS, Y[:3])
    with pytest.raises(ValueError, match="NaN"):
        m.fit(WORDS, np.full(len(WORDS), np.nan))
    with pytest.raises(
        ValueError, match="items, and features of this kernel, have no way back to rows"
    ):
        mercer.KernelPCA(2, Callable(spectrum)).fit(WORDS).inverse_transform(np.ones((1, 2)))


def test_features_of_items_are_those_of_landmarks():
    """Where nothing else is asked for; so what folds and logistic regression need is there without
    a word."""
    from sklearn.model_selection import KFold

    k = Callable(spectrum)
    asked = mercer.KernelLogistic(k, via="landmarks", random_state=0).fit(WORDS, Y > 0)
    np.testing.assert_array_equal(
        mercer.KernelLogistic(k, random_state=0).fit(WORDS, Y > 0).predict(NEW), asked.predict(NEW)
    )
    assert mercer.KernelRidge(k, cv=KFold(4), random_state=0).fit(WORDS, Y).cv_scores(
        [0.1, 1.0]
    ).shape == (2, 4)
    copies = mercer.KernelRidge(k, cv=4, random_state=0).fit(WORDS + WORDS, np.append(Y, Y))
    assert copies.cv_scores([0.1]).shape == (1, 4)
    fold = copies.fitted_.rows.fold()
    np.testing.assert_array_equal(fold[: len(WORDS)], fold[len(WORDS) :])
    lists = Callable(lambda A, B: spectrum(["".join(a) for a in A], ["".join(b) for b in B]))
    with pytest.raises(ValueError, match=r"items have no hash.*KFold"):
        mercer.KernelRidge(lists, cv=4, random_state=0).fit([list(w) for w in WORDS], Y)
