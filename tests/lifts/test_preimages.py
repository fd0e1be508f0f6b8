"""The matrix of a projection and the way back through it, by pieces, against the pseudo-inverse."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.random_projection import GaussianRandomProjection

from mercer import KernelPCA
from mercer.lifts import GaussianProjection, HashedFeatures, SparseProjection, preimages
from mercer.lifts.hashed import MAX_DENSE_FEATURES
from mercer.ops.projections import projection_dim

PROJECTIONS = {
    "gaussian": GaussianProjection(24, random_state=0),
    "sparse": SparseProjection(24, random_state=0),
    "sparse, s = 1": SparseProjection(24, s=1, random_state=0),
    "full": SparseProjection(24, s=24, random_state=0),
    "unsigned": SparseProjection(24, s=4, signed=False, random_state=0),
    "hashed": HashedFeatures(24, random_state=0),
    "hashed counts": HashedFeatures(24, signed=False, random_state=0),
    "hashed, many": HashedFeatures(MAX_DENSE_FEATURES + 1, random_state=0),
    "auto": GaussianProjection("auto", eps=2.0, random_state=0),
    "sparse auto": SparseProjection("auto", eps=2.0, random_state=0),
    "one": GaussianProjection(1, random_state=0),
}
projections = pytest.mark.parametrize("phi", PROJECTIONS.values(), ids=PROJECTIONS)


def dense(F):
    return F.toarray() if sp.issparse(F) else F


def hostile(d):
    """Copies, near-copies, a far offset, a line and zeros."""
    x = np.random.default_rng(d).normal(size=d)
    return np.array([x, x, x * (1 + 1e-9), x + 1e6, 3 * x, 0 * x])


@projections
@pytest.mark.parametrize("d", [1, 7, 24, 150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_components_are_the_map_and_the_way_back_is_their_pseudo_inverse(phi, d, dtype):
    X = hostile(d).astype(dtype)
    F = phi.fit(X).transform(X)
    B = phi.components_
    assert B.shape == (phi.n_features_out_, d)
    assert sp.issparse(B) == (getattr(phi, "s", 0) != 0 and "unsigned" not in _name(phi))
    eps, size = np.finfo(dtype).eps, np.abs(X).max()
    np.testing.assert_allclose(X @ dense(B).T, dense(F), atol=50 * d * eps * size)
    back = phi.inverse_transform(F)
    assert back.shape == X.shape
    assert back.dtype == dtype
    expected = dense(F).astype(np.float64) @ np.linalg.pinv(dense(B), rcond=1e-6).T
    bound = 1e-8 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(back, expected, rtol=bound, atol=bound * size)
    again = phi.inverse_transform(sp.csr_array(F))
    np.testing.assert_allclose(again, back, rtol=bound, atol=bound * size)


def _name(phi):
    return next(name for name, value in PROJECTIONS.items() if value is phi)


@projections
def test_pieces_are_the_whole(phi, monkeypatch):
    X = np.random.default_rng(0).normal(size=(4, 90))
    for rows in (X, X[:, :9]):
        F = phi.fit(rows).transform(rows)
        monkeypatch.setattr(preimages, "PIECE_BYTES", 1 << 40)
        whole = phi.inverse_transform(F)
        monkeypatch.setattr(preimages, "PIECE_BYTES", 8 * 7 * phi.n_features_out_)
        np.testing.assert_allclose(phi.inverse_transform(F), whole, atol=1e-9)


def test_rows_come_back():
    """Below d features those of the way back are the features; above, the rows themselves."""
    X = np.random.default_rng(1).normal(size=(5, 60))
    few, many = GaussianProjection(20, random_state=0), GaussianProjection(90, random_state=0)
    F = few.fit(X).transform(X)
    np.testing.assert_allclose(few.transform(few.inverse_transform(F)), F, atol=1e-10)
    assert np.linalg.norm(few.inverse_transform(F), axis=1).max() < np.linalg.norm(X, axis=1).min()
    np.testing.assert_allclose(many.inverse_transform(many.fit_transform(X)), X, atol=1e-8)


def test_the_matrix_is_never_held(monkeypatch):
    d, m = 100_000, 40
    monkeypatch.setattr(preimages, "PIECE_BYTES", 1 << 20)
    phi = GaussianProjection(m, random_state=0).fit(np.zeros((1, d)))
    assert not any("components" in name for name in vars(phi))
    tracemalloc.start()
    back = phi.inverse_transform(np.ones((1, m)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert back.shape == (1, d)
    assert peak < 8 * d * m / 4  # a few pieces of 1 MB and the row, where B takes 32 MB


def test_refusals():
    phi = GaussianProjection(4, random_state=0)
    with pytest.raises(NotFittedError):
        phi.inverse_transform(np.ones((2, 4)))
    with pytest.raises(ValueError, match="F has 3 columns, but there are 4 features"):
        phi.fit(np.ones((2, 9))).inverse_transform(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        phi.inverse_transform([[np.nan] * 4])
    named = HashedFeatures(8).fit([{"a": 1}])
    assert not hasattr(named, "components_")
    with pytest.raises(ValueError, match="hashed by name"):
        named.inverse_transform(np.ones((1, 8)))
    with pytest.raises(ValueError, match="has room for 32768"):
        HashedFeatures(2**16).fit(sp.csr_array((1, 2**16))).inverse_transform(
            sp.csr_array((1, 2**16))
        )


@pytest.mark.parametrize("n", [1, 30])
def test_auto_is_the_dimension_of_the_theorem(n):
    X = np.zeros((n, 12))
    m = projection_dim(n, 0.4, 0.05)
    assert GaussianProjection("auto", eps=0.4, delta=0.05).fit(X).n_features_out_ == m
    for s in ("auto", 3, 7):
        found = SparseProjection("auto", s, eps=0.4, delta=0.05).fit(X).projection_
        assert found.s == (4 if s == "auto" else s)
        assert m <= found.m < m + found.s
        assert found.m % found.s == 0
    assert GaussianProjection("auto").fit(X).n_features_out_ == projection_dim(n, 0.1)
    for phi in (SparseProjection(eps=0.4), GaussianProjection(5, eps=0.4)):
        with pytest.raises(ValueError, match=r'give one of them \(n_features="auto"'):
            phi.fit(X)
    with pytest.raises(ValueError, match="n_features"):
        SparseProjection("many").fit(X)


def test_scikit_learn_asks_for_fewer_with_less_certainty():
    """Its bound holds for distances with probability 1/n, ours for inner products with 1 - delta."""
    X = np.zeros((50, 2000))
    theirs = GaussianRandomProjection(eps=0.2).fit(X).n_components_
    assert theirs < GaussianProjection("auto", eps=0.2).fit(X).n_features_out_ < 5 * theirs


def test_components_of_projected_rows_go_back_to_rows():
    X = np.random.default_rng(2).normal(size=(40, 5)) * [5.0, 3.0, 1e-6, 1e-6, 1e-6]
    m = KernelPCA(2, lift=GaussianProjection(12, random_state=0)).fit(X)
    np.testing.assert_allclose(m.inverse_transform(m.transform(X)), X, atol=1e-4)
