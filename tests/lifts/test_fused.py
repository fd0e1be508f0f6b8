"""Products and projection at once: the same numbers, and the products are never formed."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from mercer.lifts import (
    GaussianProjection,
    HashedFeatures,
    Monomials,
    Parabolic,
    SparseProjection,
    Subsets,
)
from mercer.lifts.chain import fuse
from mercer.testing import check_lift

PROJECTIONS = {
    "gaussian": GaussianProjection(64, random_state=0),
    "sparse": SparseProjection(64, random_state=0),
    "sparse, s = 1": SparseProjection(64, s=1, random_state=0),
    "unsigned": SparseProjection(64, s=4, signed=False, random_state=0),
    "hashed": HashedFeatures(64, random_state=0),
    "hashed, many": HashedFeatures(random_state=0),
}
PRODUCTS = {
    "monomials": Monomials(3),
    "linear": Monomials(1),
    "constant": Monomials(0),
    "weights": Monomials(4, weights="kernel"),
    "no bias": Monomials(3, weights="kernel", bias=0.0),
    "interactions": Monomials(3, interaction_only=True, include_bias=False),
    "ordered": Monomials(2, ordered=True),
    "caps": Monomials(3, degree_per_column=[1, 0, 2, 3, 1, 1]),
    "from degree 2": Monomials((2, 3)),
    "from degree 2, weights": Monomials((2, 3), weights="kernel", bias=0.5),
    "from degree 3, no constant": Monomials((3, 3), include_bias=False),
    "subsets": Subsets(),
}


def dense(F):
    return F.toarray() if sp.issparse(F) else F


def rows(n=15, d=40, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[X < -0.4] = 0
    return X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_fused_is_an_estimator():
    check_estimator(fuse(Monomials(2), SparseProjection(8, random_state=0)))


@pytest.mark.parametrize("psi", list(PROJECTIONS.values())[:-1], ids=list(PROJECTIONS)[:-1])
@pytest.mark.parametrize("phi", PRODUCTS.values(), ids=PRODUCTS)
def test_fused_is_unfused(phi, psi):
    X = rows(21, 6)
    fused, expected = fuse(phi, psi).fit(X), dense(psi.fit_transform(phi.fit_transform(X)))
    np.testing.assert_allclose(fused.transform(X), expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(
        fused.transform(sp.csr_matrix(X)), expected, atol=1e-11 * np.abs(expected).max()
    )
    np.testing.assert_allclose(
        fused.transform(X.astype(np.float32)), expected, atol=1e-4 * np.abs(expected).max()
    )


def test_fused_is_a_lift_of_the_polynomial_kernel():
    check_lift(
        fuse(Monomials(3, weights="kernel"), SparseProjection(256, random_state=0)),
        rows(5, 3),
        exact=False,
    )


def test_fused_never_forms_the_products():
    fused = fuse(Monomials(3), SparseProjection(64, random_state=0)).fit(np.zeros((1, 100)))
    X = rows(40, 100)
    fused.transform(X[:1])
    tracemalloc.start()
    fused.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20 < 40 * fused.lift_.n_features_out_ * 8


def test_other_maps_are_not_fused():
    assert fuse(Parabolic(), SparseProjection(8)) is None
    assert fuse(Monomials(2), Parabolic()) is None
    assert fuse(Monomials(2), HashedFeatures()) is None
