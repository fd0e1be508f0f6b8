"""Input gradients and pullbacks by fused tiles against those of the CPU, on a GPU or in Triton's
interpreter."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu.operator import GPUOperator  # noqa: E402
from mercer.kernels import (  # noqa: E402
    AdditiveChi2,
    Anova,
    Chi2,
    Cosine,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sinc,
)
from mercer.operators import KernelOperator  # noqa: E402

MAP = np.random.default_rng(9).normal(size=(2, 3))
KERNELS = [
    Gaussian(2.0),
    Gaussian((1.0, 2.0, 3.0)) + Laplace(3.0, exponent=0.7),
    Laplace((1.0, 2.0, 3.0), norm=1),
    Matern((1.0, 2.0, 3.0)) * Gaussian(2.5),
    RationalQuadratic(1.0, 2.0),
    Polynomial(3).normalized(),
    Periodic((1.0, 2.0, 3.0), 2.0),
    0.5 * Gaussian(3.0) + 0.1 * Linear() * Polynomial(2, bias=0.5),
    Chi2(0.5) + AdditiveChi2(),
    Cosine() + Linear(),
    Gaussian(1.0).on_columns([2, 0]) * Matern(2.0, nu=2.5).mapped(MAP),
    Sinc(1.2),
]
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}  # of the largest


def rows(k, seed=0, n=37, m=90, d=3):
    rng = np.random.default_rng(seed)
    X, Z, U, V = (rng.normal(size=s) for s in ((n, d), (m, d), (n, 2), (m, 2)))
    X[:5] = Z[:5]  # distance zero
    return (np.abs(X), np.abs(Z), U, V) if "Chi2" in repr(k) else (X, Z, U, V)


def apart(ours, theirs):
    return np.abs(np.asarray(ours) - theirs).max() / max(np.abs(theirs).max(), 1e-12)


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_gradients_are_those_of_the_cpu(k, precision):
    X, Z, U, V = rows(k)
    ours, theirs = GPUOperator(k, X, Z, precision=precision), KernelOperator(k, X, Z)
    close = TOLERANCE[precision]
    assert apart(ours.input_gradients(V).cpu(), theirs.input_gradients(V)) < close
    if k.parameters():
        scale = np.abs(theirs.pullback(np.abs(U), np.abs(V))).max()
        gap = np.abs(ours.pullback(U, V) - theirs.pullback(U, V)).max()
        assert gap < close * max(scale, 1.0)


@pytest.mark.parametrize(("norm", "d"), [(1, 1), (1, 17), (1, 33), (2, 1), (2, 9), (2, 130)])
def test_any_number_of_columns(norm, d):
    k = Gaussian(d**0.5) if norm == 2 else Laplace(float(d), norm=1)
    X, Z, _, V = rows(k, d, 10, 40, d)
    V = V[:, :1]
    ours, theirs = GPUOperator(k, X, Z), KernelOperator(k, X, Z)
    assert apart(ours.input_gradients(V).cpu(), theirs.input_gradients(V)) < 3e-6
    some = ours.input_gradients(V[:, 0], rows=[3, 1]).cpu()
    assert apart(some, theirs.input_gradients(V[:, 0], rows=[3, 1])) < 3e-6


@pytest.mark.parametrize(
    ("k", "precision"),
    [(Gaussian(1.0), "float32"), (Matern(1.0), "float32"), (Laplace(1.0), None)],
    ids=repr,
)
def test_offsets_copies_and_near_copies_lose_no_digits(k, precision):
    """Slopes of a kernel with a kink are directions, of which float32 rows of size 1 keep 6e-8 / r:
    without a precision asked for, these are float64."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=(30, 3))
    X = np.vstack([base, base, base + 1e-5 * rng.normal(size=base.shape)]) + 1e6
    V = rng.normal(size=len(X))
    ours = GPUOperator(k, X, precision=precision).input_gradients(V).cpu()
    assert apart(ours, KernelOperator(k, X).input_gradients(V)) < 2e-5


def test_signs_of_columns_that_float32_takes_for_equal():
    """Of the 1-norm each pair adds a whole sign a column, however near its numbers are."""
    rng = np.random.default_rng(2)
    X = 1 + 1e-9 * rng.integers(0, 6, size=(80, 3)) + rng.integers(0, 2, size=(80, 3))
    k, V = Laplace(2.0, norm=1), rng.normal(size=80)
    ours = GPUOperator(k, X[:30], X, precision="float32").input_gradients(V).cpu()
    assert apart(ours, KernelOperator(k, X[:30], X).input_gradients(V)) < 3e-6


@pytest.mark.parametrize("diagonal", [False, True])
def test_outer_products_go_by_pieces_of_rows(diagonal, monkeypatch):
    monkeypatch.setattr("mercer.gpu.gradients.PIECE_BYTES", 1)
    k = Laplace(2.0)
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(300, 3)), rng.normal(size=(300, 2))
    ours = GPUOperator(k, X).gradient_outer_product(A, diagonal=diagonal).cpu()
    theirs = KernelOperator(k, X).gradient_outer_product(A, diagonal=diagonal)
    assert apart(ours, theirs) < 1e-5


def test_what_has_no_slope_is_refused_in_a_sentence():
    X = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(NotImplementedError, match="elementary has no derivative by its inputs"):
        GPUOperator(Anova(2), X).input_gradients(np.ones(5))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda op: op.pullback(np.ones(4), np.ones(5)), "U must have 5 rows"),
        (lambda op: op.pullback(np.ones(5), np.ones((5, 2))), "as many columns as each other"),
        (lambda op: op.input_gradients(np.ones(4)), "A must have 5 rows"),
        (lambda op: op.input_gradients(np.ones(5), rows=[]), "rows chooses none"),
    ],
)
def test_wrong_shapes_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call(GPUOperator(Gaussian(1.0), np.ones((5, 2))))
