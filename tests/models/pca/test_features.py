"""KernelPCA over features: scikit-learn's PCA on the features, in batches, merged, by passes and
sketched."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs

from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Identity
from mercer.linalg.decompose import eigen
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelPCA


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(5, 5)) + 10
    )


def same_up_to_sign(A, B, **tol):
    np.testing.assert_allclose(np.abs(A), np.abs(B), **tol)


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
        np.testing.assert_allclose(
            m.explained_variance_ratio_, p.explained_variance_ratio_, atol=1e-9
        )
        np.testing.assert_allclose(m.mean_, p.mean_)
    assert np.isfinite(m.transform(X)).all()


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        ("linear", dict(kernel="linear")),
        (Polynomial(2, bias=1.0), dict(kernel="poly", degree=2, gamma=1.0, coef0=1.0)),
        (Gaussian(2.0), dict(kernel="rbf", gamma=1 / 8)),
    ],
    ids=["linear", "poly", "rbf by all landmarks"],
)
def test_exact_features_are_scikit_learns_kernel_pca(kernel, theirs):
    X = data(60) / 5
    via = Landmarks(60) if isinstance(kernel, Gaussian) else "auto"
    ours, ref = KernelPCA(3, kernel, via).fit_transform(X), Theirs(3, **theirs).fit_transform(X)
    same_up_to_sign(ours, ref, rtol=1e-5, atol=1e-6)


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
    np.testing.assert_allclose(
        m.partial_fit(X[60:]).transform(X),
        KernelPCA(2, lift=Identity()).fit(X).transform(X),
        atol=1e-8,
    )


def test_beyond_the_memory_limit_by_passes():
    X = data(300) / 5
    whole = KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0).fit(X)
    m = KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0, memory_limit=1e5).fit(X)
    assert whole.plan_.way == "features"
    assert (m.plan_.way, m.plan_.passes) == ("range finder", 6)
    np.testing.assert_allclose(
        m.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-3
    )
    np.testing.assert_allclose(m.transform(X), whole.transform(X), atol=1e-2)
    with pytest.raises(ValueError, match="continue a fit by passes"):
        m.partial_fit(X)


def test_beyond_the_memory_limit_in_a_stream():
    X = data(300) / 5
    make = lambda **o: KernelPCA(3, Gaussian(3.0), Fourier(200), random_state=0, **o)
    whole, m, other = (
        make().fit(X),
        make(memory_limit=1e5),
        make(memory_limit=1e5).partial_fit(X[200:]),
    )
    for i in range(0, 200, 50):
        m.partial_fit(X[i : i + 50])
    m.merge(other)
    assert "frequent directions" in str(m.plan_)
    off = np.abs(m.explained_variance_ - whole.explained_variance_) * 299
    assert (off <= m.loss_ + 1e-9).all()
    assert (off < 0.02 * 299 * whole.explained_variance_).all()
    with pytest.raises(ValueError, match="sketch"):
        m.merge(whole)


def unchanged(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


@pytest.mark.parametrize("limit", [None, 1e3], ids=["moments", "sketch"])
def test_refused_batches_and_merges_change_nothing_at_all(limit):
    X = data(60)
    make = lambda seed, limit: KernelPCA(
        2, Polynomial(2), Landmarks(20), random_state=seed, memory_limit=limit
    ).partial_fit(X)
    m, other_map, other_kind = (
        make(0, limit),
        make(1, limit),
        make(0, 1e3 if limit is None else None),
    )
    before = dict(vars(m))
    batches = [
        (m.partial_fit, X[:, :3], "3 features"),
        (m.partial_fit, np.nan * X, "NaN"),
        (m.partial_fit, 1e200 * X, "too large"),
    ]
    merges = [
        (m.merge, other_map, "different feature maps"),
        (m.merge, other_kind, "do not add"),
        (m.merge, PCA(), "another fitted"),
    ]
    for call, argument, match in [*batches, *merges]:
        with pytest.raises(ValueError, match=match):
            call(argument)
        unchanged(m, before)
    for options in (dict(memory_limit=-1), dict(n_components="two"), dict(via="best")):
        m.set_params(**options)
        before = dict(vars(m))
        for call, argument in ((m.partial_fit, X), (m.merge, m)):
            with pytest.raises(ValueError, match=next(iter(options))):
                call(argument)
            unchanged(m, before)
        m.set_params(memory_limit=limit, n_components=2, via=Landmarks(20))


def test_a_first_batch_that_is_refused_leaves_no_model():
    m = KernelPCA(2, Polynomial(3), "features", random_state=0)
    with pytest.raises(ValueError, match="too large"):
        m.partial_fit(1e200 * data())
    assert vars(m) == vars(KernelPCA(2, Polynomial(3), "features", random_state=0))


@pytest.mark.parametrize("limit", [None, 1e4], ids=["moments", "sketch"])
def test_merged_models_count_all_rows(limit):
    X = data()
    make = lambda rows: KernelPCA(
        3, Gaussian(5.0), Fourier(40), random_state=0, memory_limit=limit
    ).partial_fit(rows)
    m, whole = make(X[:60]).merge(make(X[60:])), make(X)
    assert m.plan_.settings["rows"] == 120
    assert m.plan_.way == whole.plan_.way
    np.testing.assert_allclose(m.eigenvalues_, m.explained_variance_ * 119)
    np.testing.assert_allclose(
        m.eigenvalues_, whole.eigenvalues_, rtol=1e-9 if limit is None else 0.05
    )


def test_a_stream_stays_what_it_is_where_the_limit_changes():
    X = data()
    m = KernelPCA(3, Gaussian(5.0), Fourier(40), random_state=0, memory_limit=1e4).partial_fit(
        X[:60]
    )
    m.set_params(memory_limit=None).partial_fit(X[60:])
    assert m.plan_.settings["rows"] == 120
    assert "frequent directions" in m.plan_.way
