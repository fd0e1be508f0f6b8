"""The logger "mercer": quiet by default, told under `verbose`, and nothing is left behind."""

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import models
from mercer.kernels import Gaussian, Linear
from mercer.logs import LOGGER, heard, logger, telling
from mercer.methods import Fourier

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=80)
LABELS = (y > 0).astype(int)
SPARSE = sp.csr_array(np.where(np.abs(rng.normal(size=(80, 40))) > 1.6, 1.0, 0.0))
TOLD = {
    "svm": (models.KernelSVC(), X, LABELS),
    "svm over features": (models.KernelSVC(via=Fourier(20), random_state=0), X, LABELS),
    "svm over sparse rows": (models.KernelSVC(Linear()), SPARSE, LABELS),
    "svm regression": (models.KernelSVR(), X, y),
    "one class": (models.OneClassSVM(), X, None),
    "ridge": (models.KernelRidge(via="iterative"), X, y),
    "ridge over sparse rows": (models.KernelRidge(Linear()), SPARSE, y),
    "gp": (models.GaussianProcessRegressor(random_state=0), X, y),
    "gp classes": (models.GaussianProcessClassifier(random_state=0), X, LABELS),
    "feature machine": (models.FeatureMachineRegressor(random_state=0), X, y),
    "feature machine of classes": (
        models.FeatureMachineClassifier(random_state=0),
        X,
        LABELS,
    ),
    "learned metric": (models.LearnedMetric(random_state=0), X, y),
    "sparse": (models.SparseRegressor(cv=2, n_alphas=5), X, y),
    "sparse classes": (models.SparseClassifier(cv=2, n_alphas=5), X, LABELS),
    "logistic": (models.KernelLogistic(via=Fourier(20), random_state=0), X, LABELS),
    "logistic of sparse rows": (models.KernelLogistic(Linear()), SPARSE, LABELS),
    "k-means": (models.KernelKMeans(random_state=0), X, None),
    "perceptron": (models.Perceptron(max_iter=3), X, LABELS),
    "kernel perceptron": (models.KernelPerceptron(Gaussian()), X, LABELS),
}


@pytest.fixture
def nobody(monkeypatch):
    """Called in a test, nobody listens any more: pytest has handlers of its own."""

    def listens():
        monkeypatch.setattr(LOGGER, "propagate", False)
        monkeypatch.setattr(LOGGER, "handlers", [logging.NullHandler()])
        assert not heard()

    return listens


def state():
    return LOGGER.level, list(LOGGER.handlers)


def lines(capfd):
    out, err = capfd.readouterr()
    assert out == ""
    return [line for line in err.splitlines() if line.startswith("mercer.")]


@pytest.mark.parametrize("name", TOLD)
def test_long_fits_tell_their_progress_and_answer_the_same(name, nobody, capfd):
    nobody()
    model, rows, targets = TOLD[name]
    before = state()
    quiet = model.set_params(verbose=False).fit(rows, targets)
    ask = quiet.predict if hasattr(quiet, "predict") else quiet.transform
    plain = ask(rows)
    assert lines(capfd) == []
    told = model.set_params(verbose=True).fit(rows, targets)
    assert lines(capfd)
    ask = told.predict if hasattr(told, "predict") else told.transform
    np.testing.assert_array_equal(ask(rows), plain)
    assert state() == before


def test_every_estimator_that_is_told_of_has_the_switch():
    have = {
        name
        for name in models.__all__
        if hasattr(getattr(models, name), "get_params")
        and name != "WeightedUnion"
        and "verbose" in getattr(models, name)().get_params()
    }
    assert have == {type(m).__name__ for m, *_ in TOLD.values()}


def test_lines_come_once_however_often_it_is_asked(nobody, capfd):
    nobody()
    first = models.KernelSVC(verbose=True).fit(X, LABELS) and lines(capfd)
    for _ in range(3):
        models.KernelSVC(verbose=1).fit(X, LABELS)
        assert lines(capfd) == first
    assert len(set(first)) == len(first)


def test_a_listener_of_ones_own_hears_instead(nobody, capfd):
    nobody()
    heard_ = []
    own = logging.Handler()
    own.emit = lambda record: heard_.append(record.getMessage())
    LOGGER.addHandler(own)
    assert heard()
    try:
        models.KernelKMeans(2, random_state=0, verbose=True).fit(X)
    finally:
        LOGGER.removeHandler(own)
    assert heard_
    assert heard_[0].startswith("step 1: inertia")
    assert lines(capfd) == []


def test_a_level_is_enough_without_verbose(caplog):
    with caplog.at_level(logging.INFO, "mercer"):
        models.Perceptron(max_iter=2).fit(X, LABELS)
    assert {r.name for r in caplog.records} == {"mercer.perceptron"}
    assert "pass 1" in caplog.text
    caplog.clear()
    models.Perceptron(max_iter=2).fit(X, LABELS)
    assert not caplog.records


def test_a_fit_that_fails_leaves_the_logger_as_it_was(nobody):
    nobody()
    before = state()
    with pytest.raises(ValueError, match="1 class"):
        models.KernelSVC(verbose=True).fit(X, np.zeros(80))
    assert state() == before


def test_calls_within_and_beside_one_another_are_told_once(nobody, capfd):
    nobody()
    before = state()
    with telling(True), telling(2), telling(False):
        logger("test").info("inside")
    with ThreadPoolExecutor(8) as pool:

        def one(i):
            with telling(True):
                logger("test").info("line %d", i)

        list(pool.map(one, range(40)))
    found = lines(capfd)
    assert found[0] == "mercer.test: inside"
    assert sorted(found[1:]) == sorted(f"mercer.test: line {i}" for i in range(40))
    assert state() == before


@pytest.mark.parametrize("wrong", ["yes", None, -1, 0.5, [True]])
def test_what_no_verbosity_can_be(wrong):
    with (
        pytest.raises(ValueError, match=r"^verbose must be True, False or .* got .*\.$"),
        telling(wrong),
    ):
        pass
