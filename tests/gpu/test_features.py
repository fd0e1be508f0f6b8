"""Moments of random Fourier features summed on the GPU, or in Triton's interpreter, are those of
the CPU."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer import methods  # noqa: E402
from mercer.gpu import features, structured  # noqa: E402
from mercer.inputs import Table  # noqa: E402
from mercer.kernels import Gaussian, Laplace, Matern  # noqa: E402
from mercer.lifts import Monomials, RandomFourier  # noqa: E402
from mercer.models import KernelRidge  # noqa: E402
from mercer.models.maps import FittedMap  # noqa: E402


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def close(ours, theirs, sizes):
    """To 2^-18 of the products of what features and targets may be, as angles have 22 bits."""
    assert ours.count == theirs.count
    assert ours.n == pytest.approx(theirs.n)
    assert (np.abs(ours.S - theirs.S) / np.outer(sizes, sizes)).max() < 2**-18 * theirs.count
    assert (np.abs(ours.s - theirs.s) / sizes).max() < 2**-18 * theirs.count


@pytest.mark.parametrize("d", [1, 5, 30, 70])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_cpu(d, weighted, monkeypatch):
    monkeypatch.setattr(features, "MOST_BATCH", 128)
    monkeypatch.setattr(features, "LEAST_BATCH", 128)
    rng = np.random.default_rng(d)
    X, Y = rng.normal(size=(300, d)), rng.normal(size=(300, 2)) + 1e3
    weight = rng.uniform(0, 2, 300) if weighted else None
    phi = FittedMap.fit(RandomFourier(Gaussian(d**0.5), 70, random_state=0), Table(X))
    shift = np.concatenate([phi.shift(Table(X)), Y[:9].mean(0)])
    given = (Table(X), shift, Y, weight, np.arange(300) % 3, 3)
    for ours, theirs in zip(
        phi.fold_moments(*given, device()), phi.fold_moments(*given), strict=True
    ):
        close(ours, theirs, np.array([35**-0.5] * 70 + [4.0, 4.0]))


def test_offsets_cost_no_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 1e6
    phi = FittedMap.fit(RandomFourier(Laplace(3.0), 40, random_state=0), Table(X))
    zero = np.zeros(40)
    ours = phi.fold_moments(Table(X), zero, None, None, np.zeros(200), 1, device())[0]
    close(ours, phi.moments(Table(X), zero), np.full(40, 20**-0.5))


def test_ridge_over_features_and_streams_say_where_they_were():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X[:, 0])
    given = dict(kernel=Matern(2.0), alpha=0.1, via=methods.Fourier(64), random_state=0)
    cpu, gpu = (KernelRidge(**given, device=d).fit(X, y) for d in ("cpu", "cuda"))
    assert "on the GPU (cuda), to about 1e-6" in gpu.plan_.why
    assert np.allclose(cpu.predict(X), gpu.predict(X), atol=1e-4)
    narrow = X.astype(np.float32)
    assert gpu.predict(narrow).dtype == np.float32
    assert np.allclose(gpu.predict(narrow), cpu.predict(X), atol=1e-3)
    stream = KernelRidge(**given, device="cuda")
    for at in (slice(0, 150), slice(150, 300)):
        stream.partial_fit(X[at], y[at])
    assert np.allclose(stream.predict(X), cpu.predict(X), atol=1e-4)


def test_other_features_are_summed_on_the_cpu_and_the_plan_says_so():
    X = np.random.default_rng(0).normal(size=(60, 3))
    m = KernelRidge(lift=Monomials(2), device="cuda").fit(X, X[:, 0])
    assert "on the CPU, as it has random Fourier features in pairs alone" in m.plan_.why


@pytest.mark.parametrize("kernel", [Gaussian(8.0), Matern((9.0,) * 200)], ids=["one", "each"])
@pytest.mark.parametrize("blocks", [True, False])
def test_structured_frequencies_are_those_of_the_cpu(kernel, blocks, monkeypatch):
    """By products of small Hadamard matrices, or by one matrix; of one bandwidth or one a column."""
    monkeypatch.setattr(structured, "MIN_BLOCK", 0 if blocks else 1 << 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 200)) + 1e3
    phi = FittedMap.fit(
        RandomFourier(kernel, 700, frequencies="structured", random_state=0), Table(X)
    )
    zero = np.zeros(700)
    made = phi._there(zero, device())
    assert isinstance(made.W, structured.StructuredFrequencies) == blocks
    ours = phi.fold_moments(Table(X), zero, None, None, np.zeros(9), 1, device())[0]
    close(ours, phi.moments(Table(X), zero), np.full(700, 350**-0.5))
    coef = rng.normal(size=700)
    narrow = Table(X.astype(np.float32))
    out, want = (
        phi.linear(narrow, coef, 0.0, device()),
        phi.linear(Table(narrow.data.astype(float)), coef, 0.0),
    )
    assert np.abs(out - want).max() < 2**-17 * 350**-0.5 * np.abs(coef).sum()


def test_widths_that_blocks_do_not_fill(monkeypatch):
    """Several blocks, the last of them cut; two factors of unequal size; and the plan."""
    monkeypatch.setattr(structured, "MIN_BLOCK", 0)
    X = np.random.default_rng(0).normal(size=(20, 300))
    given = dict(
        kernel=Gaussian(17.0), alpha=1.0, random_state=0,
        via=methods.Fourier(1400, frequencies="structured"),
    )  # fmt: skip
    cpu, gpu = (KernelRidge(**given, device=d).fit(X, X[:, 0]) for d in ("cpu", "cuda"))
    assert "on the GPU" in gpu.plan_.why
    assert np.allclose(cpu.predict(X), gpu.predict(X), atol=1e-4)
