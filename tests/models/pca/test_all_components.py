"""All components that there are, and no others: side by side with scikit-learn."""

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as Theirs

from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.lifts import Identity
from mercer.models import KernelPCA

rng = np.random.default_rng(0)
LINE = np.linspace(-1, 2, 30)[:, None] * [1.0, -2.0, 0.5]
ROWS = {
    "plain": rng.normal(size=(40, 3)),
    "copies": np.repeat(rng.normal(size=(6, 3)), 5, axis=0),
    "line": LINE,
    "wide": rng.normal(size=(8, 20)),
    "two rows": rng.normal(size=(2, 3)),
}
KERNELS = {
    "linear": (Linear(), dict(kernel="linear")),
    "poly": (Polynomial(2, bias=1.0), dict(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
    "rbf": (Gaussian(2.0), dict(kernel="rbf", gamma=1 / 8)),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "options", [dict(n_components=None), dict(n_components=35, remove_zero_eig=True)]
)
def test_as_many_as_scikit_learn_finds(rows, kernel, options):
    X, (ours, theirs) = ROWS[rows], KERNELS[kernel]
    m = KernelPCA(kernel=ours, via="exact", **options).fit(X)
    ref = Theirs(**options, **theirs, eigen_solver="dense").fit(X)
    clear = ref.eigenvalues_ > 1e-9 * ref.eigenvalues_[0]  # what either may round away aside
    k = int(clear.sum())
    assert k <= len(m.eigenvalues_)
    assert kernel == "rbf" or len(m.eigenvalues_) == len(ref.eigenvalues_) == k
    np.testing.assert_allclose(m.eigenvalues_[:k], ref.eigenvalues_[:k], rtol=1e-6)
    assert (m.eigenvalues_ > 0).all()
    Z = m.transform(X)
    assert Z.shape == (len(X), len(m.eigenvalues_)) == (len(X), len(m.get_feature_names_out()))
    np.testing.assert_allclose(Z @ Z.T, ref.transform(X) @ ref.transform(X).T, atol=1e-7)


@pytest.mark.parametrize("rows", ROWS)
def test_features_have_the_same_components_as_the_matrix(rows):
    X = ROWS[rows]
    over, dual = (
        KernelPCA(None, lift=Identity()).fit(X),
        KernelPCA(None, Linear(), "exact").fit(X),
    )
    assert len(over.eigenvalues_) == len(dual.eigenvalues_) == np.linalg.matrix_rank(X - X.mean(0))
    np.testing.assert_allclose(over.eigenvalues_, dual.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(over.transform(X)), np.abs(dual.transform(X)), atol=1e-7)


def test_zeros_stay_where_they_are_not_to_be_removed():
    m = KernelPCA(5, Linear(), "exact").fit(LINE)
    assert len(m.eigenvalues_) == 5
    assert np.count_nonzero(m.eigenvalues_) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("via", ["exact", "features"])
def test_rows_that_are_all_equal_have_none(via, dtype):
    X = np.full((6, 2), 3.0, dtype)
    m = KernelPCA(None, Linear(), via).fit(X)
    assert m.transform(X).shape == m.fit_transform(X).shape == (6, 0)
    assert m.transform(X).dtype == dtype
    assert list(m.get_feature_names_out()) == []


def test_a_stream_grows_by_what_its_batches_bring():
    X = ROWS["plain"]
    m = KernelPCA(None, lift=Identity()).partial_fit(LINE)
    assert len(m.eigenvalues_) == 1
    m.partial_fit(X)
    assert len(m.eigenvalues_) == 3
    whole = KernelPCA(None, lift=Identity()).fit(np.vstack([LINE, X]))
    np.testing.assert_allclose(m.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    other = (
        KernelPCA(None, lift=Identity()).fit(LINE).merge(KernelPCA(None, lift=Identity()).fit(X))
    )
    np.testing.assert_allclose(other.eigenvalues_, whole.eigenvalues_, rtol=1e-9)


def test_the_way_back_has_all_of_the_variance():
    X = ROWS["wide"]
    m = KernelPCA(None, Linear(), "exact").fit(X)
    np.testing.assert_allclose(m.inverse_transform(m.transform(X)), X, atol=1e-8)


def test_refusals():
    X = ROWS["plain"]
    with pytest.raises(ValueError, match="beyond memory_limit; give their number"):
        KernelPCA(None, lift=Identity(), memory_limit=100).fit(X)
    with pytest.raises(ValueError, match="remove_zero_eig"):
        KernelPCA(remove_zero_eig="no").fit(X)
    with pytest.raises(ValueError, match="n_components"):
        KernelPCA(0).fit(X)
