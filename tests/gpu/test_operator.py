"""Fused tiles against the kernel itself, on a GPU or in Triton's interpreter (TRITON_INTERPRET=1, a
process of its own)."""

import gc
import os
import weakref

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu.choices import has_kink, part_of  # noqa: E402
from mercer.gpu.conjugate import ConjugateGradients  # noqa: E402
from mercer.gpu.contract import Sums  # noqa: E402
from mercer.gpu.derivatives import TracedResults  # noqa: E402
from mercer.gpu.launch import LaunchGrid  # noqa: E402
from mercer.gpu.operator import GPUOperator  # noqa: E402
from mercer.gpu.quantities import Geometry, SeenRows  # noqa: E402
from mercer.gpu.solve import GPUSolver, pivoted_factor  # noqa: E402
from mercer.kernels import Callable, Gaussian, Laplace, Linear, Matern  # noqa: E402
from mercer.models import KernelRidge  # noqa: E402
from mercer.operators import KernelOperator  # noqa: E402
from tests.gpu.test_formula import KERNELS  # noqa: E402

# of |K| |v|: 24 bits, of which products of pieces lose two and sums some; 11 bits
TOLERANCE = {"float32": 2e-6, "tf32": 2e-3, "float64": 1e-14}


def error(k, X, Z, V, precision):
    """The largest error of K @ V beside |K| |V|."""
    K = k(X, Z)
    got = GPUOperator(k, X, Z, precision=precision) @ V
    assert got.shape == (len(X), *V.shape[1:])
    assert np.isfinite(got).all()
    return (np.abs(got - K @ V) / np.maximum(np.abs(K) @ np.abs(V), 1e-30)).max()


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_products_equal_the_reference(k, precision):
    rng = np.random.default_rng(0)
    X, Z, V = (rng.normal(size=s) for s in ((37, 3), (150, 3), (150, 2)))
    if "Chi2" in repr(k):  # of numbers >= 0, some of them zero
        X, Z = np.maximum(X, 0), np.maximum(Z, 0)
    assert error(k, X, Z, V, precision) < TOLERANCE[precision] + 1e-7 * ("ArcCosine" in repr(k))


@pytest.mark.parametrize("d", [1, 2, 5, 10, 17, 33, 61, 130, 300])
def test_any_number_of_columns(d):
    rng = np.random.default_rng(d)
    X, Z, V = rng.normal(size=(20, d)), rng.normal(size=(130, d)), rng.normal(size=130)
    for k in (Gaussian(1.5 * d**0.5), Laplace(d**0.5), Laplace(float(d), norm=1)):
        assert error(k, X, Z, V, "float32") < 2e-6


@pytest.mark.parametrize("precision", TOLERANCE)
def test_two_thousand_columns(precision):
    rng = np.random.default_rng(0)
    X, Z, V = rng.normal(size=(9, 2000)), rng.normal(size=(11, 2000)), rng.normal(size=11)
    assert error(Gaussian(60.0), X, Z, V, precision) < TOLERANCE[precision]


@pytest.mark.parametrize("k", [Gaussian(1.0), Laplace(1.0), Matern(1.0)], ids=repr)
def test_offsets_copies_near_copies_and_outliers_lose_no_digits(k):
    rng = np.random.default_rng(1)
    base = rng.normal(size=(60, 3))
    X = np.vstack([base, base, base + 1e-5 * rng.normal(size=base.shape)]) + 1e6
    V = rng.normal(size=len(X))
    assert error(k, X, X, V, "float32") < 2e-6
    far = np.vstack([base, [[1e4, 0, 0]]])
    assert error(k, far, far, V[:61], "float32") < 2e-6


def test_the_same_rows_on_both_sides_are_held_once():
    X = np.random.default_rng(0).normal(size=(40, 20))
    op = GPUOperator(Gaussian(4.0), X, precision="tf32")
    op @ np.ones(40)
    held = {t.data_ptr() for name, t in op.tiles.operands.items() if name[1:] == "0n"}
    assert len(held) == 1 or op.tiles.parts[0].inside


