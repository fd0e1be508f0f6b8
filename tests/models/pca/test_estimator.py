"""KernelPCA over features: scikit-learn's PCA on the features, in batches, merged, by passes and sketched."""
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.lifts import Identity, Monomials
from mercer.linalg.decompose import eigen
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelPCA
from mercer.models.pca.problem import PCASettings, choose


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
    monkeypatch.setattr("mercer.models.pca.problem.MOST_ROWS", 119)
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


# refused calls, settings
WAYS = {
    "features": dict(via=Fourier(20)), "exact": dict(via="exact"), "iterative": dict(via="iterative"), "lift": dict(lift=Identity()),
    "passes": dict(via=Fourier(20), memory_limit=100.0),
}  # fmt: skip
BAD = {  # settings, a factor of the rows, and what the sentence says
    "rows": (dict(), np.nan, "NaN"),
    "too large": (dict(kernel=Polynomial(3), lift=None, via="features"), 1e200, "too large"),
    "via": (dict(via="best", lift=None), 1.0, "via must be"),
    "via of no name": (dict(via=3, lift=None), 1.0, "via must be"),
    "memory_limit": (dict(memory_limit="much"), 1.0, "memory_limit"),
    "n_components": (dict(n_components=0), 1.0, "n_components"),
    "random_state": (dict(random_state=-1, via="exact", lift=None), 1.0, "random_state"),
    "kernel": (dict(kernel="none", lift=None), 1.0, "kernel must be"),
}


