"""Recipes: kernels about the data, bandwidths that follow relevance, columns to expand."""

import numpy as np
import pytest

from mercer.automl.recipes import (
    EXPLICIT,
    Recipe,
    explicit,
    follow_relevance,
    kernels,
    scaled,
    slopes,
)
from mercer.kernels import Gaussian
from tests.automl.arrays import problem


def test_slopes_tell_the_columns_that_matter():
    p = problem(1500)
    found = slopes(Recipe("fourier", Gaussian(1.5)).lift(256, 0), p.rows.X, p.rows.y[:, None], 0.1)
    assert min(found[0], found[1]) > 5 * found[2]
    kernel = follow_relevance(Recipe("fourier", Gaussian(1.5)), found, 0.5).kernel
    assert kernel.bandwidth[2] > 2 * max(kernel.bandwidth[:2])
    assert np.mean(1 / np.square(kernel.bandwidth)) == pytest.approx(1 / 1.5**2, rel=0.02)
    assert scaled(Recipe("fourier", kernel), 2.0).kernel.bandwidth[0] == pytest.approx(
        2 * kernel.bandwidth[0], rel=0.01
    )


def test_kernels_range_from_smooth_to_rough_about_the_data():
    found = kernels(np.random.default_rng(0).normal(size=(100, 4)))
    assert {type(r.kernel).__name__ for r in found} == {"Gaussian", "Matern", "Laplace"}
    assert all(r.spelled for r in found)


def test_indicators_are_not_expanded_beside_numbers():
    X = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    assert explicit(X) is EXPLICIT
    X[:, 2:] = X[:, 2:] > 0
    assert explicit(X[:, 2:]) is EXPLICIT
    recipe = explicit(X)
    phi = recipe.lift(100, 0).fit(X)
    assert (recipe.numbers, recipe.others) == ((0, 1), (2, 3))
    assert np.array_equal(phi.transform(X)[:, :2], X[:, 2:])
    assert phi.n_features_out_ > 10
