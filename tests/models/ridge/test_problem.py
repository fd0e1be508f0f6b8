"""Settings of ridge regression: refused by name, or taken in any form."""

import numpy as np
import pytest

from mercer.lifts import Identity
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelLogistic, KernelRidge, Perceptron

X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KernelRidge(memory_limit="-4GB").fit(X60, y60), "memory_limit must be"),
        (lambda: KernelRidge(memory_limit=True).fit(X60, y60), "memory_limit must be"),
        (lambda: KernelRidge(via=Fourier(0)).fit(X60, y60), "n_features must be an integer >= 1"),
        (
            lambda: KernelRidge(via=Landmarks(0)).fit(X60, y60),
            "n_landmarks must be an integer >= 1",
        ),
        (
            lambda: KernelRidge(lift=Identity(), via=Fourier(7)).fit(X60, y60),
            "a lift is the feature map itself",
        ),
        (lambda: KernelRidge(tol=-1).fit(X60, y60), "tol must be a number > 0"),
        (lambda: KernelRidge(alpha="a").fit(X60, y60), "alpha must be a number >= 0"),
        (lambda: KernelRidge(alpha={}).fit(X60, y60), "alpha must be a number >= 0"),
        (lambda: KernelRidge(cv=3, alphas=[[1.0]]).fit(X60, y60), "alphas must be numbers >= 0"),
        (
            lambda: KernelRidge(via="exact", cv="loo", bandwidths=[]).fit(X60, y60),
            "bandwidths must be numbers >= 0",
        ),
        (
            lambda: KernelRidge().fit(X60, y60).predict_interval(X60, "0.9"),
            "coverage must be a number",
        ),
        (
            lambda: KernelRidge(cv=[(np.arange(60), []), ([], np.arange(60))]).fit(X60, y60),
            "fewer than two folds",
        ),
        (lambda: KernelRidge(cv="loo").partial_fit(X60, y60), "cv='loo' needs the rows of one fit"),
        (
            lambda: KernelLogistic(class_weight={0: np.inf, 1: 1.0}).fit(X60, y60 > 0),
            "class_weight must be",
        ),
        (lambda: KernelLogistic(class_weight={0: "a"}).fit(X60, y60 > 0), "class_weight must be"),
        (
            lambda: Perceptron().fit(X60, y60 > 0).mistake_bound(X60, y60 > 0, passes=-1),
            "passes must be an integer >= 1",
        ),
    ],
)
def test_settings_are_refused_by_name(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_settings_of_other_kinds_are_taken():
    assert KernelRidge(memory_limit=np.int64(10**9)).fit(X60, y60).score(X60, y60) > 0.5
    labels = np.where(y60 > 0, "a", "b")
    KernelLogistic(class_weight={"a": 1.0, "b": 2.0, "c": 3.0}).fit(
        X60, labels
    )  # as in a fold without c
    with pytest.raises(ValueError, match="class_weight names 'c'"):
        KernelLogistic(class_weight={"a": 1.0, "c": 3.0}).fit(X60, labels)
