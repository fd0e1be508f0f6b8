"""A call that is broken off, refused, or stopped by a warning leaves an estimator as it was."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogistic,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    NadarayaWatson,
    OneClassSVM,
    Perceptron,
    SoftNeighborsClassifier,
)
from mercer.kernels import Callable, Gaussian
from mercer.models.smoothing import estimator as smoothing
from mercer.models.svm import classifier, one_class, regressor

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(30, 2)), RNG.normal(size=(40, 3))
WORDS = ["ab", "abc", "b", "bc"] * 10
ESTIMATORS = {
    "ridge": KernelRidge(Gaussian(), via="exact"),
    "gp": GaussianProcessRegressor(Gaussian(), noise=0.1, via="exact"),
    "gp classifier": GaussianProcessClassifier(Gaussian(), via="exact"),
    "svc": KernelSVC(Gaussian(), warm_start=True),
    "svr": KernelSVR(Gaussian()),
    "one class": OneClassSVM(Gaussian()),
    "pca": KernelPCA(2, Gaussian(), via="exact"),
    "k-means": KernelKMeans(2, kernel=Gaussian(), random_state=0),
    "kernel perceptron": KernelPerceptron(Gaussian()),
    "nadaraya-watson": NadarayaWatson(Gaussian()),
    "neighbours": SoftNeighborsClassifier(Gaussian()),
    "logistic": KernelLogistic(),
    "perceptron": Perceptron(),
}


def labels(rows):
    return np.arange(len(rows)) % 2


def interrupt(*args, **options):
    raise KeyboardInterrupt


class BrokenLift(TransformerMixin, BaseEstimator):
    """A map that is broken off."""

    def fit(self, X, y=None):
        raise KeyboardInterrupt

    def transform(self, X):
        return X


def broken(model, monkeypatch):
    """The same model, whose next fit is broken off when its rows have been looked at."""
    monkeypatch.setattr(smoothing, "fit", interrupt)  # which reads no value of the kernel
    over_features = isinstance(model, KernelLogistic | Perceptron)
    return model.set_params(
        **({"lift": BrokenLift()} if over_features else {"kernel": Callable(interrupt)})
    )


def unchanged(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_is_broken_off_leaves_all(name, monkeypatch):
    """Of fewer columns before, with names; or of none."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    fitted = clone(ESTIMATORS[name]).fit(frame, labels(X))
    for model in (clone(ESTIMATORS[name]), fitted):
        before = dict(vars(broken(model, monkeypatch)))
        with pytest.raises(KeyboardInterrupt):
            model.fit(Z, labels(Z) + 5)
        unchanged(model, before)
    assert list(fitted.feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n not in ("logistic", "perceptron")])
def test_rows_of_items_that_are_broken_off(name, monkeypatch):
    fitted = clone(ESTIMATORS[name]).fit(X, labels(X))
    for model in (clone(ESTIMATORS[name]), fitted):
        before = dict(vars(broken(model, monkeypatch)))
        with pytest.raises((KeyboardInterrupt, ValueError)):
            model.fit(WORDS, labels(WORDS) + 5)
        unchanged(model, before)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (KernelLogistic(alpha=1e-6, max_iter=1), Z),
        (KernelKMeans(3, kernel=Gaussian(), random_state=0), np.repeat(Z[:2], 20, axis=0)),
        (KernelRidge(Gaussian(), via="iterative", max_iter=1, alpha=1e-9, tol=1e-14), Z),
    ],
    ids=["logistic", "k-means", "ridge"],
)
def test_a_warning_that_is_an_error_leaves_all(model, rows):
    before = dict(vars(model))
    with pytest.raises(ConvergenceWarning):
        model.fit(rows, labels(rows))
    unchanged(model, before)


@pytest.mark.parametrize(
    ("name", "room"), [("one class", one_class), ("svr", regressor)], ids=["one class", "svr"]
)
def test_a_warning_at_the_end_of_a_dual_leaves_all(name, room, monkeypatch):
    model = clone(ESTIMATORS[name]).fit(X, labels(X))
    before = dict(vars(model))
    monkeypatch.setattr(room, "warn_if_open", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Z, labels(Z))
    unchanged(model, before)


def test_probabilities_that_are_broken_off_leave_the_machine(monkeypatch):
    model = clone(ESTIMATORS["svc"]).set_params(probability=True).fit(X, labels(X))
    before = dict(vars(model))
    monkeypatch.setattr(classifier, "with_probabilities", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Z, labels(Z) + 5)
    unchanged(model, before)
