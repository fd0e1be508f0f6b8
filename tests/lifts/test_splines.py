"""Splines of rows with missing values, and as CSR rows: against scikit-learn, and by their laws."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import SplineTransformer
from sklearn.utils import get_tags

from mercer.lifts import Splines
from mercer.testing import check_lift

WAYS = ("constant", "linear", "continue", "periodic", "error")
LIFTS = {
    "plain": Splines(),
    "steps": Splines(4, 0),
    "lines": Splines(3, 1, include_bias=False),
    "quantiles": Splines(4, 2, knots="quantile", extrapolation="linear"),
    "given": Splines(degree=2, knots=[-0.5, 0.1, 0.4]),
    "continued": Splines(4, extrapolation="continue"),
    "periodic": Splines(5, 2, extrapolation="periodic"),
}
lifts = pytest.mark.parametrize("phi", LIFTS.values(), ids=LIFTS)


def holes(seed=0, n=40, d=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d)).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    return X


@lifts
def test_sparse_output_is_the_dense_one(phi, monkeypatch):
    monkeypatch.setattr("mercer.lifts.splines.TILE_BYTES", 8 * 100)  # several tiles
    for dtype in (np.float32, np.float64):
        X = np.random.default_rng(0).uniform(-1, 1, size=(30, 3)).astype(dtype)
        X[0], X[1] = 5.0, -5.0  # beyond the knots of the others
        phi = clone(phi).fit(X[2:])
        F, S = phi.transform(X), clone(phi).set_params(sparse_output=True).fit(X[2:]).transform(X)
        assert isinstance(S, sp.csr_array)
        assert S.dtype == dtype
        np.testing.assert_array_equal(S.toarray(), F)
        assert (S.data != 0).all()


def test_sparse_splines_are_a_lift():
    check_lift(Splines(sparse_output=True))
    check_lift(Splines(4, handle_missing="indicator"))
    inside = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    S = Splines(30, 3, sparse_output=True).fit_transform(inside)
    assert S.nnz <= 50 * 2 * 4  # degree + 1 a column


@pytest.mark.skipif(
    "handle_missing" not in SplineTransformer().get_params(), reason="scikit-learn before 1.8"
)
@lifts
def test_zeros_are_those_of_scikit_learn(phi):
    X, given = holes(), clone(phi).get_params()
    knots = given["knots"]
    given["knots"] = knots if isinstance(knots, str) else np.repeat([knots], 3, axis=0).T
    theirs = SplineTransformer(**given | {"handle_missing": "zeros"}).fit(X)
    ours = clone(phi).set_params(handle_missing="zeros").fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)


@lifts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_missing_value_is_zero_in_its_column_alone(phi, dtype):
    for seed in range(5):
        X = holes(seed, dtype=dtype)
        zeros = clone(phi).set_params(handle_missing="zeros").fit(X)
        marked = clone(phi).set_params(handle_missing="indicator").fit(X)
        F, gone = zeros.transform(X), np.isnan(X)
        assert F.dtype == dtype
        G = marked.transform(X)
        np.testing.assert_array_equal(G[:, : F.shape[1]], F)
        np.testing.assert_array_equal(G[:, F.shape[1] :], gone)
        assert marked.get_feature_names_out()[-3:].tolist() == [f"missing(x{j})" for j in range(3)]
        blocks = F.reshape(len(X), 3, -1)
        assert (blocks[gone] == 0).all()
        filled = np.where(gone, X.dtype.type(0.3), X)
        np.testing.assert_array_equal(
            blocks[~gone], zeros.transform(filled).reshape(blocks.shape)[~gone]
        )
        sparse = clone(marked).set_params(sparse_output=True).fit(X).transform(X)
        np.testing.assert_array_equal(sparse.toarray(), G)


@pytest.mark.parametrize("knots", ["uniform", "quantile"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_missing_or_constant_or_far(knots, way, dtype):
    X = holes(1, 30, 4, dtype)
    X[:, 0] = np.nan
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 7.0)
    X[:, 2] += 1e6
    phi = Splines(knots=knots, extrapolation=way, handle_missing="indicator").fit(X)
    F = phi.transform(X)
    assert np.isfinite(F).all()
    blocks = F[:, :-4].reshape(len(X), 4, -1)
    np.testing.assert_allclose(blocks.sum(2), ~np.isnan(X), atol=1e-5)  # splines sum to 1
    one = Splines(knots=knots, handle_missing="zeros").fit(X[:1])
    assert np.isfinite(one.transform(X)).all()


def test_missing_values_are_refused_by_default():
    X = holes()
    with pytest.raises(ValueError, match="NaN"):
        Splines().fit(X)
    phi = Splines().fit(np.nan_to_num(X))
    with pytest.raises(ValueError, match="NaN"):
        phi.transform(X)
    with pytest.raises(ValueError, match="infinity"):
        Splines(handle_missing="zeros").fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match='handle_missing must be "error"'):
        Splines(handle_missing="mean").fit(X)  # before its missing values are refused
    assert get_tags(Splines(handle_missing="zeros")).input_tags.allow_nan
    assert not get_tags(Splines()).input_tags.allow_nan


def test_frames_name_what_is_missing():
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "income": [0.0, 1.0, 2.0]})
    phi = Splines(2, 1, handle_missing="indicator").set_output(transform="pandas").fit(frame)
    out = phi.transform(frame)
    assert list(out)[-2:] == ["missing(age)", "missing(income)"]
    assert out.loc[1].tolist() == [0, 0, 0.5, 0.5, 1, 0]


@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_quantiles_of_columns_with_ties_are_spread(degree, seed):
    rng = np.random.default_rng(seed)
    low = np.r_[np.zeros(80), rng.uniform(1, 2, 20)]  # most are the least
    X = np.stack([low, -low, rng.integers(0, 2, 100), rng.integers(0, 3, 100)], axis=1)
    phi = Splines(7, degree, "quantile").fit(X)
    knots = np.stack([b.t[degree : len(b.t) - degree] for b in phi.splines_.bsplines_], axis=1)
    assert (np.diff(knots, axis=0) > 0).all()
    np.testing.assert_allclose(knots[[0, -1]], [X.min(0), X.max(0)])
    F = phi.transform(X).reshape(100, 4, -1)
    np.testing.assert_allclose(F.sum(-1), 1)


@pytest.mark.parametrize("knots", ["uniform", "quantile"])
@pytest.mark.parametrize("at", [1.0, -3e5, 1e300])
def test_numbers_with_no_room_for_knots_are_constant(knots, at):
    X = np.array([[at], [np.nextafter(at, np.inf)]])
    F = Splines(knots=knots).fit_transform(X)
    np.testing.assert_allclose(F.sum(1), 1)
    np.testing.assert_allclose(F[0], F[1], atol=1e-12)
