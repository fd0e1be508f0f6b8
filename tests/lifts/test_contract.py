"""Every explicit lift keeps scikit-learn's contract."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear, exp
from mercer.lifts import (
    AdditiveChi2Features,
    Basis,
    Chi2Features,
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
from tests.contract import keeps_contract

LIFTS = [
    Parabolic(),
    Monomials(),
    Monomials(weights="kernel"),
    Monomials(ordered=True),
    Monomials((2, 3)),
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
    Splines(handle_missing="indicator"),
    Splines(sparse_output=True),
    KitchenSink(),
    AdditiveChi2Features(),
    AdditiveChi2Features(n_samples=0),
    Chi2Features(random_state=0),
]


@pytest.mark.parametrize("phi", LIFTS, ids=repr)
def test_check_estimator(phi):
    check_estimator(phi, on_skip=None)


def test_grid_of_all_columns():
    few = "a grid of five or more columns is refused"
    checks = ["check_estimators_dtypes", "check_dtype_object", "check_fit2d_1sample"]
    failed = keeps_contract(Grid(), dict.fromkeys(checks, few))
    assert all("more than max_features" in str(error) for error in failed.values())
