"""`device` as users give it, on machines with and without what a GPU needs."""

import tempfile
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import tensors
from mercer.gpu import devices, files
from mercer.models import (
    FeatureMachineRegressor,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    NadarayaWatson,
    OneClassSVM,
    SoftNeighborsClassifier,
)
from mercer.tensors import to_host

ESTIMATORS = [
    FeatureMachineRegressor,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    NadarayaWatson,
    OneClassSVM,
    SoftNeighborsClassifier,
]


@pytest.mark.parametrize("device", ["gpu", "", None, 0, "cpu:x cuda"])
def test_a_device_that_is_none_is_refused(device):
    if device == "cpu:x cuda":
        assert devices.device_of(device) is None
        return
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        devices.device_of(device)


def test_what_is_missing_is_said_and_auto_goes_without(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="torch and triton cannot be imported; install mercer"):
        devices.device_of("cuda")
    assert devices.device_of("auto") is None
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="device='cuda' is not there"):
        KernelRidge(device="cuda").fit(X, X[:, 0])
    a, b = (KernelRidge(device=d).fit(X, X[:, 0]).predict(X) for d in ("auto", "cpu"))
    assert (a == b).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_say_what_is_missing_in_a_sentence(monkeypatch, estimator):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    X, y = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    with pytest.raises(
        ValueError,
        match=r"device='cuda' is not there: torch and triton cannot be imported; install mercer\[gpu\], or use 'cpu'.",
    ):
        estimator(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        estimator(device="tpu").fit(X, y)


def test_a_model_of_a_gpu_answers_where_there_is_none(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert devices.device_there("cuda") is None


def test_tensors_on_a_gpu_come_to_the_host():
    array = np.eye(3)
    tensor = SimpleNamespace(
        is_cuda=True,
        detach=lambda: SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: array)),
    )
    assert to_host(tensor) is array
    assert to_host(array) is array


@pytest.mark.parametrize("device", ["cuda:2", "cuda:x", "cuda:", "cuda:-1"])
def test_a_number_that_no_device_has_is_said(monkeypatch, device):
    cuda = SimpleNamespace(device_count=lambda: 2)
    monkeypatch.setattr(devices, "missing", lambda: None)
    monkeypatch.setattr(devices, "interpreted", lambda: False)
    monkeypatch.setattr(devices, "import_module", lambda name: SimpleNamespace(cuda=cuda))
    with pytest.raises(ValueError, match="is not there: torch sees 'cuda:0' to 'cuda:1'; use one"):
        devices.device_of(device)
    assert [devices.device_of(d) for d in ("cuda", "cuda:1", "auto")] == ["cuda", "cuda:1", "cuda"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Caches and temporary files lie in tmp_path."""
    monkeypatch.delenv(files.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files._temporary.cache_clear()
    yield tmp_path
    files._temporary.cache_clear()


def test_generated_files_lie_in_the_cache_alone(nowhere):
    assert files.load("product = 3\n") == 3
    assert [p.name for p in nowhere.iterdir()] == ["cache"]
    assert [p.suffix for p in files.folder().iterdir() if p.is_file()] == [".py"]


def test_without_a_cache_there_is_one_temporary_folder(nowhere, monkeypatch):
    (nowhere / "cache").write_text("a file where a folder should be")
    first = files.folder()
    assert first.parent == nowhere
    assert files.folder() == first
    monkeypatch.setenv(files.FOLDER, str(nowhere / "cache" / "inside"))
    with pytest.raises(OSError, match="no folder for generated GPU kernels can be written at"):
        files.folder()


def test_tensors_on_two_devices_are_refused():
    def tensor(place):
        return SimpleNamespace(is_cuda=True, device=place)

    with pytest.raises(ValueError, match="tensors lie on cuda:0 and cuda:1; move them to one"):
        tensors.common_place(tensor("cuda:0"), None, tensor("cuda:1"))
    with tensors.beside(tensor("cuda:1"), np.eye(2)) as place:
        assert place == "cuda:1"
        with tensors.beside(np.eye(2)):
            assert tensors.place_of_rows() == "cuda:1"
    assert tensors.place_of_rows() is None


def test_tiles_run_on_the_device_of_their_arrays(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    from mercer.gpu.launch import launch

    seen, current = [], ["cuda:0"]

    @contextmanager
    def device(place):
        before, current[0] = current[0], f"{place.type}:{place.index}"
        yield
        current[0] = before

    def load(text):
        return {(2, 1): lambda *arrays, **settings: seen.append((text, current[0], settings))}

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(files, "load", load)
    for place in ("cuda:1", "cpu"):
        launch("a text", (2, 1), SimpleNamespace(device=torch.device(place)), R=64)
    assert seen == [("a text", "cuda:1", {"R": 64}), ("a text", "cuda:0", {"R": 64})]


def test_rows_on_a_gpu_say_where_to_compute(monkeypatch):
    monkeypatch.setattr(devices, "interpreted", lambda: False)
    with tensors.beside(SimpleNamespace(is_cuda=True, device="cuda:1")):
        monkeypatch.setattr(devices, "missing", lambda: None)
        assert {devices.device_of(d) for d in ("cpu", "cuda", "auto", "cuda:1")} == {"cuda:1"}
        assert devices.device_there("cpu") == "cuda:1"
        with pytest.raises(ValueError, match="X lies on cuda:1, and device='cuda:0'; move X"):
            devices.device_of("cuda:0")
        monkeypatch.setattr(devices, "missing", lambda: "triton cannot be imported.")
        with pytest.raises(ValueError, match=r"X lies on cuda:1, but triton.*or give X.cpu\(\)"):
            devices.device_of("cpu")


@pytest.mark.parametrize("way", ["exact", "iterative", "landmarks", "features", "auto"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_plans_say_that_auto_found_no_gpu(monkeypatch, estimator, way):
    monkeypatch.setattr(devices, "missing", lambda: "torch sees no CUDA device.")
    given = {"via": way} if way != "auto" else {}
    if not given.keys() <= estimator().get_params().keys():
        pytest.skip("it has no ways")
    X = np.linspace(0, 3, 30)[:, None]
    y = X[:, 0] > 1 if "Class" in estimator.__name__ or "SVC" in estimator.__name__ else X[:, 0]

    def why(device):
        try:
            return estimator(device=device, **given).fit(X, y).plan_.why
        except ValueError as e:
            if "via must be" in str(e):
                pytest.skip("it has no such way")
            raise

    said = "on the CPU, as there is no GPU (torch sees no CUDA device)"
    never = {
        ("KernelSVC", "features"),
        ("KernelSVC", "landmarks"),
        ("GaussianProcessRegressor", "features"),
    }
    on_features = (estimator.__name__, way) in never  # these have no way there
    assert why("auto").count(said) == (0 if on_features else 1)
    assert "GPU" not in why("cpu")
    monkeypatch.setattr(
        devices, "missing", lambda: "torch cannot be imported; install mercer[gpu]."
    )
    assert on_features or "no GPU (torch cannot be imported; install mercer[gpu])" in why("auto")
