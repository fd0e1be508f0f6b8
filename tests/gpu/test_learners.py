"""Smoothers, k-means and neighbours on the GPU, or in Triton's interpreter, are those of the
CPU."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu import solve  # noqa: E402
from mercer.gpu.operator import GPUOperator, HostOperator  # noqa: E402
from mercer.kernels import Gaussian, Laplace, Linear  # noqa: E402
from mercer.models import (  # noqa: E402
    KernelKMeans,
    KernelRidge,
    NadarayaWatson,
    SoftNeighborsClassifier,
)


def rows(n=120, d=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0])


def test_votes_are_those_of_the_cpu_near_and_far():
    X, y = rows()
    cpu, gpu = (NadarayaWatson(Gaussian(0.3), device=d).fit(X, 1e3 + y) for d in ("cpu", "cuda"))
    assert "on the GPU (cuda), to about 1e-6" in gpu.plan_.why
    assert np.allclose(cpu.predict(X), gpu.predict(X), rtol=0, atol=1e-5)
    mid = X[:3] + 4.0  # whose votes are numbers in float64 alone: no word of far queries
    assert np.allclose(cpu.predict(mid), gpu.predict(mid), rtol=0, atol=1e-5)


def test_soft_neighbours_are_those_of_the_cpu():
    X, y = rows()
    cpu, gpu = (
        SoftNeighborsClassifier(Laplace(0.5), device=d).fit(X, y > 0) for d in ("cpu", "cuda")
    )
    assert np.allclose(cpu.predict_proba(X), gpu.predict_proba(X), atol=1e-5)


def test_kernels_whose_values_may_be_negative_vote_on_the_cpu():
    X, y = rows(30)
    m = NadarayaWatson(Linear(), device="cuda").fit(np.abs(X), y)
    assert "on the CPU, as values of this kernel must be looked at first" in m.plan_.why
    assert np.isfinite(m.predict(np.abs(X))).all()


def test_clusters_are_those_of_the_cpu():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)) + at for at in ([0, 0], [6, 0], [0, 6])])
    cpu, gpu = (
        KernelKMeans(3, Gaussian(2.0), n_init=1, random_state=0, device=d).fit(X)
        for d in ("cpu", "cuda")
    )
    assert "on the GPU (cuda), to about 1e-6" in gpu.plan_.why
    assert np.array_equal(cpu.labels_, gpu.labels_)
    assert gpu.inertia_ == pytest.approx(cpu.inertia_, rel=1e-5)


@pytest.mark.parametrize("k", [1, 3, 30])
def test_neighbours_are_the_largest_values(k, monkeypatch):
    monkeypatch.setattr("mercer.gpu.neighbours.COLS", 7)
    monkeypatch.setattr("mercer.gpu.neighbours.ROWS", 5)
    X, _ = rows(30)
    X[3] = X[9]  # equal values: the first column first
    K = Laplace(1.0)(X)
    index, values = (
        T.cpu().numpy() for T in GPUOperator(Laplace(1.0), X, precision="float64").nearest(k)
    )
    assert np.allclose(values, -np.sort(-K, axis=1)[:, :k])
    assert np.array_equal(index, np.argsort(-K, axis=1, kind="stable")[:, :k])
    with pytest.raises(ValueError, match="k must be between 1 and the 30 columns"):
        GPUOperator(Laplace(1.0), X).nearest(31)


def test_arrays_in_arrays_out():
    X, _ = rows(20)
    op, k = HostOperator(GPUOperator(Gaussian(1.0), X, precision="float64")), Gaussian(1.0)
    assert np.allclose(op @ np.eye(20)[:, :3], k(X)[:, :3])
    assert np.allclose(op.block(np.array([1, 4]), slice(3, 9)), k(X)[[1, 4], 3:9])
    assert np.allclose(op.diag(), 1)


def test_too_little_memory_means_a_smaller_rank_then_the_cpu(monkeypatch):
    X, y = rows(60)
    free = {"bytes": 1e9}
    monkeypatch.setattr(solve, "free_bytes", lambda device: free["bytes"])
    given = dict(kernel=Gaussian(1.0), alpha=0.1, via="iterative", device="cuda")
    assert "60 pivots" in KernelRidge(**given).fit(X, y).plan_.why
    free["bytes"] = 3.0e8 * 1.0
    monkeypatch.setattr(solve, "SHARE", 1e-5)
    cut = KernelRidge(**given).fit(X, y)
    assert "12 pivots" in cut.plan_.why
    free["bytes"] = 1e3
    there = KernelRidge(**given).fit(X, y)
    assert "on the CPU, as it needs" in there.plan_.why
    assert "and the GPU has 1 kB free" in there.plan_.why
    assert np.allclose(there.predict(X), cut.predict(X), atol=1e-4)
