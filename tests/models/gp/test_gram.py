"""GaussianProcessRegressor of a Gram matrix: what a kernel tells, as far as the matrix tells it."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from mercer.kernels import Gaussian, Matern
from mercer.models import GaussianProcessRegressor as GP
from mercer.store import load, save
from tests.contract import keeps_contract

K = Gaussian(0.6)


def data(n=80, q=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    Y = np.column_stack(
        [np.sin(3 * X[:, 0] + j) + X[:, 1] + 0.3 * rng.normal(size=n) for j in range(q or 1)]
    )
    return X, Y if q else Y[:, 0]


@pytest.mark.parametrize("q", [None, 2])
@pytest.mark.parametrize("noise", [0.1, "learn"])
def test_the_matrix_is_its_kernel(q, noise):
    (X, y), (Z, _) = data(q=q), data(9, seed=1)
    ours = GP("precomputed", noise).fit(K(X), y)
    theirs = GP(K, noise, fixed="all" if noise == "learn" else None, n_restarts=0).fit(X, y)
    tol = 1e-3 if noise == "learn" else 1e-9
    np.testing.assert_allclose(ours.predict(K(Z, X)), theirs.predict(Z), rtol=tol, atol=tol)
    np.testing.assert_allclose(ours.loo_predictions_, theirs.loo_predictions_, rtol=tol, atol=tol)
    np.testing.assert_allclose(ours.loo_variances_, theirs.loo_variances_, rtol=10 * tol)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_, abs=0.01)
    np.testing.assert_allclose(ours.noise_, theirs.noise_, rtol=0.02)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=0.02)
    assert ours.kernel_ == "precomputed"
    assert ours.plan_.way == "exact"


def test_one_noise_a_row_and_single_precision():
    X, y = data()
    noise = np.random.default_rng(0).uniform(0.05, 1, len(y))
    wanted = GP(K, noise).fit(X, y).predict(X)
    np.testing.assert_allclose(
        GP("precomputed", noise).fit(K(X), y).predict(K(X)), wanted, atol=1e-9
    )
    half = GP("precomputed", noise).fit(K(X).astype(np.float32), y).predict(K(X).astype(np.float32))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, wanted, atol=1e-4)


def test_folds_cut_rows_and_columns():
    X, y = data()
    scores = [cross_val_score(GP(k, 0.1), A, y, cv=4) for k, A in (("precomputed", K(X)), (K, X))]
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_saved_models(tmp_path):
    X, y = data()
    m = GP("precomputed").fit(K(X), y)
    save(m, tmp_path / "m.mercer")
    np.testing.assert_allclose(load(tmp_path / "m.mercer").predict(K(X)), m.predict(K(X)))


def test_draws_of_the_prior_at_the_rows_of_fit():
    X, y = data(4)
    S = GP("precomputed", 0.1).fit(K(X), y).sample_y(K(X), 20_000, posterior=False, of="f")
    np.testing.assert_allclose(np.cov(S), K(X), atol=0.05)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, A: m.predict(A, return_std=True),
        lambda m, A: m.predict(A, return_cov=True),
        lambda m, A: m.predict_interval(A),
        lambda m, A: m.sample_y(A),
        lambda m, A: m.sample_y(A, posterior=False),
        lambda m, A: m.sample_functions(),
    ],
    ids=["std", "cov", "interval", "posterior", "prior", "functions"],
)
def test_what_the_matrix_does_not_tell(ask):
    (X, y), (Z, _) = data(), data(9, seed=1)
    with pytest.raises(ValueError, match="means only"):
        ask(GP("precomputed", 0.1).fit(K(X), y), K(Z, X))


@pytest.mark.parametrize(
    ("options", "cut", "match"),
    [
        ({}, 5, "square Gram matrix"),
        (dict(via="landmarks"), 80, "no features or landmarks"),
        (dict(via="iterative"), 80, "via='exact'"),
        (dict(bounds={"noise": (1, 2)}), 80, "leave them out"),
    ],
    ids=["shape", "landmarks", "iterative", "bounds"],
)
def test_one_sentence_errors(options, cut, match):
    X, y = data()
    with pytest.raises(ValueError, match=match):
        GP("precomputed", **options).fit(K(X)[:cut], y[:cut])


def test_matrices_of_no_kernel_and_streams():
    X, y = data()
    A = K(X)
    A[0, 1] += 1
    with pytest.raises(ValueError, match="symmetric"):
        GP("precomputed").fit(A, y)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        GP("precomputed", 0.1).fit(-Matern()(X), y)
    m = GP("precomputed", 0.1).fit(K(X), y)
    for name in ("partial_fit", "forget"):
        with pytest.raises(AttributeError) as refused:
            getattr(m, name)
        assert "no stream" in str(refused.value.__cause__)


def test_scikit_learn_contract():
    why = {
        "check_positive_only_tag_during_fit": "takes its mean out of the Gram matrix, which is then of no kernel"
    }
    (failed,) = keeps_contract(GP("precomputed"), why).values()
    # the check takes 1 from a Gram matrix of ones and less
    assert "not positive semidefinite" in str(failed.__cause__)
