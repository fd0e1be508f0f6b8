"""Exact duals whose gradients are kept by products on the GPU, or in Triton's interpreter, are those
of the CPU, gap and all."""

import os
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu import devices  # noqa: E402
from mercer.gpu.row_products import RowProducts  # noqa: E402
from mercer.inputs import Table  # noqa: E402
from mercer.kernels import (  # noqa: E402
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
)
from mercer.models import KernelSVC, KernelSVR, OneClassSVM  # noqa: E402
from mercer.models.svm import dual  # noqa: E402
from mercer.models.svm.device import DeviceRows  # noqa: E402
from mercer.operators import AboutOperator, TileOperator  # noqa: E402

THREE = Gaussian(2.0) * Linear() + 0.3 * Polynomial(2, bias=0.5) + Matern(3.0)
DEVICE = "cpu" if devices.interpreted() else "cuda"
ON_GPU = "products on the GPU"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 100)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 64)


def rows(n=260, d=3, seed=0):
    """With equal rows and near-copies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[5], X[9] = X[7], X[11] + 1e-7
    y = np.sin(2 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=n)
    return X, y


def both(make, X, y, **at):
    return [make(device=device, **at).fit(X, y) for device in ("cpu", "cuda")]


def met(cpu, gpu, tol=1e-3):
    """Both to the same gap, at the same objective."""
    assert ON_GPU in gpu.plan_.settings["kernel_rows"]
    assert max(cpu.gap_, gpu.gap_) <= tol
    assert gpu.objective_ == pytest.approx(cpu.objective_, rel=2 * tol)


# products
@pytest.mark.parametrize(("precision", "error"), [("float32", 2e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("d", [1, 3, 9, 40, 200])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(1.0), Laplace(2.0, norm=1), THREE])
def test_rows_times_numbers_are_those_of_the_kernel(kernel, d, precision, error):
    X, _ = rows(131, d)
    some = np.random.default_rng(1).permutation(131)[:37]
    v = np.random.default_rng(2).normal(size=37) * np.logspace(0, 3, 37)
    K = kernel(X, X[some])
    made = RowProducts(kernel, Table(X), DEVICE, precision)
    size = (np.abs(K) @ np.abs(v)).max()
    if kernel is THREE:  # x'z is rounded relative to |x||z|, however much of it cancels
        root = np.sqrt(kernel.diag(Table(X)))
        size = root.max() * (root[some] @ np.abs(v))
    assert np.abs(made.times(some, v) - K @ v).max() <= error * size
    again = made.times(some[::-1].copy(), v[::-1].copy())  # another block of the same rows
    assert np.abs(again - K @ v).max() <= error * size
    assert np.array_equal(made.times(some[:0], v[:0]), np.zeros(131))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 3e-7), ("float64", 1e-13)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(1.0), Laplace(2.0, norm=1), THREE])
def test_blocks_are_those_of_the_cpu(kernel, offset, dtype, error):
    if kernel is THREE and offset:
        kernel = Matern(3.0)
    X = rows(131)[0] + offset
    op = TileOperator(kernel, Table(X), dtype, gpu=DEVICE)
    made, some = DeviceRows(op), np.random.default_rng(1).permutation(131)[:70]
    room = made.room(70 * 128)
    room[:] = np.nan  # of the last block
    K = made.some(some, room)
    assert K.dtype == op.dtype
    assert K.shape == (70, 128)
    assert np.shares_memory(K, room)
    assert not K[:, 70:].any()
    size = np.abs(op.diag()).max()
    assert np.abs(K[:, :70] - op.wide.block(some, some)).max() <= error * size
    assert np.array_equal(K[:, :70], K[:, :70].T)  # whatever order products were rounded in


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_about_a_point_are_those_of_the_cpu(dtype):
    X = rows(131)[0] + 100.0
    op = TileOperator(Linear(), Table(X), dtype, gpu=DEVICE).balanced()
    assert isinstance(op, AboutOperator)
    some = np.random.default_rng(1).permutation(131)[:70]
    K = DeviceRows(op).some(some)[:, :70]
    size = np.abs(op.diag()).max()
    error = 3e-7 if dtype == "float32" else 1e-15 * 3e4  # of squares of 100, beside those of 1
    assert np.abs(K - op.wide.block(some, some)).max() <= error * size


def test_products_depend_on_nothing_that_was_left_in_memory():
    X, _ = rows(300, 5)
    made, some, v = (
        RowProducts(Gaussian(1.0), Table(X), DEVICE, "float32"),
        np.arange(40),
        np.ones(40),
    )
    first = made.times(some, v)
    waste = torch.full((1 << 20,), float("nan"), device=DEVICE)
    del waste  # memory that comes next holds no numbers
    assert np.array_equal(made.times(some, v), first)


def test_offsets_cost_no_digits():
    X, _ = rows(200, 4)
    far = X + 1e6
    K = Gaussian(1.0)(far)
    found = RowProducts(Gaussian(1.0), Table(far), DEVICE, "float32").times(
        np.arange(200), np.ones(200)
    )
    assert np.allclose(found, K.sum(1), rtol=2e-6)


# learners
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_classes(loss, dtype):
    X, y = rows()
    X = X.astype(dtype)
    cpu, gpu = both(KernelSVC, X, y > 0, kernel=Gaussian(1.0), C=10.0, loss=loss, tol=1e-4)
    met(cpu, gpu, 1e-4)
    assert "gradients on the GPU (cuda), to about 1e-6" in gpu.plan_.why
    f, g = cpu.decision_function(X), gpu.decision_function(X)
    assert g.dtype == X.dtype
    assert np.abs(f - g).max() < 5e-3
    assert np.array_equal(f[np.abs(f) > 0.01] > 0, g[np.abs(f) > 0.01] > 0)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_three_classes_of_a_kernel_with_a_kink(multiclass):
    X, y = rows()
    codes = np.digitize(y, [-0.5, 0.5])
    given = dict(kernel=Laplace(1.0), C=10.0, multiclass=multiclass, tol=1e-4)
    cpu, gpu = both(KernelSVC, X, codes, **given)
    met(cpu, gpu, 1e-4)
    assert np.array_equal(cpu.predict(X), gpu.predict(X))
    assert np.abs(cpu.decision_function(X) - gpu.decision_function(X)).max() < 5e-3
    if multiclass == "ovo":
        scores = [
            m.set_params(decision_function_shape="ovo").decision_function(X) for m in (cpu, gpu)
        ]
        assert np.abs(scores[0] - scores[1]).max() < 5e-3


def test_a_path_of_penalties_and_probabilities():
    X, y = rows(200)
    given = dict(kernel=Gaussian(1.0), cv=2, Cs=[1.0, 10.0], probability=True)
    cpu, gpu = both(KernelSVC, X, y > 0, **given)
    assert cpu.C_ == gpu.C_
    assert np.abs(cpu.predict_proba(X) - gpu.predict_proba(X)).max() < 0.02


@pytest.mark.parametrize("kernel", [Gaussian(1.0), THREE])
def test_tubes(kernel):
    X, y = rows()
    cpu, gpu = both(KernelSVR, X, y, kernel=kernel, C=3.0, tol=1e-4)
    met(cpu, gpu, 1e-4)
    assert np.abs(cpu.predict(X) - gpu.predict(X)).max() < 5e-3


def test_regions():
    X, _ = rows()
    cpu, gpu = both(OneClassSVM, X, None, kernel=Gaussian(1.0), nu=0.2, tol=1e-4)
    met(cpu, gpu, 1e-4)
    assert np.allclose(cpu.offset_, gpu.offset_, rtol=1e-4)
    assert np.mean(gpu.decision_function(X) < 0) <= 0.2
    f = cpu.decision_function(X)
    clear = np.abs(f) > 1e-3 * cpu.offset_  # rows on the edge lie there up to tol
    assert clear.mean() > 0.8
    assert np.array_equal(cpu.predict(X)[clear], gpu.predict(X)[clear])


# about a point
def test_what_all_rows_share_is_left_out_of_gradients():
    X, y = rows()
    far = X + 100.0
    cpu, gpu = both(KernelSVR, far, y, kernel=Linear(), tol=1e-4)
    met(cpu, gpu, 1e-4)
    assert "in float64" in gpu.plan_.why
    assert np.abs(cpu.predict(far) - gpu.predict(far)).max() < 5e-3


def test_what_tiles_would_lose_stays_on_the_cpu():
    X, y = rows()
    cpu, gpu = both(KernelSVR, X + 1e6, y, kernel=Linear())
    assert "on the CPU, as rows share nearly all of k(x, x)" in gpu.plan_.why
    assert np.array_equal(cpu.predict(X + 1e6), gpu.predict(X + 1e6))


# where
def test_few_rows_and_kernels_without_a_tile_stay_on_the_cpu():
    X, y = rows()
    few = KernelSVC(device="cuda").fit(X[:90], y[:90] > 0)
    assert "on the CPU, as 90 rows are one block" in few.plan_.why
    K = Gaussian(1.0)(X)
    given = KernelSVR("precomputed", device="cuda").fit(K, y)
    assert "on the CPU, as the GPU takes dense rows of numbers" in given.plan_.why
    assert np.isfinite(given.predict(K)).all()
    lifted = KernelSVC(via="features", device="cuda").fit(X, y > 0)
    sparse = KernelSVR(Linear(), device="cuda").fit(
        sp.random(150, 200, 0.02, "csr", random_state=0), y[:150]
    )
    for m in (lifted, sparse):
        assert "on the CPU, as only the exact dual goes to a GPU" in m.plan_.why
    python = KernelSVC(lambda a, b: a @ b.T, device="cuda").fit(X, y > 0)
    assert "on the CPU, as " in python.plan_.why


def test_pairs_of_few_rows_are_solved_on_the_cpu():
    X, _ = rows(150)
    codes = np.arange(150) % 5
    m = KernelSVC(Gaussian(1.0), device="cuda").fit(X, codes)
    assert "on the CPU, as every two classes are one block" in m.plan_.why


def test_too_little_memory_means_the_cpu(monkeypatch):
    X, y = rows()
    monkeypatch.setattr(dual, "free_bytes", lambda device: 1e3)
    cpu, gpu = both(KernelSVC, X, y > 0)
    assert "on the CPU, as it needs" in gpu.plan_.why
    assert "and the GPU has 1 kB free" in gpu.plan_.why
    assert np.array_equal(cpu.dual_coef_, gpu.dual_coef_)


def test_one_class_is_refused_and_a_pickled_model_predicts():
    X, y = rows()
    with pytest.raises(ValueError, match="y has 1 class"):
        KernelSVC(device="cuda").fit(X, np.ones(len(X)))
    m = KernelSVC(Gaussian(1.0), device="cuda").fit(X, y > 0)
    again = pickle.loads(pickle.dumps(m))
    assert np.array_equal(m.predict(X), again.predict(X))
    on_cpu = again.set_params(device="cpu").decision_function(X)
    assert np.allclose(on_cpu, m.decision_function(X), atol=1e-6)


def test_copies_of_few_rows():
    X, y = rows(30)
    X, y = np.tile(X, (8, 1)), np.tile(y, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cpu, gpu = both(KernelSVC, X, y > 0, kernel=Gaussian(1.0), C=5.0)
    met(cpu, gpu)
