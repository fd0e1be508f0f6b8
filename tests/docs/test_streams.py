"""The table of docs/guide/streams.md is what the models do: what it says works is tried, and what
not is not there or refused in a sentence."""

import re
from pathlib import Path

import numpy as np
import pytest

from mercer import (
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSVC,
    NGrams,
    Perceptron,
    SparseClassifier,
    SparseRegressor,
)
from mercer.kernels import Gaussian
from mercer.methods import Fourier

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "streams.md"
ROW = re.compile(r"^\| (.+?) \| (yes|no) \| (yes|no) \| (yes|no) \| .+ \|$", re.MULTILINE)
CALLS = ("partial_fit", "merge", "forget")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = X[:, 0] + 0.1 * rng.normal(size=60)
TEXTS = np.array([f"a {w} film" for w in ["warm", "dull", "long", "funny"]] * 15, dtype=object)
k = Gaussian(1.0)
MODELS = {
    "`KernelRidge` over features": [lambda: KernelRidge(k, via=Fourier(20), random_state=0)],
    "`KernelRidge` over landmarks": [lambda: KernelRidge(k, via="landmarks", random_state=0)],
    "`KernelRidge`, exact": [lambda: KernelRidge(k, via="exact")],
    "`GaussianProcessRegressor` over features": [
        lambda: GaussianProcessRegressor(k, noise=0.1, via=Fourier(200), random_state=0)
    ],
    "`GaussianProcessRegressor`, exact": [
        lambda: GaussianProcessRegressor(k, noise=0.1, via="exact")
    ],
    "`KernelPCA` over features": [lambda: KernelPCA(2, k, via=Fourier(20), random_state=0)],
    "`NGrams`": [lambda: NGrams(words=(1, 1), weight="tfidf", vocabulary="learn")],
    "`Perceptron`, `KernelPerceptron`": [lambda: Perceptron(k), lambda: KernelPerceptron(k)],
    "`KernelLogistic`, `KernelSVC`": [lambda: KernelLogistic(k), lambda: KernelSVC(k)],
    "`SparseRegressor`, `SparseClassifier`": [SparseRegressor, SparseClassifier],
}


def works(make, call):
    """Whether a fitted model has the method, and takes the call."""
    first, second = fitted(make, slice(0, 30)), fitted(make, slice(30, 60))
    try:
        method = getattr(first, call)
    except AttributeError:
        return False
    more = slice(30, 40) if call == "partial_fit" else slice(0, 5)
    try:
        method(second) if call == "merge" else method(*given(first, more))
    except ValueError:
        return False
    return True


def fitted(make, rows):
    model = make()
    return model.fit(*given(model, rows))


def given(model, rows):
    if isinstance(model, NGrams):
        return (TEXTS[rows],)
    classifies = getattr(model, "_estimator_type", "") == "classifier" or hasattr(
        type(model), "decision_function"
    )
    return X[rows], (y[rows] > 0 if classifies else y[rows])


ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_all_rows_are_tried():
    assert {name for name, *_ in ROWS} == set(MODELS)


@pytest.mark.parametrize(("name", "said"), [(n, s) for n, *s in ROWS], ids=[r[0] for r in ROWS])
def test_the_table_says_what_the_models_do(name, said):
    for make in MODELS[name]:
        found = ["yes" if works(make, call) else "no" for call in CALLS]
        assert found == list(said)
