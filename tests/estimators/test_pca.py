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