def test_columns_of_v_go_in_runs_and_one_is_as_alone():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(50, 2)), rng.normal(size=(50, 7))
    op = GPUOperator(Gaussian(1.0), X)
    assert np.array_equal((op @ V)[:, 3], op @ V[:, 3])


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("q", [9, 17, 70])
def test_many_columns_of_v(q, precision):
    """By a second product on matrix units, in runs of 64."""
    rng = np.random.default_rng(q)
    X, Z, V = rng.normal(size=(70, 3)), rng.normal(size=(30, 3)), rng.normal(size=(30, q))
    assert error(Gaussian(1.3), X, Z, 1e6 * V, precision) < TOLERANCE[precision]
    assert error(Laplace(1.3), X, Z, V, precision) < TOLERANCE[precision]


def test_tensors_stay_tensors():
    X = torch.randn(20, 2)
    op = GPUOperator(Gaussian(1.0), X)
    assert torch.is_tensor(op @ torch.ones(20))
    assert isinstance(op @ np.ones(20), np.ndarray)


def test_changed_parameters_keep_the_program():
    X, v = np.random.default_rng(0).normal(size=(30, 3)), np.ones(30)
    ops = [GPUOperator(Gaussian(b) + Laplace(2 * b), X) for b in (1.0, 3.0)]
    for op in ops:
        op @ v
    texts = [op.tiles.program(Sums(1, 1)).text for op in ops]
    assert texts[0] == texts[1]


def kinked(k):
    return has_kink(TracedResults.of(k.source()))


def test_kinks_are_found_in_the_formula():
    assert kinked(Laplace(3.0))
    assert kinked(Gaussian(1.0) + Laplace(1.0))
    assert kinked(Matern(1.0, nu=0.5))
    assert kinked(Laplace(1.0, exponent=0.7))
    assert not any(map(kinked, (Gaussian(1.0), Matern(1.0), Matern(1.0, nu=2.5), Linear())))
    near = part_of(Geometry(SeenRows(), "matrix", distances=True), 40, "float32", near=True)
    assert near.mended
    assert near.pieces == 2 or near.joined


def test_columns_are_shared_out_where_rows_are_few():
    few, many = (LaunchGrid.of(n, 100_000, 132, symmetric=False) for n in (100, 200_000))
    assert few.splits > 100
    assert many.splits == 1
    assert few.step * few.splits == few.columns >= 100_000


@pytest.mark.parametrize("V", [np.ones(4), np.ones((5, 2, 2)), np.ones((6, 1))])
def test_wrong_shapes_are_refused(V):
    with pytest.raises(ValueError, match="V must have 5 rows"):
        GPUOperator(Gaussian(1.0), np.ones((5, 2))) @ V


def test_precision_that_is_none_is_refused():
    with pytest.raises(ValueError, match="precision must be one of"):
        GPUOperator(Gaussian(1.0), np.ones((5, 2)), precision="bf16")


def test_pivots_stop_where_the_matrix_ends():
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 2)), 20, axis=0)
    F = pivoted_factor(GPUOperator(Gaussian(1.0), X), 50, 0).cpu().numpy()
    assert F.shape[1] == 7
    assert np.abs(F @ F.T - Gaussian(1.0)(X)).max() < 1e-5


