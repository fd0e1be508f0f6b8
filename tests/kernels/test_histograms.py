"""Kernels of histograms: scikit-learn's values, every reading, and rows that leave their domain."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel, cosine_similarity

from mercer import check_psd
from mercer.inputs import Table
from mercer.kernels import AdditiveChi2, Chi2, Cosine, Gaussian, Kernel, Linear
from mercer.kernels.domain import bounded, check_rows
from mercer.pairs.logs import LogTile
from mercer.pairs.mixed import slope_variances
from mercer.pairs.side import Side
from mercer.testing import check_kernel

S = [[1.0, 0.5, 0.0], [0.0, 2.0, 1.0]]
TREES: dict[str, Kernel] = {
    "additive": AdditiveChi2(),
    "chi2": Chi2(0.7),
    "product": 2 * Chi2(0.3) * AdditiveChi2() + Cosine(),
    "normalized": AdditiveChi2().normalized(),
    "mapped": Chi2().mapped(S) + AdditiveChi2().mapped(S) * Gaussian(),
    "columns": AdditiveChi2().on_columns([2, 0]) + Chi2(2.0).on_columns([1]),
    "power": (AdditiveChi2() + 1) ** 2,
}


def histograms(n=9, d=3, seed=0):
    """Rows >= 0 with zeros, a zero row and a copy."""
    X = np.random.default_rng(seed).gamma(0.7, size=(n, d))
    X[1], X[2, 1], X[3, 1], X[-1] = 0, 0, 0, X[0]
    return X


@pytest.mark.parametrize("name", TREES)
def test_the_contract(name):
    check_kernel(TREES[name], histograms())
    check_kernel(TREES[name], histograms(5, seed=1) * 30)


def test_the_contract_knows_such_rows():
    check_kernel(Chi2(2.0))


@given(st.sampled_from(list(TREES)), st.integers(0, 2**16), st.floats(-6, 6))
def test_psd_on_hostile_rows(name, seed, power):
    X = histograms(12, seed=seed) * 10.0**power
    X[5] = X[4] * (1 + 1e-9)
    K = TREES[name](X)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1e-300, np.trace(K))
    assert TREES[name].proof()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_values_are_those_of_scikit_learn(dtype, of):
    for X, Z in ((histograms(20, 5), histograms(7, 5, 1)), (histograms(9, 40),) * 2):
        A, B = X.astype(dtype), Z.astype(dtype)
        x, z = A.sum(1)[:, None], B.sum(1)
        close = {"rtol": 1e-5 if dtype == np.float32 else 1e-12}
        close["atol"] = close["rtol"]
        X, Z = of(A), of(B)
        np.testing.assert_allclose(Chi2(0.3)(X, Z), chi2_kernel(A, B, gamma=0.3), **close)
        np.testing.assert_allclose(Cosine()(X, Z), cosine_similarity(A, B), **close)
        found = AdditiveChi2()(X, Z)
        assert found.dtype == dtype
        np.testing.assert_allclose(2 * found - x - z, additive_chi2_kernel(A, B), **close)
        np.testing.assert_allclose(AdditiveChi2().diag(X), A.sum(1), **close)


def test_cosine_is_linear_normalized():
    X = np.random.default_rng(0).normal(size=(30, 4)) * 1e6
    X[3] = 0
    np.testing.assert_array_equal(Cosine()(X), Linear().normalized()(X))
    np.testing.assert_array_equal(Cosine().distance(X), Linear().normalized().distance(X))
    np.testing.assert_array_equal(
        Cosine().input_gradient(X), Linear().normalized().input_gradient(X)
    )


@pytest.mark.parametrize("k", [AdditiveChi2(), Chi2(0.5), Chi2(0.5) * AdditiveChi2()])
def test_distances_of_near_rows_have_all_digits(k):
    """|x - z|^2 under the additive kernel is the chi-squared distance."""
    X = np.full((1, 2), 1e6)
    for power in range(-30, 3, 8):
        Z = X + np.array([[2.0**power, 0.0]])
        chi2 = 4.0**power / (2e6 + 2.0**power)
        of = {AdditiveChi2(): chi2, Chi2(0.5): 2 * -np.expm1(-0.5 * chi2)}
        if k in of:
            np.testing.assert_allclose(k.distance(X, Z) ** 2, of[k], rtol=1e-9)
        mapped = k.mapped([1.0, 1.0])
        np.testing.assert_allclose(mapped.distance(X, Z), k.distance(X, Z), rtol=1e-9)


def test_slopes_at_zero_are_those_to_the_right():
    G = Chi2(2.0).input_gradient([[0.0, 1.0]], [[0.0, 1.0]])
    np.testing.assert_allclose(G[0, 0], [-2.0, 0.0])
    assert AdditiveChi2().input_gradient([[0.0]], [[0.0]])[0, 0, 0] == 0
    np.testing.assert_allclose(AdditiveChi2().input_gradient([[0.0]], [[3.0]]), [[[2.0]]])


def test_variance_of_slopes():
    X = np.array([[0.5, 2.0], [3.0, 1.0]])
    ours = slope_variances(AdditiveChi2().on, Table(X))
    np.testing.assert_allclose(ours, 1 / (2 * X))
    ours = slope_variances(Chi2(0.7).on, Table(X))
    np.testing.assert_allclose(ours, 0.7 / X)
    with pytest.raises(ValueError, match="slopes have no finite variance"):
        slope_variances(Chi2().on, Table(np.array([[0.0, 1.0]])))


def test_logarithms():
    X = histograms()
    side = Side(Table(1e4 * X))
    logs = Chi2(2.0).on(LogTile(side, side)).log
    np.testing.assert_allclose(logs, -2.0 * -additive_chi2_kernel(1e4 * X), atol=1e-9)


def test_no_points_are_found_against_them():
    X = histograms(30)
    assert check_psd(Chi2(), X, trials=6) is None
    assert check_psd(AdditiveChi2() + Cosine(), X, trials=6) is None


# rows outside
def test_numbers_below_zero_are_named_by_row_and_column():
    X = histograms()
    X[4, 2] = -0.5
    with pytest.raises(
        ValueError, match=r"^Chi2 takes numbers >= 0, but row 4 of X has -0.5 in column 2 \(Neg"
    ):
        Chi2()(X)
    with pytest.raises(ValueError, match=r"row 4 of Z has -0.5 in column 2"):
        (AdditiveChi2() + 1)(histograms(), sp.csr_array(X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for ask in (Chi2().diag, Chi2().distance, Chi2().operator, Chi2().input_gradient):
        with pytest.raises(ValueError, match=r"row 4 of X has -0.5 in column 'c'"):
            ask(frame)
    with pytest.raises(ValueError, match=r"row 4 of X has -0.5 in column 2"):
        Chi2().on_columns([1, 2]).on_columns([2, 1, 2])(X)
    Chi2().on_columns([0, 1])(X)  # which are as they must be


def test_numbers_that_maps_and_functions_make_are_seen_too():
    X = histograms()
    with pytest.raises(ValueError, match=r"row 0 of X has -[\d.]+ after its map"):
        Chi2().mapped([[-1.0, 0.0, 0.0]])(X)
    with pytest.raises(ValueError, match=r"must hold numbers >= 0, got -"):
        Chi2().warped(np.negative)(X)
    Chi2().warped(np.abs)(-X)


def test_only_such_kernels_are_bounded():
    assert bounded(2 * Chi2() + Gaussian())
    assert not bounded(Gaussian() * Linear())
    check_rows(Gaussian() + Linear(), Table(-histograms()))


@pytest.mark.parametrize("gamma", [0, -1, np.inf, "scale", None])
def test_gamma_must_be_a_number(gamma):
    with pytest.raises(ValueError, match="gamma must be a number > 0"):
        Chi2(gamma)
