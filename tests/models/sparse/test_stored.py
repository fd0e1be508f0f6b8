"""Dictionaries in memory: means, norms, copies and sweeps, dense and CSR, by brute force."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.lifts import Monomials
from mercer.models.maps import FittedMap
from mercer.models.sparse.stored import LiftedFeatures, StoredDictionary

RNG = np.random.default_rng(1)


def dictionary(F, w=None, unit=False):
    n, p = F.shape
    w = np.full(n, 1 / n) if w is None else w / w.sum()
    return StoredDictionary(F, w, LiftedFeatures(None, p, tuple(f"c{j}" for j in range(p))), unit)


def kinds():
    F = RNG.normal(size=(50, 7)) * (RNG.random((50, 7)) < 0.4)
    yield "dense", F
    yield "csr", sp.csr_array(F)
    yield "float32", F.astype(np.float32)
    yield "csr float32", sp.csr_array(F.astype(np.float32))
    yield "offset", F + 1e6


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize(("kind", "F"), list(kinds()))
def test_columns_means_norms_and_sweeps(kind, F, unit):
    w = RNG.random(50) + 0.1
    X, D = dictionary(F, w, unit), np.asarray(F.toarray() if sp.issparse(F) else F, np.float64)
    w = w / w.sum()
    ids = np.array([5, 0, 3])
    mean, sd = w @ D, np.sqrt(w @ (D - w @ D) ** 2)
    scale = sd if unit else np.ones(7)
    A = X.columns(ids)
    rel = 1e-5 if "32" in kind else 1e-9
    np.testing.assert_allclose(A.toarray() if sp.issparse(A) else A, (D / scale)[:, ids], rtol=rel)
    np.testing.assert_allclose(X.means(ids), (mean / scale)[ids], rtol=rel, atol=1e-12)
    np.testing.assert_allclose(X.norms(ids), (sd / scale)[ids], rtol=rel)
    np.testing.assert_allclose(X.scales(ids), scale[ids], rtol=rel)
    r = w * RNG.normal(size=50)
    r -= w * r.sum()
    products = ((D - mean) / scale).T @ r
    order = np.argsort(-np.abs(products))
    found = X.largest(r, 3, 0.0)
    assert found.ids.tolist() == order[:3].tolist()
    np.testing.assert_allclose(found.values, products[order[:3]], rtol=1e-6, atol=1e-12)
    assert found.bound == pytest.approx(abs(products[order[3]]), rel=1e-6)
    assert found.largest == pytest.approx(abs(products[order[0]]), rel=1e-6)
    again = X.largest(r + w, 3, 0.0)  # what is the same in every row has no product with columns
    np.testing.assert_allclose(again.values, found.values, rtol=1e-5, atol=1e-9)
    some = X.largest(r, 7, float(np.abs(products[order[2]]) + np.abs(products[order[3]])) / 2)
    assert some.ids.tolist() == order[:3].tolist()


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array])
def test_constants_and_copies_are_found_and_near_copies_are_not(made):
    x, z = RNG.normal(size=(2, 40))
    near = x + 1e-6 * z
    F = np.column_stack([x, z, 2 * x, np.ones(40), -z + 0.0, near, np.zeros(40), x * z])
    X = dictionary(made(F))
    assert X.copies == {2: 0, 4: 1}
    assert X.kept.tolist() == [0, 1, 5, 7]
    assert X.width == 4
    r = RNG.normal(size=40) / 40
    assert not set(X.largest(r - r.mean(), 8, 0.0).ids.tolist()) & {2, 3, 4, 6}


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("made", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constants_are_such_in_every_precision(made, dtype, paired):
    F = np.column_stack([np.full(77, 1.5492612), RNG.random(77)]).astype(dtype)
    X = dictionary(made(F), RNG.random(77))
    X = replace(X, paired=paired)
    assert X.kept.tolist() == [1]


def test_offsets_do_not_hide_that_a_column_varies():
    x = RNG.normal(size=40)
    X = dictionary(np.column_stack([x + 1e6, np.full(40, 1e6), np.full(40, 0.1)]))
    assert X.kept.tolist() == [0]


def test_features_of_a_lift_and_their_names():
    rows = Table(RNG.normal(size=(9, 2)), ("a", "b"))
    phi = FittedMap.fit(Monomials(2), rows)
    f = LiftedFeatures(phi, 6, ("a", "b"))
    ids = np.array([4, 2])
    np.testing.assert_array_equal(f.columns(rows, ids), phi.features(rows)[:, ids])
    assert f.names(ids) == ["a*b", "b"]
    with pytest.raises(ValueError, match="has a width of 5, not of 6"):
        LiftedFeatures(phi, 5, ("a", "b"))
    with pytest.raises(ValueError, match="has names for other columns"):
        LiftedFeatures(phi, 6, ("a", "b", "c"))
    plain = FittedMap.fit(Monomials(2), Table(rows.data))
    assert LiftedFeatures(plain, 6, None).names(ids) == ["x0*x1", "x1"]
    columns = LiftedFeatures(None, 3, None)
    assert columns.inputs == ("x0", "x1", "x2")
    assert columns.names(np.array([2, 0])) == ["x2", "x0"]