@pytest.mark.parametrize("bandwidth", [2.0, 4.0])
def test_pivots_take_no_rounding_for_rows(bandwidth):
    """Where a draw is larger than what the matrix has, its pivots are nearly sums of each other."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    F = pivoted_factor(GPUOperator(Gaussian(bandwidth), X), 300, 0).double().cpu().numpy()
    left = Gaussian(bandwidth)(X) - F @ F.T
    assert F.shape[1] < 250
    assert left.diagonal().min() > -1e-6
    assert left.diagonal().max() < 1e-4  # pivots of a draw that are sums of others but for so much
    assert np.linalg.eigvalsh(left).min() > -2e-5


@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_solutions_reach_the_tolerance(ridge):
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(70, 2)), rng.normal(size=(70, 2))
    d = ridge * rng.uniform(0.5, 2, 70)
    s = GPUSolver(rank=50).init(KernelOperator(Gaussian(1.0), X), d).solve(B)
    true = B - Gaussian(1.0)(X) @ s.x - d[:, None] * s.x
    worst = (np.linalg.norm(true, axis=0) / np.linalg.norm(B, axis=0)).max()
    assert worst <= 1e-6
    assert s.residual == pytest.approx(worst, rel=1e-3)


@pytest.mark.parametrize(
    "use",
    [
        lambda op: GPUSolver(rank=5).init(op, np.ones(40)).solve(np.ones((40, 1))),
        lambda op: op.gradient_outer_product(np.ones(40)),
    ],
    ids=["solve", "gradient_outer_product"],
)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_memory_is_free_as_soon_as_the_matrix_is_gone(use, precision):
    X = np.random.default_rng(0).normal(size=(40, 3))
    op = GPUOperator(Gaussian(2.0), X, precision=precision)
    gone = weakref.ref(op)
    gc.disable()  # a collection would hide a cycle, until which the device stays full
    try:
        use(op)
        del op
        assert gone() is None
    finally:
        gc.enable()


def test_ridge_on_the_gpu_is_ridge():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(140, 2)), rng.uniform(0, 2, 140)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    cpu, gpu = (
        KernelRidge(Laplace(2.0), 0.1, "iterative", device=d).fit(X, Y, w) for d in ("cpu", "cuda")
    )
    assert "on the GPU" in gpu.plan_.why
    assert np.allclose(cpu.predict(X), gpu.predict(X), atol=1e-5)
    assert gpu.predict(X.astype(np.float32)).dtype == np.float32


def test_what_has_no_tile_is_computed_on_the_cpu_and_the_plan_says_so():
    X = np.random.default_rng(0).normal(size=(30, 2))
    k = Callable(lambda a, b: np.exp(-np.square(a[:, None] - b[None]).sum(-1)))
    m = KernelRidge(k, via="iterative", device="cuda").fit(X, X[:, 0])
    assert "on the CPU, as Callable(f) has no GPU source" in m.plan_.why


@pytest.mark.parametrize("k", [Gaussian(1.3), Laplace(2.0, norm=1), Matern(1.0)], ids=repr)
def test_offsets_cost_blocks_no_digits(k):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 1e6
    op = GPUOperator(k, X)
    for dtype, close in ((torch.float32, 1e-6), (torch.float64, 1e-9)):
        B = op.block(slice(0, 10), slice(5, 30), dtype)
        assert B.dtype == dtype
        assert np.abs(B.cpu().numpy() - k(X)[:10, 5:30]).max() < close


def test_rounds_that_lead_astray_are_not_kept(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 2))
    B = np.column_stack([np.ones(60), X[:, 0], np.zeros(60)])
    system = GPUSolver(rank=10).init(GPUOperator(Gaussian(), X), np.full(60, 0.1))
    right = ConjugateGradients._forward

    def astray(self):
        right(self)
        self.X.copy_(1e3 * B_there)

    B_there = torch.from_numpy(B).to(system.d.device)
    monkeypatch.setattr(ConjugateGradients, "_forward", astray)
    found = system.solve(B)
    assert found.residual == 1.0
    assert not found.x.any()
    np.testing.assert_array_equal(found.remainder, B)
    monkeypatch.undo()
    assert system.solve(B).residual <= 1e-6


@pytest.mark.parametrize("q", [9, 16, 40])
@pytest.mark.parametrize(
    "k", [Gaussian(0.5), 1e9 * Gaussian(3.0) + Linear(), 1e-9 * Gaussian(), Laplace(2.0)], ids=repr
)
def test_products_by_norm(k, q):
    """Rows far from all others, and columns of V of all sizes."""
    rng = np.random.default_rng(q)
    X = rng.normal(size=(70, 9)) * np.where(rng.random(70) < 0.1, 5.0, 1.0)[:, None]
    V = rng.normal(size=(70, q)) * 10.0 ** rng.integers(-20, 20, q)
    V[:, 1] = 0
    K = k(X)
    op = GPUOperator(k, X)
    found = op.normwise(torch.from_numpy(V).to(op.device)).cpu().numpy()
    bound = np.abs(K).sum(axis=1).max() * np.abs(V).max(axis=0)
    assert (np.abs(found - K @ V) <= 1e-6 * bound).all()
