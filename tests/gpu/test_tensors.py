"""Tensors on a GPU as rows: kernels, operators and estimators compute there and answer there. In
Triton's interpreter, tensors of the CPU stand for such."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer import methods  # noqa: E402
from mercer.gpu.operator import GPUOperator  # noqa: E402
from mercer.kernels import Chi2, Gaussian, Laplace  # noqa: E402
from mercer.models import (  # noqa: E402
    GaussianProcessRegressor,
    KernelKMeans,
    KernelRidge,
    NadarayaWatson,
    SoftNeighborsClassifier,
)

PLACE = "cuda:0" if torch.cuda.is_available() else "cpu"


def there(A):
    return torch.from_numpy(np.array(A)).to(PLACE)


def rows(n=60, d=3, dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    return X, there(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_matrices_of_tensors_are_tensors_there(dtype):
    X, T = rows(dtype=dtype)
    K = Laplace(2.0)(T, T[:7])
    assert torch.is_tensor(K)
    assert str(K.device) == PLACE
    assert K.cpu().numpy().dtype == dtype
    assert np.allclose(K.cpu().numpy(), Laplace(2.0)(X, X[:7]), atol=1e-6)
    assert np.allclose(Gaussian()(T).cpu().numpy(), Gaussian()(X), atol=1e-6)


def test_operators_of_tensors_never_see_the_host(monkeypatch):
    X, T = rows()
    v = there(np.arange(60.0))
    monkeypatch.setattr(torch.Tensor, "numpy", None)
    K = Gaussian(1.5).operator(T)
    assert isinstance(K, GPUOperator)
    out = K @ v
    monkeypatch.undo()
    assert str(out.device) == PLACE
    assert np.allclose(out.cpu().numpy(), Gaussian(1.5)(X) @ np.arange(60.0), rtol=1e-5)


@pytest.mark.parametrize(
    "m",
    [
        KernelRidge(Gaussian(), 0.1, via="iterative"),
        KernelRidge(Gaussian(), 0.1, via=methods.Fourier(32), random_state=0),
        GaussianProcessRegressor(Gaussian(1.0), noise=0.1, via="iterative"),
        NadarayaWatson(Gaussian(1.0)),
        KernelKMeans(2, kernel=Gaussian(1.0), random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_estimators_compute_where_rows_lie_and_answer_there(m):
    X, T = rows()
    y = np.sin(X[:, 0])
    cpu = m.fit(X, y).predict(X[:9])
    assert "GPU" not in m.plan_.why
    m.fit(T, there(y))
    assert m.device == "cpu"
    assert f"on the GPU ({PLACE}, where X lies)" in m.plan_.why
    out = m.predict(T[:9])
    assert torch.is_tensor(out)
    assert str(out.device) == PLACE
    assert np.allclose(out.cpu().numpy(), cpu, atol=1e-4)
    assert isinstance(m.predict(X[:9]), np.ndarray)
    if isinstance(m, KernelRidge):
        assert m.score(T, there(y)) == pytest.approx(m.score(X, y), abs=1e-4)


def test_names_of_classes_are_arrays_and_numbers_tensors():
    X, T = rows()
    y = np.where(X[:, 0] > 0, "a", "b")
    m = SoftNeighborsClassifier(Gaussian(1.0)).fit(T, y)
    assert isinstance(m.predict(T), np.ndarray)
    assert torch.is_tensor(m.predict_proba(T))
    assert m.score(T, y) > 0.8
    numbered = SoftNeighborsClassifier(Gaussian(1.0)).fit(T, there((X[:, 0] > 0).astype(int)))
    assert torch.is_tensor(numbered.predict(T))


def test_other_tensors_are_refused_in_a_sentence():
    X, T = rows()
    with pytest.raises(ValueError, match=r"X asks for gradients.*give X.detach\(\)"):
        KernelRidge().fit(T.clone().requires_grad_(), X[:, 0])
    with pytest.raises(ValueError, match=r"X has dtype torch.bfloat16; give X.float\(\)"):
        Gaussian()(T.bfloat16())
    with pytest.raises(ValueError, match="Z is no tensor on"):
        Gaussian().operator(T, X)
    with pytest.raises(ValueError, match="Z has 2 columns, 3 expected"):
        Gaussian()(T, T[:, :2])
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        Gaussian()(torch.where(T > 1, torch.nan, T))
    with pytest.raises(ValueError, match="X must have rows and columns"):
        Gaussian().operator(T[0])
    with pytest.raises(ValueError, match="Chi2"):
        Chi2()(T)
