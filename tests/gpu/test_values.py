"""Blocks of kernel matrices formed by the tile, beside the plain tile and the kernel itself."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu.operator import GPUOperator  # noqa: E402
from mercer.gpu.reference import block as reference  # noqa: E402
from mercer.kernels import Gaussian, Laplace  # noqa: E402
from tests.gpu.test_formula import KERNELS  # noqa: E402

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13}


def plain(op, rows, cols, dtype):
    return reference(op.source, op.X[rows], op.Z[cols], op.positions, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_blocks_are_those_of_the_plain_tile(k, dtype):
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 3)) for n in (70, 41))
    if "Chi2" in repr(k):
        X, Z = np.maximum(X, 0), np.maximum(Z, 0)
    op = GPUOperator(k, X, Z)
    got = op.block(slice(3, 70), torch.tensor([40, 0, 0, -1]), dtype)
    want = plain(op, slice(3, 70), torch.tensor([40, 0, 0, -1]), dtype)
    assert got.dtype == dtype
    assert got.shape == (67, 4)
    loose = 1e-7 * ("ArcCosine" in repr(k))  # its angle is a polynomial
    assert (got - want).abs().max() <= (TOLERANCE[dtype] + loose) * max(1, want.abs().max())


def test_copies_and_near_copies_keep_their_distance():
    base = np.random.default_rng(0).normal(size=(30, 40))
    X = np.vstack([base, base, base + 1e-7]) + 1e4
    op = GPUOperator(Laplace(1.0), X)
    K = op.block(dtype=torch.float32).cpu().numpy()
    assert (K[:30, 30:60].diagonal() == 1).all()
    assert np.abs((1 - K[:30, 60:].diagonal().astype(np.float64)) - 6.3e-7).max() < 1.3e-7


@pytest.mark.parametrize("rows", [slice(5, 5), np.zeros(0, int), np.zeros(9, bool)], ids=repr)
def test_no_rows_are_a_block_too(rows):
    op = GPUOperator(Gaussian(), np.ones((9, 2)))
    assert op.block(rows).shape == (0, 9)
    assert op.block(slice(None), rows).shape == (9, 0)


def test_masks_and_steps_choose():
    X = np.random.default_rng(0).normal(size=(9, 2))
    mask = np.arange(9) % 4 == 1
    got = GPUOperator(Gaussian(), X).block(mask, slice(8, None, -3), torch.float64)
    assert np.abs(got.cpu().numpy() - Gaussian()(X)[mask][:, 8::-3]).max() < 1e-14


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 3, 10, 70])
def test_the_nearest_are_kept_in_order(k, precision):
    """Copies of rows among them: of equal values the first column first."""
    rng = np.random.default_rng(k)
    Z = np.repeat(rng.normal(size=(40, 3)), 3, axis=0)[rng.permutation(120)]
    X = np.vstack([Z[:20], rng.normal(size=(21, 3))])
    op = GPUOperator(Laplace(2.0), X, Z, precision=precision)
    index, values = (T.cpu().numpy() for T in op.nearest(k))
    K = op.block().cpu().numpy()
    want = np.argsort(-K, axis=1, kind="stable")[:, :k]
    assert np.array_equal(index, want)
    assert np.allclose(values, np.take_along_axis(K, want, axis=1), rtol=1e-6)


def test_all_columns_may_be_asked_for():
    X = np.random.default_rng(0).normal(size=(5, 2))
    index, values = GPUOperator(Gaussian(), X).nearest(5)
    assert (np.sort(index.cpu().numpy(), axis=1) == np.arange(5)).all()
    assert (values.diff(dim=1) <= 0).all()
    with pytest.raises(ValueError, match="k must be between 1 and the 5 columns"):
        GPUOperator(Gaussian(), X).nearest(6)
