"""Gaussian processes whose products are taken on the GPU are those of the CPU."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.inputs import Table  # noqa: E402
from mercer.kernels import Callable, Gaussian, Laplace, Matern  # noqa: E402
from mercer.models import GaussianProcessRegressor  # noqa: E402
from mercer.models.gp.likelihood import marginal_likelihood  # noqa: E402
from mercer.models.gp.problem import ProcessSettings, choose  # noqa: E402
from mercer.models.gp.quadrature import estimated_likelihood  # noqa: E402


def rows(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("k", [Gaussian(1.0), 0.7 * Matern((1.0, 2.0)) + Laplace(2.0)], ids=repr)
def test_the_likelihood_and_its_slopes(k):
    X, y = rows(70)
    given = (k, Table(X), y[:, None], 0.1)
    exact = marginal_likelihood(*given)
    found = [estimated_likelihood(*given, probes=128, gpu=gpu) for gpu in (None, device())]
    for each in found:  # probes differ with the preconditioner, so both are judged by the truth
        assert each.log == pytest.approx(exact.log, abs=0.05)
        assert np.abs(each.gradient - exact.gradient).max() < 4 * np.sqrt(2 * 70 / 128)


def test_posteriors_say_where_they_were_and_agree():
    X, y = rows()
    cpu, gpu = (
        GaussianProcessRegressor(Gaussian(1.0), noise=0.01, via="iterative", device=d).fit(X, y)
        for d in ("cpu", "cuda")
    )
    assert "on the GPU (cuda)" in gpu.plan_.why
    means, spreads = zip(*(m.predict(X + 0.1, return_std=True) for m in (cpu, gpu)), strict=True)
    assert np.allclose(*means, atol=1e-5)
    assert np.allclose(*spreads, atol=2e-3)
    assert gpu.log_marginal_likelihood_ == pytest.approx(cpu.log_marginal_likelihood_, abs=0.3)


def test_auto_is_iterative_on_the_gpu_and_what_has_no_tile_is_not():
    X = Table(np.zeros((4, 2)))
    s = ProcessSettings.of(GaussianProcessRegressor(device="cuda"))
    assert choose(20_000, 1, s, s.no_gpu(X)).way == "iterative"
    assert choose(300_000, 1, s, s.no_gpu(X)).way == "landmarks"
    own = Callable(lambda a, b: a @ b.T)
    s = ProcessSettings.of(GaussianProcessRegressor(own, device="cuda"))
    assert "has no GPU source" in s.no_gpu(X)
    assert choose(20_000, 1, s, s.no_gpu(X)).way == "landmarks"
