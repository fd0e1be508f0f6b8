"""The interior-point method against steps of duals."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Polynomial
from mercer.models.svm.interior import interior_start
from mercer.models.svm.problem import DualProblem
from mercer.models.svm.solver import solve
from mercer.operators import TileOperator
from tests.models.svm.examples import example, value


@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_the_interior_point_method_ends_where_steps_do(e, ridge, bias):
    if e and ridge:
        pytest.skip("no loss is both")
    X, problem = example(120, e=e, bias=bias)
    if ridge:
        t = problem.t
        problem = DualProblem(
            t, np.where(t > 0, 0, -np.inf), np.where(t > 0, np.inf, 0), e, np.full(120, 0.5), bias
        )
    K = Polynomial(2)(X)
    b, exact = interior_start(lambda j: K[:, j], K.diagonal(), problem)
    best = solve(TileOperator(Polynomial(2), Table(X)), problem, 1e-9)
    assert exact
    assert value(K, problem, b) == pytest.approx(best.objective, rel=1e-6)
    assert (b >= problem.lo).all()
    assert (b <= problem.hi).all()
    assert abs(b.sum()) < 1e-12 * np.abs(b).sum() or not bias
    assert (
        interior_start(lambda j: np.eye(600)[:, j], np.ones(600), example(600)[1]) is None
    )  # of too high a rank
