"""What the settings of KernelPCA say: which methods exist, and the plan of shapes."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.models import KernelPCA
from mercer.models.pca.problem import PCASettings, choose


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(5, 5)) + 10
    )


def test_which_methods_exist_follows_from_settings_alone(monkeypatch):
    X, given = data(), KernelPCA(2, "precomputed")
    assert not any(hasattr(given, name) for name in ("partial_fit", "merge", "inverse_transform"))
    monkeypatch.setattr("mercer.models.pca.problem.MOST_ROWS", 119)
    m = KernelPCA(2, Gaussian())
    assert hasattr(m, "inverse_transform")
    m.fit(X)
    assert m.plan_.way == "features"
    assert hasattr(m, "inverse_transform")
    with pytest.raises(
        ValueError, match="no way back to rows; fit rows of numbers with via='exact' or 'landmarks'"
    ):
        m.inverse_transform(m.transform(X))
    assert all(
        hasattr(KernelPCA(via="best"), name) for name in ("partial_fit", "merge")
    )  # which `fit` refuses


@pytest.mark.parametrize(
    ("n", "own", "way"),
    [
        (120, None, "exact"),
        (120, 3, "features"),
        (5001, None, "features"),
        (1501, None, "iterative"),
    ],
)
def test_the_plan_is_a_function_of_shapes(n, own, way):
    s = PCASettings.of(KernelPCA(2))
    assert choose(n, own, s).way == way
    assert choose(n, own, s, items=True).way == ("exact" if n <= 300 else "iterative")
