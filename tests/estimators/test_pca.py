"""KernelPCA over features: scikit-learn's PCA on the features, in batches, merged, by passes and sketched."""
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.utils.estimator_checks import check_estimator

from mercer.estimators import KernelPCA
from mercer.kernels import Gaussian, Polynomial
from mercer.learners.decompose import eigen
from mercer.lifts import Identity, Monomials
from mercer.methods import Fourier, Landmarks


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(5, 5)) + 10


def same_up_to_sign(A, B, **tol):
    np.testing.assert_allclose(np.abs(A), np.abs(B), **tol)


@pytest.mark.parametrize("via", [Fourier(64), Landmarks(30)], ids=repr)
def test_scikit_learn_contract(via):
    check_estimator(KernelPCA(via=via, random_state=0), on_skip=None)


@pytest.mark.parametrize("n", [120, 4, 1])
def test_identity_is_pca(n):
    X = data(n)
    m = KernelPCA(min(n, 3), lift=Identity()).fit(X)
    if n > 1:
        p = PCA(min(n, 3)).fit(X)
        kept = p.explained_variance_ > 1e-9
        same_up_to_sign(m.components_[kept], p.components_[kept], atol=1e-8)
        same_up_to_sign(m.transform(X), p.transform(X), atol=1e-7)
        np.testing.assert_allclose(m.explained_variance_, p.explained_variance_, atol=1e-9)
        np.testing.assert_allclose(m.explained_variance_ratio_, p.explained_variance_ratio_, atol=1e-9)
        np.testing.assert_allclose(m.mean_, p.mean_)
    assert np.isfinite(m.transform(X)).all()


@pytest.mark.parametrize(("kernel", "theirs"), [
    ("linear", dict(kernel="linear")),
    (Polynomial(2, bias=1.0), dict(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
    (Gaussian(2.0), dict(kernel="rbf", gamma=1 / 8)),
], ids=["linear", "poly", "rbf by all landmarks"])  # fmt: skip
def test_exact_features_are_scikit_learns_kernel_pca(kernel, theirs):
    X = data(60) / 5
    via = Landmarks(60) if isinstance(kernel, Gaussian) else "auto"
    ours, ref = KernelPCA(3, kernel, via).fit_transform(X), Theirs(3, **theirs).fit_transform(X)
    same_up_to_sign(ours, ref, rtol=1e-5, atol=1e-6)


def test_signs_are_no_accident():
    m = KernelPCA(3, lift=Monomials(2)).fit(data())
    C = m.components_
    assert (C[np.arange(3), np.abs(C).argmax(1)] > 0).all()


def test_a_low_rank_needs_no_full_decomposition():
    F = np.random.default_rng(0).normal(size=(20, 400)) * np.logspace(0, -3, 400)
    fast, whole = eigen(F.T @ F, 20), eigen(F.T @ F)
    np.testing.assert_allclose(fast.values, whole.values[:20], rtol=1e-9)
    same_up_to_sign(np.diag(fast.vectors.T @ whole.vectors[:, :20]), np.ones(20), rtol=1e-8)


def test_streamed_merged_and_whole_are_one():
    X = data()
    make = lambda: KernelPCA(3, Gaussian(5.0), Fourier(40), random_state=0)
    whole, parts, left, right = make().fit(X), make(), make().fit(X[:50]), make().fit(X[50:])
    for i in range(0, 120, 17):
        parts.partial_fit(X[i : i + 17])
    for m in (parts, left.merge(right)):
        np.testing.assert_allclose(m.explained_variance_, whole.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(m.transform(X), whole.transform(X), atol=1e-8)


def test_other_maps_do_not_merge():
    X = data()
    a, b = (KernelPCA(2, Gaussian(), Fourier(20), random_state=seed).fit(X) for seed in (0, 1))
    with pytest.raises(ValueError, match="different feature maps"):
        a.merge(b)
    with pytest.raises(ValueError, match="another fitted KernelPCA"):
        a.merge(PCA())


def test_refused_batches_change_nothing():
    X = data()
    m = KernelPCA(2, lift=Identity()).partial_fit(X[:60])
    before = m.transform(X)
    bad = X[60:].copy()
    bad[30, 1] = np.inf
    for rows, match in ((X[60:, :3], "3 features"), (bad, "infinity"), (1e200 * X, "too large")):
        with pytest.raises(ValueError, match=match), np.errstate(all="ignore"):
            m.partial_fit(rows)
        np.testing.assert_array_equal(m.transform(X), before)
    np.testing.assert_allclose(m.partial_fit(X[60:]).transform(X), KernelPCA(2, lift=Identity()).fit(X).transform(X), atol=1e-8)


def test_beyond_the_memory_limit_by_passes():
    X = data(300) / 5
    whole = KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0).fit(X)
    m = KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0, memory_limit=1e5).fit(X)
    assert whole.plan_.way == "features"
    assert (m.plan_.way, m.plan_.passes) == ("range finder", 6)
    np.testing.assert_allclose(m.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-3)
    np.testing.assert_allclose(m.transform(X), whole.transform(X), atol=1e-2)
    with pytest.raises(ValueError, match="continue a fit by passes"):
        m.partial_fit(X)


def test_beyond_the_memory_limit_in_a_stream():
    X = data(300) / 5
    make = lambda **o: KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0, **o)
    whole, m, other = make().fit(X), make(memory_limit=1e5), make(memory_limit=1e5).partial_fit(X[200:])
    for i in range(0, 200, 50):
        m.partial_fit(X[i : i + 50])
    m.merge(other)
    assert "frequent directions" in str(m.plan_)
    off = np.abs(m.explained_variance_ - whole.explained_variance_) * 299
    assert (off <= m.loss_ + 1e-9).all()
    assert (off < 0.02 * 299 * whole.explained_variance_).all()
    with pytest.raises(ValueError, match="sketch"):
        m.merge(whole)


