"""Ridge regression over landmarks on the GPU, or in Triton's interpreter, is that of the CPU."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu.landmarks import whitening  # noqa: E402
from mercer.inputs import Table  # noqa: E402
from mercer.kernels import Gaussian, Laplace, Linear  # noqa: E402
from mercer.lifts.landmarks import pivoted  # noqa: E402
from mercer.methods import Landmarks  # noqa: E402
from mercer.models import KernelRidge  # noqa: E402
from mercer.models.ridge import landmarks  # noqa: E402

THERE = "on the GPU (cuda), in float64"


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr("mercer.models.ridge.problem.MOMENTS", 10)
    monkeypatch.setattr("mercer.models.ridge.problem.MAX_CHOLESKY_ROWS", 100)


def rows(n=230, d=3):
    """With equal rows and near-copies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[5], X[9] = X[7], X[11] + 1e-7
    y = np.sin(2 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=n)
    return X, y


def both(X, y, w=None, m=33, select="rpcholesky", **given):
    via = Landmarks(m, select)
    made = (KernelRidge(via=via, device=d, random_state=0, **given) for d in ("cpu", "cuda"))
    return [model.fit(X, y, w) for model in made]


def close(cpu, gpu, X, most=1e-6):
    assert THERE in gpu.plan_.why
    assert gpu.plan_.way == cpu.plan_.way == "landmarks"
    assert np.array_equal(np.sort(cpu.X_fit_, axis=0), np.sort(gpu.X_fit_, axis=0))
    f, g = cpu.predict(X), gpu.predict(X)
    assert g.dtype == X.dtype
    assert np.abs(f - g).max() <= most * np.abs(f).max()
    assert gpu.residual_ <= 1e-6


@pytest.mark.parametrize("d", [1, 4, 60])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0), Gaussian(2.0) + 0.5 * Linear()])
def test_answers_are_those_of_the_cpu(kernel, d):
    X, y = rows(170, d)
    close(*both(X, y, kernel=kernel, alpha=0.05, tol=1e-9), X)


def test_weights_outputs_and_penalties():
    X, y = rows()
    w = np.random.default_rng(1).uniform(0, 2, len(X))
    w[::7] = 0
    Y = np.stack([y, 1e3 * X[:, 0]], axis=1)
    given = dict(kernel=Laplace(2.0), alpha=[0.1, 1.0], tol=1e-9)
    close(*both(X, Y, w, **given), X)
    close(*both(X, y, w, kernel=Laplace(2.0), alpha=0.1, fit_intercept=False, tol=1e-9), X)


@pytest.mark.parametrize("m", [33, 230])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_drawn_with_equal_chances_are_those_of_the_cpu(m, weighted):
    X, y = rows()
    X[5], X[9] = X[5] + 1, X[9] + 1  # no copies, of which either may be left out
    w = np.random.default_rng(1).uniform(0, 2, len(X)) if weighted else None
    if weighted:
        w[::7] = 0
    close(*both(X, y, w, m, "uniform", kernel=Laplace(1.0), alpha=0.05, tol=1e-9), X)


def test_offsets_cost_no_digits():
    X, y = rows()
    cpu, gpu = both(X + 1e6, y + 1e6, kernel=Gaussian(1.0), alpha=0.05, tol=1e-9)
    f, g = cpu.predict(X + 1e6), gpu.predict(X + 1e6)
    assert np.abs(f - g).max() < 1e-6 * np.ptp(f)


def test_rows_in_float32():
    X, y = rows()
    X = X.astype(np.float32)
    close(*both(X, y, kernel=Gaussian(1.0), alpha=0.05, tol=1e-7), X, 1e-4)


def test_landmarks_that_others_tell_are_left_out():
    X, y = rows()
    X = np.tile(X[:25], (8, 1))  # 25 rows, 8 times
    y = np.tile(y[:25], 8)
    cpu, gpu = both(X, y, m=60, kernel=Gaussian(1.0), alpha=0.05, tol=1e-9)
    assert len(gpu.X_fit_) <= 25
    close(cpu, gpu, X)


def test_the_factor_is_that_of_the_landmarks():
    X, _ = rows(40)
    apart = X[[i for i in range(40) if i not in (5, 9)]]
    kernel, called = Laplace(1.0), []

    def order(K):
        called.append(len(K))
        return pivoted(K, 1e-11)

    device = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
    for points, asked in ((apart, []), (X, [40])):
        kept, inverse = whitening(kernel, Table(points), device, order)
        K, R = kernel(points[kept]), inverse.cpu().numpy()
        assert called == asked
        assert np.allclose(R @ K @ R.T, np.eye(len(kept)), atol=1e-6)


def test_where_it_is_said(monkeypatch):
    X, y = rows(150)
    few = KernelRidge(Gaussian(1.0), via=Landmarks(8), device="cuda").fit(X, y)
    assert THERE in few.plan_.why  # passes, as they cost nothing to speak of there
    folds = KernelRidge(Gaussian(1.0), via=Landmarks(8), device="cuda", cv=2).fit(X, y)
    assert folds.plan_.way != "landmarks"  # moments, which all penalties share
    with pytest.raises(ValueError, match="or few landmarks on the CPU"):
        few.loo_score_  # noqa: B018
    assert few.predict_interval(X, 0.5).lower.shape == (150,)
    monkeypatch.setattr(landmarks, "free_bytes", lambda device: 1e3)
    cpu, gpu = both(X, y, kernel=Gaussian(1.0), alpha=0.1)
    assert "on the CPU, as it needs" in gpu.plan_.why
    assert "and the GPU has 1 kB free" in gpu.plan_.why
    assert np.allclose(cpu.predict(X), gpu.predict(X), atol=1e-9)


def test_a_stream_may_follow():
    X, y = rows(150)
    m = KernelRidge(Gaussian(1.0), via=Landmarks(40), device="cuda", random_state=0).fit(X, y)
    m.partial_fit(X + 0.1, y)
    assert np.isfinite(m.predict(X)).all()
