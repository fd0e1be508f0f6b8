"""Derivatives of traced formulas, which need no GPU: against dual numbers of the CPU."""

import numpy as np
import pytest

from mercer.gpu.derivatives import by_inputs, by_parameters, derivatives
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from tests.gpu.test_formula import KERNELS


def evaluated(made, q, t):
    with np.errstate(all="ignore"):
        return dict(zip(made.names, made.formula()(np, *q, *t), strict=True))


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_slopes_are_those_of_finite_differences(k):
    source, rng, step = k.source(), np.random.default_rng(0), 1e-6
    q = [rng.uniform(0.3, 0.9, (3, 4)) for _ in source.quantities]
    made = derivatives(source)
    here = evaluated(made, q, source.parameters)
    for name in made.names[1:]:
        values = []
        for sign in (1, -1):
            moved = [*q, *map(float, source.parameters)]
            at = int(name[1:]) + (len(q) if name[0] == "t" else 0)
            moved[at] = moved[at] + sign * step
            values.append(evaluated(made, moved[: len(q)], moved[len(q) :])[""])
        assert np.allclose(here[name], (values[0] - values[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_what_is_not_needed_is_left_out():
    k = Gaussian(2.0) + Linear() * Polynomial(2)
    made = derivatives(k.source(), by_inputs)
    some = made.some("q0")
    assert len(some.quantities) == 1
    assert some.quantities[0].kind == "sqdist"
    assert not any("t1" in line for line in some.lines)


def test_one_bandwidth_needs_no_sums_over_columns_and_many_do():
    assert derivatives(Matern(2.0).source(), by_parameters).names == ("", "t0")
    assert derivatives(Matern((2.0, 3.0)).source(), by_parameters).names == ("", "q0")


@pytest.mark.parametrize("k", [Laplace(2.0), Laplace(2.0, exponent=0.7), Matern(1.0)], ids=repr)
def test_slopes_at_distance_zero_are_zero(k):
    made = derivatives(k.source(), by_inputs)
    zero = evaluated(made, [np.zeros((1, 1))], k.source().parameters)
    assert zero["q0"] == 0