def test_inverse_only_where_the_map_has_one():
    X = data() / 5
    m = KernelPCA(5, lift=Identity()).fit(X)
    np.testing.assert_allclose(m.inverse_transform(m.transform(X)), X, atol=1e-9)
    marks = KernelPCA(40, Gaussian(3.0), Landmarks(60), random_state=0).fit(X)
    assert np.abs(marks.inverse_transform(marks.transform(X)) - X).mean() < 0.1 * X.std()
    assert not hasattr(KernelPCA(via=Fourier(10)).fit(X), "inverse_transform")
    with pytest.raises(ValueError, match="4 columns, but there are 5"):
        m.inverse_transform(np.ones((2, 4)))


def test_names_float32_sparse_and_at_most_d_components():
    X = data().astype(np.float32)
    m = KernelPCA(9, lift=Identity()).fit(X)
    assert list(m.get_feature_names_out()) == [f"kernelpca{i}" for i in range(5)]
    assert m.transform(X).dtype == np.float32
    same_up_to_sign(m.transform(X), PCA(5).fit_transform(X.astype(float)), atol=2e-3)
    same_up_to_sign(KernelPCA(2, lift=Identity()).fit_transform(sp.csr_array(X)), m.transform(X)[:, :2], atol=1e-3)
    with pytest.raises(ValueError, match="n_components"):
        KernelPCA(0).fit(X)


# the kernel matrix
@pytest.mark.parametrize("via", ["exact", "iterative", "auto"])
def test_scikit_learn_contract_in_the_dual(via):
    check_estimator(KernelPCA(via=via, random_state=0), on_skip=None)


def test_scikit_learn_contract_precomputed():
    check_estimator(KernelPCA(kernel="precomputed"), on_skip=None)


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize(("kernel", "theirs"), [
    ("linear", dict(kernel="linear")),
    (Polynomial(2, bias=1.0), dict(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
    (Gaussian(2.0), dict(kernel="rbf", gamma=1 / 8)),
], ids=["linear", "poly", "rbf"])  # fmt: skip
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


def test_the_way_is_chosen_by_shapes(monkeypatch):
    X = data()
    assert KernelPCA(2).fit(X).plan_.way == "exact"
    assert KernelPCA(2, "linear").fit(X).plan_.way == "features"
    assert KernelPCA(2).partial_fit(X).plan_.way == "features"
    with pytest.raises(ValueError, match="via must be"):
        KernelPCA(via="best").fit(X)
    monkeypatch.setattr("mercer.estimators.dual_pca.MOST_ROWS", 119)
    assert KernelPCA(2).fit(X).plan_.way == "features"
    assert KernelPCA(2, via="exact").fit(X).plan_.way == "exact"


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


def test_a_stream_after_auto_begins_with_the_rows_of_fit():
    X = data()
    m = KernelPCA(2, Gaussian(5.0), random_state=0).fit(X[:50])
    assert m.plan_.way == "exact"
    with pytest.raises(ValueError, match="3 features"):
        m.partial_fit(X[:, :3])
    assert m.plan_.way == "exact"
    t = KernelPCA(2, Gaussian(5.0), random_state=0).partial_fit(X[:50]).partial_fit(X[50:])
    np.testing.assert_allclose(m.partial_fit(X[50:]).explained_variance_, t.explained_variance_, rtol=0.2)


def test_pre_images_of_the_dual():
    X = data() / 5
    m = KernelPCA(40, Gaussian(3.0), "exact").fit(X)
    assert np.abs(m.inverse_transform(m.transform(X)) - X).mean() < 0.05 * X.std()
    sparse = KernelPCA(40, Gaussian(3.0), "exact").fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.inverse_transform(m.transform(X)), m.inverse_transform(m.transform(X)), atol=1e-3)


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.ones((1, 2)), np.full((4, 1), 1e-150)], ids=["constant", "one row", "tiny"])
def test_rows_that_do_not_differ_have_no_components(X):
    assert np.abs(KernelPCA(2, Gaussian(), "exact").fit_transform(X)).max() < 1e-6


def test_float32_in_float32_out_in_the_dual():
    X = (data() / 5).astype(np.float32)
    m = KernelPCA(3, Gaussian(2.0), "exact").fit(X)
    assert m.transform(X).dtype == m.fit_transform(X).dtype == m.inverse_transform(m.transform(X)).dtype == np.float32
    np.testing.assert_allclose(m.transform(X), KernelPCA(3, Gaussian(2.0), "exact").fit_transform(X.astype(float)), atol=1e-4)
