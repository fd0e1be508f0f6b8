"""Every explicit lift keeps scikit-learn's contract."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear, exp
from mercer.lifts import (
    Basis,
    Grid,
    Hermite,
    Interactions,
    Jumps,
    KitchenSink,
    Monomials,
    Parabolic,
    Splines,
    Subsets,
    Taylor,
)

LIFTS = [
    Parabolic(),
    Monomials(),
    Monomials(weights="kernel"),
    Monomials(ordered=True),
    Interactions(),
    Interactions(order=1, columns=[0]),
    Subsets(),
    Subsets(max_size=2),
    Taylor(),
    Taylor(Gaussian(2.0), degree=3),
    Taylor(exp(0.01 * Linear()), degree=2),
    Hermite(),
    Grid(columns=[0]),
    Basis(),
    Jumps(),
    Jumps("distinct"),
    Splines(),
    KitchenSink(),
]


@pytest.mark.parametrize("phi", LIFTS, ids=repr)
def test_check_estimator(phi):
    check_estimator(phi, on_skip=None)


def test_grid_of_all_columns():
    few = "a grid of five or more columns is refused"
    checks = ["check_estimators_dtypes", "check_dtype_object", "check_fit2d_1sample"]
    results = check_estimator(
        Grid(), on_skip=None, expected_failed_checks=dict.fromkeys(checks, few)
    )
    failed = [result for result in results if result["status"] == "xfail"]
    assert all("more than max_features" in str(result["exception"]) for result in failed)
