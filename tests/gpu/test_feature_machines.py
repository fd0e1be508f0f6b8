"""Feature machines on the GPU are those of the CPU, where both do the same."""

import os
from functools import partial

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.models import FeatureMachineClassifier, FeatureMachineRegressor  # noqa: E402
from mercer.models.feature_machine import on_gpu, paths  # noqa: E402
from mercer.models.feature_machine.dense import PathRows  # noqa: E402
from mercer.models.feature_machine.machine import solve_cell  # noqa: E402
from mercer.models.feature_machine.paths import MetricPath, PathSetting  # noqa: E402

SETTINGS = [
    PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0),
    PathSetting("standard", 1, 0.7, 1.0, "diagonal", 1.0),
    PathSetting("standard", 2, 1.0, 2.0, "full"),
    PathSetting("standard", 2, 2.0, 1.0, "diagonal"),
]


def rows(n, d, q, seed=0):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, d)).astype(np.float32)
    Y = np.column_stack([np.sin(2 * U[:, 0]), U[:, 1] * U[:, 0]])[:, :q].astype(np.float32)
    return PathRows(U, Y - Y.mean(axis=0), rng.uniform(0.5, 2, n))


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("s", SETTINGS, ids=str)
@pytest.mark.parametrize("q", [1, 2])
def test_metrics_are_those_of_the_cpu(s, q):
    path, some = MetricPath(s, (0.1, 0.1, 0.1)), rows(150, 4, q)
    mine, theirs = on_gpu.walked(path, some, 0, device()), paths.walked(path, some, 0)
    assert np.allclose(mine, theirs, atol=2e-3)


@pytest.mark.parametrize("s", SETTINGS, ids=str)
def test_coefficients_solve_the_equations(s):
    some = rows(60, 3, 2)
    some = PathRows(np.vstack([some.U, some.U[:5]]), np.vstack([some.Y, some.Y[:5]]), None)
    kernel = s.kernel(2.0)
    A, b = on_gpu.coefficients(kernel, s, some, 0.05, device())
    cell = solve_cell(kernel, some, 0.05, 1e9)
    f, g = (kernel(some.U.astype(float)) @ a + c for a, c in ((A, b), (cell.coef, cell.intercept)))
    assert np.abs(f - g).max() < 1e-3
    assert np.allclose(on_gpu.times(kernel, some.U, some.U, A, device()) + b, f, atol=1e-6)


def test_estimators_say_where_they_were():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    m = FeatureMachineRegressor(random_state=0, device="cuda").fit(X, np.sin(X[:, 0]))
    assert "on the GPU" in str(m.plan_)
    on_cpu = m.predict(X)
    assert np.allclose(m.set_params(device="cpu").predict(X), on_cpu, atol=1e-6)
    low, high = m.set_params(device="cuda").predict_interval(X)
    assert (low <= high).all()
    c = FeatureMachineClassifier(random_state=0, device="cuda").fit(X, X[:, 0] > 0)
    assert c.score(X, X[:, 0] > 0) > 0.9


@pytest.mark.parametrize("s", SETTINGS, ids=str)
def test_rounds_of_a_search_are_those_of_the_cpu(s):
    fitted, held = rows(120, 3, 1), rows(40, 3, 1, seed=1)
    walks = [
        list(paths.rounds(s, fitted, held, 2, 0, paths.FirstDistances(), one))
        for one in (None, partial(on_gpu.one_round, device=device()))
    ]
    for mine, theirs in zip(*walks, strict=True):
        assert mine.penalty == theirs.penalty
        assert mine.loss == pytest.approx(theirs.loss, rel=0.02)