def unchanged(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", WAYS)
def test_refused_fits_change_nothing(way, bad):
    X = data(60)
    m = KernelPCA(2, random_state=0, **WAYS[way]).fit(X)
    options, factor, match = BAD[bad]
    m.set_params(**options)
    before = dict(vars(m))
    for fit in (m.fit, m.fit_transform):
        with pytest.raises(ValueError, match=match):
            fit(factor * X)
        unchanged(m, before)


@pytest.mark.parametrize("limit", [None, 1e3], ids=["moments", "sketch"])
def test_refused_batches_and_merges_change_nothing_at_all(limit):
    X = data(60)
    make = lambda seed, limit: KernelPCA(2, Polynomial(2), Landmarks(20), random_state=seed, memory_limit=limit).partial_fit(X)
    m, other_map, other_kind = make(0, limit), make(1, limit), make(0, 1e3 if limit is None else None)
    before = dict(vars(m))
    batches = [(m.partial_fit, X[:, :3], "3 features"), (m.partial_fit, np.nan * X, "NaN"), (m.partial_fit, 1e200 * X, "too large")]
    merges = [(m.merge, other_map, "different feature maps"), (m.merge, other_kind, "do not add"), (m.merge, PCA(), "another fitted")]
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
    make = lambda rows: KernelPCA(3, Gaussian(5.0), Fourier(40), random_state=0, memory_limit=limit).partial_fit(rows)
    m, whole = make(X[:60]).merge(make(X[60:])), make(X)
    assert m.plan_.settings["rows"] == 120
    assert m.plan_.way == whole.plan_.way
    np.testing.assert_allclose(m.eigenvalues_, m.explained_variance_ * 119)
    np.testing.assert_allclose(m.eigenvalues_, whole.eigenvalues_, rtol=1e-9 if limit is None else 0.05)


def test_a_stream_stays_what_it_is_where_the_limit_changes():
    X = data()
    m = KernelPCA(3, Gaussian(5.0), Fourier(40), random_state=0, memory_limit=1e4).partial_fit(X[:60])
    m.set_params(memory_limit=None).partial_fit(X[60:])
    assert m.plan_.settings["rows"] == 120
    assert "frequent directions" in m.plan_.way


@pytest.mark.parametrize("via", ["exact", "iterative", "landmarks", Fourier(5)], ids=repr)
def test_a_lift_leaves_no_choice(via):
    with pytest.raises(ValueError, match="a lift is the feature map itself"):
        KernelPCA(2, via=via, lift=Identity()).fit(data())
    assert KernelPCA(2, via="features", lift=Identity()).fit(data()).plan_.way == "features"


def test_the_sentence_on_via_names_all_ways():
    with pytest.raises(ValueError, match=r"auto, exact, iterative, features, landmarks, or a value of mercer\.methods, got 'best'"):
        KernelPCA(via="best").fit(data())


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
        KernelPCA(2, "precomputed", via).fit(G - (1e-6 * n + v @ G @ v / (v @ v)) * np.outer(v, v) / (v @ v))
    for fine in (G, Gaussian(2.0)(X.astype(np.float32)), -np.square(Gaussian(2.0).distance(X))):  # the last one once it is centred
        assert KernelPCA(2, "precomputed", via).fit(fine).eigenvalues_[0] > 0


@pytest.mark.parametrize("options", [
    dict(via="exact"), dict(via=Fourier(20)), dict(kernel="precomputed"),
], ids=["exact", "features", "precomputed"])  # fmt: skip
def test_float32_tables_give_float32(options):
    X = pd.DataFrame((data() / 5).astype(np.float32))
    X = pd.DataFrame(Gaussian(2.0)(X.to_numpy())) if "kernel" in options else X
    assert X.dtypes[0] == np.float32
    m = KernelPCA(2, random_state=0, **options)
    assert m.fit_transform(X).dtype == m.transform(X).dtype == np.float32


@pytest.mark.parametrize("limit", [None, 10.0], ids=["moments", "beyond the limit"])
@pytest.mark.parametrize("options", [
    dict(lift=Identity()), dict(kernel=Polynomial(3), via="features"), dict(kernel="linear", via="exact"),
], ids=["lift", "features", "exact"])  # fmt: skip
def test_huge_rows_are_refused_without_other_warnings(options, limit):
    m = KernelPCA(2, memory_limit=limit, **options)
    for call in [m.fit, m.fit_transform, *([m.partial_fit] if options.get("via") != "exact" else [])]:
        with pytest.raises(ValueError, match="too large for sums"):
            call(1e200 * data())
    with pytest.raises(ValueError, match="too large for sums"):
        KernelPCA(2, Polynomial(2), "features").fit(data()).transform(1e200 * data())


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
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").inverse_transform(m.transform(X)), m.inverse_transform(m.transform(X)))


@pytest.mark.parametrize("n", [5, 20, 100, 300])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_equal_eigenvalues_are_all_there(n, k, via):
    """Rows that are all alike far from each other: K is the unit matrix, of which LAPACK may lose the eigenvectors that are asked for."""
    X = np.random.default_rng(n).normal(size=(n, 100))
    m = KernelPCA(k, kernel=Gaussian(1e-3), via=via, random_state=0).fit(X)
    F = m.transform(X)
    assert F.shape == (n, min(k, n))
    some = min(k, n - 1)
    np.testing.assert_allclose(m.eigenvalues_[:some], 1, rtol=1e-10)
    np.testing.assert_allclose((F.T @ F)[:some, :some], np.eye(some), atol=1e-8)


def test_which_methods_exist_follows_from_settings_alone(monkeypatch):
    X, given = data(), KernelPCA(2, "precomputed")
    assert not any(hasattr(given, name) for name in ("partial_fit", "merge", "inverse_transform"))
    monkeypatch.setattr("mercer.models.pca.problem.MOST_ROWS", 119)
    m = KernelPCA(2, Gaussian())
    assert hasattr(m, "inverse_transform")
    m.fit(X)
    assert m.plan_.way == "features"
    assert hasattr(m, "inverse_transform")
    with pytest.raises(ValueError, match="no way back to rows; fit rows of numbers with via='exact' or 'landmarks'"):
        m.inverse_transform(m.transform(X))
    assert all(hasattr(KernelPCA(via="best"), name) for name in ("partial_fit", "merge"))  # which `fit` refuses


@pytest.mark.parametrize(
    ("n", "own", "way"), [(120, None, "exact"), (120, 3, "features"), (5001, None, "features"), (1501, None, "iterative")]
)
def test_the_plan_is_a_function_of_shapes(n, own, way):
    s = PCASettings.of(KernelPCA(2))
    assert choose(n, own, s).way == way
    assert choose(n, own, s, items=True).way == ("exact" if n <= 1500 else "iterative")
