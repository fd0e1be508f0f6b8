"""KernelPCA in the dual: scikit-learn's KernelPCA, matrices given, and pre-images."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.models import KernelPCA


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(5, 5)) + 10
    )


def same_up_to_sign(A, B, **tol):
    np.testing.assert_allclose(np.abs(A), np.abs(B), **tol)


# the kernel matrix
@pytest.mark.parametrize("via", ["exact", "iterative", "auto"])
def test_scikit_learn_contract_in_the_dual(via):
    check_estimator(KernelPCA(via=via, random_state=0), on_skip=None)


def test_scikit_learn_contract_precomputed():
    check_estimator(KernelPCA(kernel="precomputed"), on_skip=None)


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        ("linear", dict(kernel="linear")),
        (Polynomial(2, bias=1.0), dict(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
        (Gaussian(2.0), dict(kernel="rbf", gamma=1 / 8)),
    ],
    ids=["linear", "poly", "rbf"],
)
def test_the_dual_is_scikit_learns_kernel_pca(kernel, theirs, via):
    X, Z = data(150) / 5, data(30, seed=1) / 5
    m, ref = KernelPCA(3, kernel, via).fit(X), Theirs(3, **theirs).fit(X)
    np.testing.assert_allclose(m.eigenvalues_, ref.eigenvalues_, rtol=1e-9)
    same_up_to_sign(m.transform(Z), ref.transform(Z), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(m.fit_transform(X), m.transform(X), atol=1e-7)
    np.testing.assert_allclose(m.explained_variance_ * 149, m.eigenvalues_)
    assert 0 < m.explained_variance_ratio_.sum() <= 1 + 1e-9


def test_linear_is_pca():
    X = data()
    m, p = KernelPCA(3, "linear", "exact").fit(X), PCA(3).fit(X)
    same_up_to_sign(m.transform(X), p.transform(X), atol=1e-7)
    np.testing.assert_allclose(m.explained_variance_, p.explained_variance_)
    np.testing.assert_allclose(m.explained_variance_ratio_, p.explained_variance_ratio_)
    whole = KernelPCA(5, "linear", "exact").fit(X)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, atol=1e-6)


def test_precomputed_is_the_kernel():
    X, Z, k = data(80) / 5, data(9, seed=1) / 5, Gaussian(2.0)
    m, g = KernelPCA(3, k, "exact").fit(X), KernelPCA(3, "precomputed").fit(k(X))
    np.testing.assert_allclose(g.transform(k(Z, X)), m.transform(Z), atol=1e-9)
    assert not hasattr(g, "inverse_transform")
    with pytest.raises(ValueError, match="square"):
        KernelPCA(2, "precomputed").fit(X)
    with pytest.raises(ValueError, match="no features"):
        KernelPCA(2, "precomputed", "features").fit(k(X))


def test_the_dual_neither_streams_nor_merges():
    X = data()
    m = KernelPCA(2, via="exact").fit(X)
    with pytest.raises(ValueError, match="do not merge"):
        m.merge(m)
    assert not hasattr(m, "partial_fit")
    assert not hasattr(KernelPCA(2, "precomputed"), "partial_fit")
    with pytest.raises(AttributeError, match="only where there are features"):
        _ = m.components_
    assert m.set_params(via="features").fit(X).components_.shape[0] == 2


def test_pre_images_of_the_dual():
    X = data() / 5
    m = KernelPCA(40, Gaussian(3.0), "exact").fit(X)
    assert np.abs(m.inverse_transform(m.transform(X)) - X).mean() < 0.05 * X.std()
    sparse = KernelPCA(40, Gaussian(3.0), "exact").fit(sp.csr_array(X))
    np.testing.assert_allclose(
        sparse.inverse_transform(m.transform(X)), m.inverse_transform(m.transform(X)), atol=1e-3
    )


def test_float32_in_float32_out_in_the_dual():
    X = (data() / 5).astype(np.float32)
    m = KernelPCA(3, Gaussian(2.0), "exact").fit(X)
    assert (
        m.transform(X).dtype
        == m.fit_transform(X).dtype
        == m.inverse_transform(m.transform(X)).dtype
        == np.float32
    )
    np.testing.assert_allclose(
        m.transform(X),
        KernelPCA(3, Gaussian(2.0), "exact").fit_transform(X.astype(float)),
        atol=1e-4,
    )


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize("n", [40, 160])
def test_matrices_of_no_kernel_are_told(n, via):
    X = data(n) / 5
    G = Gaussian(2.0)(X)
    with pytest.raises(ValueError, match=r"symmetric Gram matrix.*give \(X \+ X.T\) / 2"):
        KernelPCA(2, "precomputed", via).fit(G + np.triu(G, 1))
    with pytest.warns(UserWarning, match="of no kernel"):
        KernelPCA(2, "precomputed", via).fit(np.tanh(X @ X.T / np.square(X).sum(1).mean() - 1))
    v = np.sin(np.arange(n))
    with pytest.warns(UserWarning, match="of no kernel"):  # one eigenvalue of -1e-6 of the largest
        KernelPCA(2, "precomputed", via).fit(
            G - (1e-6 * n + v @ G @ v / (v @ v)) * np.outer(v, v) / (v @ v)
        )
    for fine in (
        G,
        Gaussian(2.0)(X.astype(np.float32)),
        -np.square(Gaussian(2.0).distance(X)),
    ):  # the last one once it is centred
        assert KernelPCA(2, "precomputed", via).fit(fine).eigenvalues_[0] > 0


def test_many_pre_images_take_little_memory(monkeypatch):
    monkeypatch.setattr("mercer.models.pca.preimages.PIECE_BYTES", 1 << 16)
    m = KernelPCA(4, Gaussian(3.0), "exact").fit(data() / 5)
    Z = np.tile(m.fit_transform(data() / 5), (30, 1))
    m.inverse_transform(Z[:5])
    tracemalloc.start()
    m.inverse_transform(Z)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * 120 * len(Z) / 2  # half of one array of queries by rows


def test_pre_images_scale_move_and_are_saved(tmp_path):
    X = data() / 5
    back = lambda k, X: (m := KernelPCA(8, k, "exact").fit(X)).inverse_transform(m.transform(X))
    plain = back(Gaussian(3.0), X)
    np.testing.assert_allclose(back(Gaussian(3e-9), 1e-9 * X) / 1e-9, plain, rtol=1e-6)
    np.testing.assert_allclose(back(2 * Gaussian(3.0), X), plain, atol=1e-6)
    np.testing.assert_allclose(back(2 * Linear(), X), X, atol=1e-6)
    m = KernelPCA(8, Gaussian(3.0), "exact").fit(X)
    m.inverse_transform(m.transform(X))
    m.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(
        mercer.load(tmp_path / "m.mercer").inverse_transform(m.transform(X)),
        m.inverse_transform(m.transform(X)),
    )


@pytest.mark.parametrize("n", [5, 20, 100, 300])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_equal_eigenvalues_are_all_there(n, k, via):
    """Rows that are all alike far from each other: K is the unit matrix, of which LAPACK may lose
    the eigenvectors that are asked for."""
    X = np.random.default_rng(n).normal(size=(n, 100))
    m = KernelPCA(k, kernel=Gaussian(1e-3), via=via, random_state=0).fit(X)
    F = m.transform(X)
    assert F.shape == (n, min(k, n))
    some = min(k, n - 1)
    np.testing.assert_allclose(m.eigenvalues_[:some], 1, rtol=1e-10)
    np.testing.assert_allclose((F.T @ F)[:some, :some], np.eye(some), atol=1e-8)
