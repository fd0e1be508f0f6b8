"""The features of chi-squared kernels: their error is what they say, on all rows >= 0."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import AdditiveChi2Sampler

from mercer.kernels import AdditiveChi2, Chi2, Cosine
from mercer.lifts import AdditiveChi2Features, Chi2Features
from mercer.lifts.homogeneous import additive_error, samples_for
from mercer.methods import Exact, Fourier
from mercer.testing import check_lift


def hostile(n=14, d=3, seed=0):
    X = (
        np.random.default_rng(seed).gamma(0.2, size=(n, d))
        * 10.0 ** np.arange(-6, 6, 12 / n)[:, None]
    )
    X[1], X[2, 1], X[3, 1], X[-1] = 0, 0, 0, X[0]
    X[4], X[5] = 1e100, 1e-100
    return X


@pytest.mark.parametrize("n", [0, 1, 3, 8, 20, 40])
def test_the_error_is_within_its_bound_wherever_rows_are(n):
    X = hostile()
    phi = AdditiveChi2Features(n_samples=n).fit(X)
    F = phi.transform(X)
    error = np.abs(F @ F.T - AdditiveChi2()(X))
    top = np.maximum(X[:, None], X).sum(-1)
    assert (error <= phi.error_ * top + 1e-14 * top).all()
    x = np.exp(np.linspace(0, 40, 4001))[:, None]  # one row against all shares
    F, one = phi.set_params().fit(x).transform(x), AdditiveChi2()(x, x[:1])[:, 0]
    worst = float((np.abs(F @ F[0] - one) / x[:, 0]).max())
    assert worst <= phi.error_
    assert worst >= phi.error_ / 20  # which is no idle promise


def test_the_error_falls_with_the_root_of_the_samples():
    assert [samples_for(eps) for eps in (0.1, 1e-3, 1e-6, 1e-9)] == sorted(
        samples_for(eps) for eps in (0.1, 1e-3, 1e-6, 1e-9)
    )
    for eps in (0.1, 1e-3, 1e-6, 1e-9):
        n = samples_for(eps)
        assert additive_error(n) <= eps < additive_error(n - 1)
    assert AdditiveChi2Features(eps=1e-3).fit([[1.0]]).error_ <= 1e-3


def test_less_error_than_scikit_learns_at_equal_size():
    X = np.random.default_rng(0).dirichlet(np.ones(8), size=60)
    K = AdditiveChi2()(X)
    for steps in (2, 3):
        theirs = AdditiveChi2Sampler(sample_steps=steps).fit_transform(X)
        ours = AdditiveChi2Features(n_samples=steps - 1).fit_transform(X)
        assert ours.shape == theirs.shape
        assert np.abs(ours @ ours.T - K).max() < np.abs(theirs @ theirs.T - K).max()


@pytest.mark.parametrize("of", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_the_same_features(of, dtype):
    X = np.random.default_rng(0).gamma(0.3, size=(20, 6)).astype(dtype)
    X[X < 0.1] = 0
    for phi in (AdditiveChi2Features(), Chi2Features(n_features=32, random_state=0)):
        dense, thin = (phi.fit(R).transform(R) for R in (X, of(X)))
        found = thin.toarray() if sp.issparse(thin) else thin
        assert found.dtype == dense.dtype == dtype
        np.testing.assert_allclose(found, dense, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert sp.issparse(AdditiveChi2Features().fit(of(X)).transform(of(X)))


def test_the_table_of_kernels_and_lifts():
    X = np.random.default_rng(1).gamma(1.0, size=(8, 3))
    check_lift(AdditiveChi2().lift(method=Exact()), X)
    check_lift((AdditiveChi2() + Cosine()).lift(), X)
    check_lift(Cosine().lift(method=Exact()), X)
    check_lift(Chi2(0.5).lift(32, random_state=0), X, exact=False, seeds=20)
    few = Chi2().lift(10, method=Fourier(20, frequencies="iid"), random_state=0).fit(X)
    assert few.n_features_out_ == 20
    assert few.map_.frequencies == "iid"


@pytest.mark.long
def test_random_maps_of_the_table():
    X = np.random.default_rng(1).gamma(1.0, size=(8, 3))
    for phi in (
        (2 * Chi2(0.5) * Cosine()).lift(128, random_state=0),
        Chi2Features(0.5, 16, form="shift", random_state=0),
        AdditiveChi2().lift(4, random_state=0),
    ):
        check_lift(phi, X, exact=False)


@pytest.mark.parametrize("size", [9, 30, 100, 400])
def test_as_many_features_as_asked_for(size):
    X = np.random.default_rng(1).gamma(1.0, size=(8, 3))
    phi = AdditiveChi2().lift(size).fit(X)
    F = phi.transform(X)
    assert F.shape[1] <= size
    n = (size // 3 - 1) // 2
    assert (
        np.abs(F @ F.T - AdditiveChi2()(X)).max()
        <= max(additive_error(n), 1e-9) * 2 * X.sum(1).max()
    )


@pytest.mark.long
def test_large_rows_ask_for_more_samples():
    """Distances beyond which the kernel is 0 hide no error of near rows."""
    X = np.random.default_rng(0).gamma(1.0, size=(40, 2)) * 0.1 + 1e5
    means = [
        F @ F.T
        for F in (Chi2Features(n_features=512, random_state=s).fit_transform(X) for s in range(20))
    ]
    np.testing.assert_allclose(np.mean(means, 0), Chi2()(X), atol=0.02)


def test_numbers_below_zero_are_refused_in_fit_and_after_it():
    X = np.random.default_rng(1).gamma(1.0, size=(8, 3))
    for phi in (AdditiveChi2Features(), Chi2Features(), Chi2().lift(8), AdditiveChi2().lift()):
        phi.fit(X)
        for ask in (phi.fit, phi.transform):
            with pytest.raises(ValueError, match=r"row 0 of X has -[\d.]+ in column 0"):
                ask(-X)


@pytest.mark.parametrize(
    ("phi", "said"),
    [
        (AdditiveChi2Features(eps=0), "eps must be a number > 0"),
        (AdditiveChi2Features(n_samples=-1), "n_samples must be an integer >= 0"),
        (Chi2Features(gamma=0), "gamma must be a number > 0"),
        (Chi2Features(n_features=3), "n_features must be even"),
    ],
)
def test_settings_are_named(phi, said):
    with pytest.raises(ValueError, match=said):
        phi.fit([[1.0]])
