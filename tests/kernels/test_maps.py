"""Kernels under a linear map: k(Sx, Sz) of rows that are hard, as a value, and the rows as kernels
measure them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer import KernelRidge, check_psd
from mercer.inputs import table
from mercer.kernels import (
    Callable,
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Mapped,
    Matern,
    Periodic,
    Polynomial,
    measured,
)
from mercer.lifts import KernelLift, MappedLift, Monomials, Nystrom
from mercer.methods import Landmarks
from mercer.store import decode, encode
from mercer.testing import check_kernel, check_lift
from tests.market import rows

rng = np.random.default_rng(0)
S = rng.normal(size=(2, 4))
MAPS = {
    "to fewer": S,
    "to more": rng.normal(size=(7, 4)),
    "of low rank": np.outer(rng.normal(size=4), rng.normal(size=4)),
    "zero": np.zeros((2, 4)),
    "factors": np.array([1.0, 0.0, -2.0, 0.5]),
}
INNER = {
    "gaussian": Gaussian(2.0),
    "laplace": Laplace(2.0, exponent=0.7),
    "1-norm": Laplace(3.0, norm=1, exponent=0.7),
    "dots": Polynomial(2) * Linear().normalized(),
    "tree": (Matern() + 0.5 * Linear()).normalized(),
}


def applied(X, S):
    return X * S if S.ndim == 1 else X @ S.T


def hostile(seed, d=4):
    """A line, near-copies, duplicates and zeros."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(24, d))
    X[:6] = np.linspace(0, 1, 6)[:, None] * X[0]
    X[6:12] = X[12:18] + 1e-7 * X[:6]
    X[18], X[19] = X[20], 0
    return X


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", MAPS)
def test_it_is_the_kernel_of_mapped_rows(name, inner):
    k, X, Z = INNER[inner].mapped(MAPS[name]), hostile(1), hostile(2)
    u, v = applied(X, MAPS[name]), applied(Z, MAPS[name])
    np.testing.assert_allclose(k(X, Z), INNER[inner](u, v), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(k(X), INNER[inner](u), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(k.diag(X), INNER[inner].diag(u), rtol=1e-12)
    np.testing.assert_allclose(k(sp.csr_array(X), Z), k(X, Z), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(k.operator(X, Z) @ np.ones(24), k(X, Z).sum(1), rtol=1e-9)
    G = rng.normal(size=(24, 24))
    np.testing.assert_allclose(
        k.gradient(X, G, Z), INNER[inner].gradient(u, G, v), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("name", MAPS)
def test_the_contract(name):
    for k in INNER.values():
        check_kernel(k.mapped(MAPS[name]), hostile(3))
    assert check_psd(Laplace(norm=1, exponent=0.7).mapped(MAPS[name]), hostile(4)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [Gaussian(2.0), Laplace(2.0), Laplace(4.0, norm=1)], ids=repr)
def test_offsets_cost_no_digits(k, dtype):
    X = np.round(rng.normal(size=(30, 4)) * 64).astype(dtype) / 64
    far = X + dtype(2.0**17 if dtype == np.float32 else 2.0**30)
    tol = 1e-4 if dtype == np.float32 else 1e-8
    for matrix in MAPS.values():
        np.testing.assert_allclose(
            k.mapped(matrix)(far), k.mapped(matrix)(X), rtol=tol, atol=tol, err_msg=str(matrix)
        )


@pytest.mark.parametrize("n", [2, 3, 17, 65, 257])
@pytest.mark.parametrize("d", [3, 13, 50])
def test_equal_rows_stay_equal(n, d):
    """Else a small exponent would make much of their rounding."""
    X = np.random.default_rng(n).normal(size=(n, d))
    X[-1] = X[0]
    for e in (1, 2, 7):
        matrix = np.random.default_rng(e).normal(size=(e, d))
        for norm in (1, 2):
            k = Laplace(norm=norm, exponent=0.1).mapped(matrix)
            assert k(X)[0, -1] == 1
            assert k(X[:1], X[-1:])[0, 0] == 1


def test_maps_of_maps_and_columns_fold():
    X, A = rows(8), rng.normal(size=(2, 3))
    B = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(
        Gaussian().mapped(B).mapped(A)(X), Gaussian().mapped(B @ A)(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        Laplace().on_columns([1]).mapped(A)(X), Laplace().mapped(A[1:])(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        Linear().warped(np.square).mapped(A)(X), (X @ A.T) ** 2 @ ((X @ A.T) ** 2).T
    )


def test_it_is_a_value():
    k = Gaussian(2.0).mapped(S)
    assert k == Mapped(Gaussian(2.0), S.tolist()) == clone(k) == pickle.loads(pickle.dumps(k))
    assert k != Gaussian(2.0).mapped(2 * S)
    assert len({k, clone(k), Gaussian(2.0).mapped(S[:1])}) == 2
    assert decode(*encode(k)) == k
    assert k.parameters() == {"kernel__bandwidth": 2.0}
    assert k.get_params()["kernel__bandwidth"] == 2.0
    assert k.clone().set_params(kernel__bandwidth=3.0) == Gaussian(3.0).mapped(S)
    assert repr(Gaussian().mapped(rng.normal(size=(9, 4)))) == "Gaussian().mapped(<9 x 4 numbers>)"
    assert repr((Gaussian() + 1).mapped([2.0])) == "(Gaussian() + 1.0 * Constant()).mapped([2.0])"


def test_a_model_with_one_is_saved(tmp_path):
    X = hostile(5)
    model = KernelRidge(Laplace(3.0, exponent=0.7).mapped(S), alpha=0.1).fit(X, X[:, 0])
    model.save(tmp_path / "a.mercer")
    again = mercer.load(tmp_path / "a.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.kernel == model.kernel


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Gaussian().mapped(S)(rows(3)), "the map has 4 columns, but X has 3"),
        (lambda: Gaussian().mapped([1.0, 2.0])(rows(3)), "the map has 2 columns, but X has 3"),
        (lambda: Gaussian().mapped(3.0), r"mapped takes a matrix \(d', d\) or a vector"),
        (lambda: Gaussian().mapped([[np.nan]]), "of finite numbers"),
        (lambda: Gaussian().mapped("S"), "mapped takes a matrix"),
        (lambda: Gaussian().mapped(np.zeros((0, 3))), "at least one row and column"),
        (lambda: Mapped("rbf", S), "Mapped takes a kernel, got 'rbf'"),
        (lambda: Gaussian().mapped(np.full((1, 3), 1e308))(1e10 * rows(5)), "beyond all numbers"),
        (lambda: Gaussian((1.0, 2.0, 3.0)).mapped(S)(hostile(1)), "bandwidth has 3 values"),
        (lambda: Gaussian().mapped([[1.0]]).mapped(S)(hostile(1)), "the one inside it gives 2"),
        (lambda: Constant().mapped([[1.0]])(["a", "b"]), "X"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_names_of_columns():
    X = pd.DataFrame(rows(6), columns=list("abc"))
    k = Gaussian().mapped([[1.0, 2.0]]).on_columns(["c", "a"])
    np.testing.assert_allclose(k(X), rbf_kernel(X[["c", "a"]] @ [[1.0], [2.0]], gamma=0.5))
    phi = Nystrom(k, 4, random_state=0).fit(X)
    np.testing.assert_allclose(phi.kernel_(X.to_numpy()), k(X))
    with pytest.raises(ValueError, match="given by name, but X has no column names"):
        Gaussian().on_columns(["a"]).mapped(np.eye(3))(X)


def test_its_source_says_what_is_mapped():
    source = (Gaussian().mapped(S) * Linear()).source()
    assert [q.map is None for q in source.quantities] == [False, True]


def test_lifts_after_a_map():
    X = hostile(6)
    check_lift(MappedLift(Monomials(2), S), X)
    check_lift(KernelLift(Polynomial(2).mapped(S), 100, random_state=0), X)
    check_lift(KernelLift((Linear() + Polynomial(2)).mapped(MAPS["factors"]), random_state=0), X)
    for k in (Gaussian() + Linear(), Laplace(exponent=1.3) * Linear()):
        check_lift(KernelLift(k.mapped(S), 40, random_state=0), X, exact=False)
    phi = KernelLift(Matern().mapped(S), 24, method=Landmarks(), random_state=0).fit(X)
    F = phi.transform(X)
    np.testing.assert_allclose(F @ F.T, Matern().mapped(S)(X), atol=1e-6)
    with pytest.raises(ValueError, match="the map has 4 columns, but X has 3"):
        MappedLift(Monomials(2), S).fit(rows(5))


def test_rows_as_kernels_measure_them():
    X = table(rows(7))
    b = (0.5, 1.0, 4.0)
    A = rng.normal(size=(2, 3))
    for k, want in (
        (2.0 * Matern(b), X.data / b),
        (Laplace((1.0, 2.0)).mapped(A).normalized(), X.data @ A.T / [1.0, 2.0]),
        (Gaussian((1.0, 2.0)).on_columns([2, 0]), X.data[:, [2, 0]] / [1.0, 2.0]),
    ):
        np.testing.assert_allclose(measured(k, X), want)
        sparse = measured(k, table(sp.csr_array(X.data)))
        np.testing.assert_allclose(
            sparse.toarray() if sp.issparse(sparse) else sparse, want, atol=1e-12
        )
    for k in (Linear(), Periodic(b), Gaussian() + Linear(), Callable(lambda A, B: A @ B.T), None):
        assert measured(k, X) is X.data


def test_means_lie_as_the_kernel_measures():
    """A column that the kernel hardly sees must not take the means: with raw columns it takes all
    of them."""
    own = np.random.default_rng(1)
    X = np.concatenate([1e3 * own.normal(size=(300, 1)), own.uniform(size=(300, 2))], axis=1)
    k = Gaussian((1e6, 0.2, 0.2))
    same = Gaussian(0.2).mapped([0.2e-6, 1.0, 1.0])
    errors = {}
    for name, one in (("seen", k), ("mapped", same), ("raw", None)):
        phi = Nystrom(k if one is None else one, 25, "kmeans", random_state=0)
        if one is None:  # the means of raw columns, as points
            phi = Nystrom(k, landmarks=Nystrom(Gaussian(1e3), 25, "kmeans").fit(X).landmarks_)
        F = phi.fit_transform(X)
        errors[name] = np.trace(k(X)) - np.square(F).sum()
    assert errors["seen"] < 0.5 * errors["raw"]
    assert errors["mapped"] == pytest.approx(errors["seen"], rel=0.2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_sparse_and_weighted_rows(dtype):
    own = np.random.default_rng(1)
    X = np.where(own.random((120, 3)) < 0.5, own.normal(size=(120, 3)), 0).astype(dtype)
    X[:40] += 100
    weight = np.r_[np.zeros(40), np.ones(80)]
    for k in (Gaussian((1.0, 2.0, 4.0)), Matern().mapped([[1.0, 0.0, 2.0]])):
        make = Nystrom(k, 12, "kmeans", random_state=0)
        dense = clone(make).fit(X, sample_weight=weight).landmarks_
        sparse = clone(make).fit(sp.csr_array(X), sample_weight=weight).landmarks_
        sparse = sparse.toarray() if sp.issparse(sparse) else sparse
        assert dense.dtype == sparse.dtype == dtype
        assert dense.shape == (12, 3)
        np.testing.assert_allclose(sparse, dense, atol=1e-5)
        assert np.abs(dense).max() < 50  # rows without weight take none of them
