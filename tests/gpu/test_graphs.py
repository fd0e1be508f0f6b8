"""Steps that are one launch compute what their launches do, one by one."""

import gc
import os

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1" and not torch.cuda.is_available():
    pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set", allow_module_level=True)

from mercer.gpu.conjugate import ConjugateGradients  # noqa: E402
from mercer.gpu.graphs import RepeatedStep  # noqa: E402
from mercer.gpu.operator import GPUOperator  # noqa: E402
from mercer.gpu.quadrature import jacobi, normals  # noqa: E402
from mercer.gpu.solve import GPUSolver  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402

PLACE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def system(n=90, rank=10, **settings):
    X = np.random.default_rng(0).normal(size=(n, 2))
    solver = GPUSolver(rank=rank, **settings)
    return solver.init(GPUOperator(Gaussian(0.7), X), np.linspace(0.1, 0.3, n))


@pytest.mark.parametrize("waits", [False, True])
def test_a_step_is_run_as_often_as_it_is_called(waits):
    """One that waits for what it computes cannot be captured, and is run as it is."""
    total, seen = torch.zeros(3, device=PLACE), []

    def step():
        total.add_(1)
        if waits:
            seen.append(float(total[0]))

    repeated = RepeatedStep(PLACE, captured=True)
    for count in range(1, 6):
        repeated(step)
        assert total.tolist() == [count] * 3
    if waits:
        assert seen[-1] == 5
    if PLACE.type == "cuda":
        assert (repeated.graph is None) == waits
    assert torch.isfinite(torch.randn(3, device=PLACE)).all()  # generators know no capture now


def test_garbage_is_not_collected_while_a_step_is_captured():
    """A graph in it could not be freed then, and would break the capture."""

    def garbage():
        s = system()
        made = ConjugateGradients(s, s.on_device(np.ones((90, 1))))
        made.start(made.R, s.P.solve(made.R), torch.zeros_like(made.goal))
        made.itself = made
        return [*made.steps(3)]

    total = torch.zeros(3, device=PLACE)

    def step():
        gc.collect(0) if gc.isenabled() else None
        total.add_(1)

    gc.collect()
    garbage()
    repeated = RepeatedStep(PLACE, captured=True)
    for _ in range(4):
        repeated(step)
    assert total.tolist() == [4] * 3
    assert gc.isenabled()


@pytest.mark.parametrize("captured", [0, 1 << 32])
def test_steps_in_one_launch_are_those_of_many(captured, monkeypatch):
    s = system()
    E, B = normals(s, 16, 0), s.on_device(np.random.default_rng(1).normal(size=(90, 3)))
    plain = system()
    monkeypatch.setattr("mercer.gpu.conjugate.CAPTURED", captured)
    found = jacobi(s, E, B, 100, 1e-3), s.solve_there(B)
    monkeypatch.setattr("mercer.gpu.conjugate.CAPTURED", -1)
    expected = jacobi(plain, E, B, 100, 1e-3), plain.solve_there(B)
    np.testing.assert_array_equal(found[0].alphas, expected[0].alphas)
    np.testing.assert_array_equal(found[0].betas, expected[0].betas)
    assert torch.equal(found[0].solved, expected[0].solved)
    assert torch.equal(found[0].begun, expected[0].begun)
    assert found[1][3] == expected[1][3] > 5
    assert all(torch.equal(a, b) for a, b in zip(found[1][:2], expected[1][:2], strict=True))


def test_each_column_goes_on_until_it_is_done():
    s = system()
    A = Gaussian(0.7)(s.op.X.cpu().numpy()) + np.diag(s.d.cpu().numpy())
    B = np.random.default_rng(1).normal(size=(90, 4))
    B[:, 2] = 0
    goal = np.array([1e-1, 1e-4, 0.0, 1e-3])
    made = ConjugateGradients(s, T := s.on_device(B))
    made.start(T, s.P.solve(T), s.on_device(goal))
    on = [made.on.tolist()]
    on += [made.on.tolist() for _ in made.steps(60)]
    assert on[0] == [True, True, False, True]
    assert not any(on[-1])
    lasts = [sum(step[j] for step in on) for j in range(4)]
    assert lasts[2] < lasts[0] < lasts[3] < lasts[1] == len(on) - 1
    R, X = made.R.cpu().numpy(), made.X.cpu().numpy()
    assert (np.linalg.norm(R, axis=0) <= goal).all()
    assert (np.abs(B - A @ X - R) <= 1e-6 * A @ np.abs(X)).all()


def test_steps_are_no_more_than_allowed():
    s = system()
    B = s.on_device(np.random.default_rng(1).normal(size=(90, 1)))
    made = ConjugateGradients(s, B)
    made.start(B, s.P.solve(B), torch.zeros_like(B[0]))
    assert [*made.steps(3)] == [1, 2, 3]
    assert bool(made.going)
