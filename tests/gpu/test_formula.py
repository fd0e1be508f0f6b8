"""The text of tiles, which needs no GPU: factors leave the loop, exponentials are powers of two,
parameters are arguments."""

import numpy as np
import pytest

from mercer.gpu.formula import TileFormula, Value
from mercer.gpu.quantities import TileLayout
from mercer.kernels import (
    AdditiveChi2,
    AllSubsets,
    Anova,
    ArcCosine,
    Chi2,
    Cosine,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

KERNELS = [
    Gaussian(2.0),
    0.5 * Gaussian(3.0) + 0.1 * Linear() * Polynomial(2, bias=0.5) + Laplace(4.0),
    Matern((1.0, 2.0, 3.0)) * Gaussian(2.5),
    Laplace(3.0, exponent=0.7),
    Laplace(2.0, norm=1, exponent=0.7),
    RationalQuadratic(1.0, 2.0),
    Polynomial(3).normalized(),
    Periodic(1.0, 2.0),
    AllSubsets() + Anova(2),
    ArcCosine(1),
    Chi2(0.5) + 0.3 * AdditiveChi2().normalized(),
    Cosine(),
]


class Functions:
    """`triton.language` as far as formulas use it, by NumPy."""

    exp2, log2, sqrt, sin, cos, where = np.exp2, np.log2, np.sqrt, np.sin, np.cos, np.where


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_lines_of_the_loop_compute_the_formula(k):
    """At any values of the quantities, whatever factors were carried where."""
    source, rng = k.source(), np.random.default_rng(0)
    q = {f"q{i}": rng.uniform(0.1, 1.5, (3, 4)) for i in range(len(source.quantities))}
    t = {f"t{i}": v for i, v in enumerate(source.parameters)}
    scope = {"xp": np}
    exec(str(source), scope)
    expected = scope["tile"](**q, **t)
    f = TileFormula.of(source, {name: Value(f"w_{name}", f"half_{name}") for name in q})
    scope = {"xp": Functions, **t}
    scope |= {f"w_{name}": 2.0 for name in q} | {f"half_{name}": v / 2 for name, v in q.items()}
    exec("\n".join([*f.scalars, *f.body, f"out = {f.results[0]}"]), scope)
    assert np.allclose(scope["out"], expected, rtol=1e-13, atol=0)


def test_an_exponential_is_one_power_of_two_of_one_product():
    source = Gaussian(2.0).source()
    f = TileFormula.of(source, dict(TileLayout.of(source, "matrix").values))
    assert f.body == ["v1 = xp.exp2((s0 * sq0))"]


def test_quantities_of_the_same_rows_share_one_product():
    k = Gaussian(2.0) + Laplace(3.0) + Linear() * Polynomial(2)
    (g,) = TileLayout.of(k.source(), "matrix").geometries
    assert g.products
    assert g.distances


def test_bandwidths_a_column_and_other_columns_have_products_of_their_own():
    k = Gaussian((1.0, 2.0)) + Gaussian(1.0) + OnColumns(Gaussian(1.0), (0,))
    assert len(TileLayout.of(k.source(), "matrix").geometries) == 3


def test_numbers_of_parameters_are_not_in_the_text():
    texts = [str(TileFormula.of(k.source(), {}).body) for k in (Laplace(2.0), Laplace(7.0))]
    assert texts[0] == texts[1]
