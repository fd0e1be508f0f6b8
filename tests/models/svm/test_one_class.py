"""OneClassSVM: LIBSVM's duals and decisions, the meaning of nu."""

import warnings

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from mercer.kernels import Gaussian
from mercer.models.svm.one_class import OneClassSVM, filled
from tests.contract import keeps_contract


def data(n=300, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


ROUGH = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "compares to 1e-7, which tol=1e-3 does not promise",
)


@pytest.mark.parametrize(("tol", "rough"), [(1e-3, ROUGH), (1e-12, {})])
def test_scikit_learn_contract(tol, rough):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        keeps_contract(OneClassSVM(tol=tol), rough)


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_is_that_of_libsvm(nu, dtype):
    X = data()
    K = Gaussian()(X)
    m, twin = (
        OneClassSVM(Gaussian(), nu=nu).fit(X.astype(dtype)),
        svm.OneClassSVM(gamma=0.5, nu=nu, tol=1e-3).fit(X),
    )
    assert m.dual_coef_.sum() == pytest.approx(nu * len(X))
    values = []
    for v in (m, twin):
        b = np.zeros(len(X))
        b[v.support_] = v.dual_coef_[0]
        values.append(b @ K @ b / 2)
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert -m.objective_ == pytest.approx(values[0], rel=1e-4)
    np.testing.assert_allclose(
        m.decision_function(X.astype(dtype)),
        twin.decision_function(X),
        atol=2e-3 * max(1, len(X) * nu / 10),
    )


def test_at_nu_1_every_dual_is_at_its_bound():
    X = data()
    m = OneClassSVM(Gaussian(), nu=1.0).fit(X)
    np.testing.assert_array_equal(m.dual_coef_, 1)
    assert np.isfinite(m.decision_function(X)).all()


def test_nu_is_a_share_of_the_rows():
    outside, vectors = [], []
    for seed in range(5):
        m = OneClassSVM(nu=0.2).fit(X := data(400, seed))
        outside.append(np.mean(m.predict(X) == -1))
        vectors.append(len(m.support_) / 400)
    assert 0.15 < np.mean(outside) < 0.21
    assert min(vectors) >= 0.2


def test_weights_are_repetitions():
    X = data(100)
    w = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = OneClassSVM(Gaussian(), nu=0.3, tol=1e-7).fit(X, sample_weight=w)
    repeated = OneClassSVM(Gaussian(), nu=0.3, tol=1e-7).fit(X.repeat(w, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )


def test_many_rows_go_by_blocks_and_a_given_matrix_is_its_kernel(monkeypatch):
    X = data(600)
    whole, given = (
        OneClassSVM(Gaussian(), nu=0.1).fit(X),
        OneClassSVM("precomputed", nu=0.1).fit(Gaussian()(X)),
    )
    np.testing.assert_allclose(
        given.decision_function(Gaussian()(X)), whole.decision_function(X), atol=1e-2
    )
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 100)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 128)
    blocks = OneClassSVM(Gaussian(), nu=0.1).fit(X)
    assert blocks.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    assert blocks.dual_coef_.sum() == pytest.approx(60)


def test_filled_duals_and_what_is_refused():
    np.testing.assert_allclose(filled(np.array([2.0, 1.0, 1.0]), 0.5), [2, 0, 0])
    for nu in (0, 1.5, "a"):
        with pytest.raises(ValueError, match=r"nu must be a number in \(0, 1\]"):
            OneClassSVM(nu=nu).fit(data(10))
    with pytest.raises(ValueError, match="square"):
        OneClassSVM("precomputed").fit(np.ones((4, 3)))


@pytest.mark.parametrize("nu", [0.005, 0.1])
@pytest.mark.parametrize("unit", [1e-6, 1 / 300, 1e4])
def test_the_unit_of_weights_does_not_matter(nu, unit):
    X = data()
    plain, scaled = (
        OneClassSVM(Gaussian(), nu=nu, tol=1e-9).fit(X),  # at 1e-3 rounding chooses other steps
        OneClassSVM(Gaussian(), nu=nu, tol=1e-9).fit(X, sample_weight=np.full(300, unit)),
    )
    np.testing.assert_allclose(
        scaled.decision_function(X) / unit, plain.decision_function(X), atol=1e-6
    )
    assert scaled.dual_coef_.sum() == pytest.approx(nu * 300 * unit)
    assert max(scaled.gap_, plain.gap_) <= 1e-9


@pytest.mark.parametrize("nu", [0.001, 0.005, 0.02])
def test_few_duals_are_found_as_closely_as_many(nu):
    for seed in range(3):
        m = OneClassSVM(Gaussian(), nu=nu).fit(X := data(seed=seed))
        assert m.gap_ <= 1e-3
        assert np.mean(m.predict(X) == -1) <= nu + 2 / 300
