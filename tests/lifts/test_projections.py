"""Random projections: unbiased, with the variance and the bounds that are promised; dense, sparse and fused alike."""
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

from mercer.lifts import GaussianProjection, HashedFeatures, Monomials, Parabolic, SparseProjection, Subsets
from mercer.lifts.fused import fuse
from mercer.ops.philox import Stream
from mercer.ops.projections import Hashed, Normals, projection_dim
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
    "subsets": Subsets(),
}
projections = pytest.mark.parametrize("phi", PROJECTIONS.values(), ids=PROJECTIONS)
small = pytest.mark.parametrize("phi", list(PROJECTIONS.values())[:-1], ids=list(PROJECTIONS)[:-1])


def dense(F):
    return F.toarray() if sp.issparse(F) else F


def rows(n=15, d=40, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[X < -0.4] = 0
    return X


@projections
def test_is_a_lift_of_the_linear_kernel(phi):
    check_lift(phi, rows(6, 9), exact=False)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("phi", [GaussianProjection(8), SparseProjection(8), HashedFeatures()], ids=repr)
def test_is_an_estimator(phi):
    check_estimator(phi)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_fused_is_an_estimator():
    check_estimator(fuse(Monomials(2), SparseProjection(8, random_state=0)))


@projections
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_sparse_rows(phi, dtype):
    X = rows().astype(dtype)
    F = phi.fit(X).transform(X)
    for kind in (sp.csr_matrix, sp.csr_array):
        S = phi.transform(kind(X))
        assert S.dtype == dtype
        np.testing.assert_allclose(dense(S), dense(F), atol=30 * np.finfo(dtype).eps)


@small
def test_is_the_matrix_that_the_seed_gives(phi):
    X = rows(d=700)
    F, A = phi.fit(X).transform(X), phi.projection_.matrix(700)
    expected = X @ A.T
    if not getattr(phi, "signed", True):
        expected = (expected - expected.mean(1, keepdims=True)) / np.sqrt(1 - 4 / 64)
    np.testing.assert_allclose(dense(F), expected, atol=1e-10)


@projections
def test_inner_products_without_the_features(phi):
    X = rows(d=5000)
    w = np.random.default_rng(1).normal(size=phi.fit(X).n_features_out_)
    expected = dense(phi.transform(X)) @ w
    np.testing.assert_allclose(phi.inner(X, w), expected, atol=1e-9)
    np.testing.assert_allclose(phi.inner(sp.csr_matrix(X), w), expected, atol=1e-9)
    with pytest.raises(ValueError, match="w must be a vector"):
        phi.inner(X, w[1:])


@pytest.mark.parametrize("s", [1, 4, 16])
def test_variance_of_the_sparse_projection_does_not_depend_on_s(s):
    m, x = 32, np.linspace(-1, 2, 12)
    norms = np.array([((Hashed(m, s, True, Stream(seed)).matrix(12) @ x) ** 2).sum() for seed in range(4000)])
    expected = 2 / m * ((x**2).sum() ** 2 - (x**4).sum())
    spread = norms.var() * np.sqrt((stats.kurtosis(norms) + 2) / len(norms))  # standard error of a variance
    assert abs(norms.var() - expected) < 4 * spread
    assert abs(norms.mean() - x @ x) < 4 * norms.std() / np.sqrt(len(norms))


def test_unsigned_has_the_bias_that_is_taken_away():
    m, s, x, z = 16, 4, np.linspace(0, 1, 10), np.linspace(1, 0.5, 10)
    A = [Hashed(m, s, False, Stream(seed)).matrix(10) for seed in range(3000)]
    raw = np.array([(a @ x) @ (a @ z) for a in A])
    bias = s / m * (x.sum() * z.sum() - x @ z)
    assert abs(raw.mean() - x @ z - bias) < 4 * raw.std() / np.sqrt(len(raw)) < bias / 4


def test_entries_stay_in_their_blocks_as_the_note_s_index_does_not():
    m, s = 24, 4
    A = Hashed(m, s, True, Stream(1)).matrix(2000).reshape(s, m // s, 2000)
    assert ((A != 0).sum(1) == 1).all()  # one in each block of m/s
    np.testing.assert_allclose(np.abs(A[A != 0]), 1 / np.sqrt(s))  # not 1
    assert stats.chisquare((A != 0).sum(2).ravel()).pvalue > 1e-3
    assert abs(np.sign(A).sum()) < 4 * np.sqrt(s * 2000)
    note = {(i - 1) * s + h for i in range(1, s + 1) for h in range(1, m // s + 1)}
    assert max(note) < m  # (i-1)s + h(i,j): the note's blocks overlap, and its last rows are never reached


def test_the_note_s_loop_unscaled_and_overlapping_is_biased():
    m, s, d, norms = 24, 4, 30, []
    x = np.ones(d) / np.sqrt(d)
    for seed in range(300):
        A = Hashed(m, s, True, Stream(seed)).matrix(d).reshape(s, m // s, d)
        y = np.zeros(m)
        for i in range(s):
            y[i * s : i * s + m // s] += np.sign(A[i]) @ x
        norms.append(y @ y)
    assert abs(np.mean(norms) - s) < 0.5  # s times too large, where the right form has mean 1


def test_theorem_1_holds():
    n, eps, delta, d = 12, 0.5, 0.2, 30
    X = rows(n, d)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    phis = [GaussianProjection(eps=eps, delta=delta, random_state=seed).fit(X) for seed in range(60)]
    assert phis[0].n_features_out_ == projection_dim(n, eps, delta)
    worst = [np.abs(F @ F.T - X @ X.T)[np.triu_indices(n, 1)].max() for F in (phi.transform(X) for phi in phis)]
    assert np.mean(np.array(worst) > eps) <= delta
    assert max(worst) > eps / 5  # not a bound without content


def test_dimension_is_the_least():
    for n, eps, delta in [(2, 0.1, 0.01), (1000, 0.3, 0.05), (10**6, 1.0, 0.5)]:
        m, t = projection_dim(n, eps, delta), np.log(4 * (n * (n - 1) / 2) / delta)
        error = lambda m, t=t: 2 * np.sqrt(t / m) + 2 * t / m
        assert error(m) <= eps < error(m - 1)
    with pytest.raises(ValueError, match="eps > 0"):
        projection_dim(10, 0.0)


def test_normals_are_normal_and_slices_of_one_matrix():
    A = Normals(50, Stream(3))
    Z = A.matrix(2000).T * np.sqrt(50)
    assert stats.kstest(Z.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(Z[:, 0], Z[:, 1])[0, 1]) < 4 / np.sqrt(2000)
    for start, stop in [(0, 1), (63, 65), (130, 700)]:
        np.testing.assert_array_equal(A.rows(start, stop, np.float64) * np.sqrt(50), Z[start:stop])


@pytest.mark.parametrize("psi", list(PROJECTIONS.values())[:-1], ids=list(PROJECTIONS)[:-1])
@pytest.mark.parametrize("phi", PRODUCTS.values(), ids=PRODUCTS)
def test_fused_is_unfused(phi, psi):
    X = rows(21, 6)
    fused, expected = fuse(phi, psi).fit(X), dense(psi.fit_transform(phi.fit_transform(X)))
    np.testing.assert_allclose(fused.transform(X), expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(fused.transform(sp.csr_matrix(X)), expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(fused.transform(X.astype(np.float32)), expected, atol=1e-4 * np.abs(expected).max())


def test_fused_is_a_lift_of_the_polynomial_kernel():
    check_lift(fuse(Monomials(3, weights="kernel"), SparseProjection(256, random_state=0)), rows(5, 3), exact=False)


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


def test_dicts_are_hashed_by_name():
    phi = HashedFeatures(32).fit([{"a": 1}])
    F = phi.transform([{"a": 2.0, "city": "Oslo"}, {"city": "Oslo", "a": 2}, {"city": "Bergen"}, {}])
    np.testing.assert_array_equal(F[0], F[1])
    assert np.abs(F).sum(1).tolist() == [3, 3, 1, 0]
    assert len(phi.get_feature_names_out()) == 32
    with pytest.raises(ValueError, match="'a' must be a finite number or a string, got None"):
        phi.transform([{"a": None}])


def test_unsigned_hashes_keep_counts():
    X = rows()
    F = HashedFeatures(16, signed=False).fit_transform(np.abs(X))
    assert (F >= 0).all()
    np.testing.assert_allclose(F.sum(1), np.abs(X).sum(1))


def test_many_features_come_as_canonical_csr():
    F = HashedFeatures(2**15, random_state=3).fit_transform(rows(d=3000))
    copy = F.copy()
    copy.has_canonical_format = False
    copy.sum_duplicates()
    np.testing.assert_array_equal(F.indices, copy.indices)
    assert sp.issparse(SparseProjection(64).fit_transform(sp.csr_array(rows())))
    assert not sp.issparse(SparseProjection(64, dense_output=True).fit_transform(sp.csr_array(rows())))


@pytest.mark.parametrize(
    ("phi", "sentence"),
    [
        (SparseProjection(10, s=4), "s must divide n_features, got s=4 and n_features=10; use n_features=12"),
        (SparseProjection(4, s=4, signed=False), "signed=False needs n_features > s"),
        (HashedFeatures(8, s=2, signed=False), "signed=False adds a bias"),
        (GaussianProjection(8, eps=0.1), "give one of them"),
        (GaussianProjection(0), "n_features"),
    ],
)
def test_what_cannot_be_is_refused(phi, sentence):
    with pytest.raises(ValueError, match=sentence):
        phi.fit(rows())


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7, 9, 10, 12, 25, 1024])
def test_sparse_projections_of_any_size_by_default(m, signed):
    """s is the largest divisor up to 4 that leaves something to average."""
    X = np.random.default_rng(0).normal(size=(6, 30))
    phi = SparseProjection(m, signed=signed, random_state=0).fit(X)
    s = max(t for t in (1, 2, 3, 4) if m % t == 0 and (signed or t < m))
    assert phi.projection_.s == s
    np.testing.assert_array_equal(phi.transform(X), SparseProjection(m, s, signed, random_state=0).fit_transform(X))
    w = np.random.default_rng(1).normal(size=m)
    np.testing.assert_allclose(phi.inner(X, w), phi.transform(X) @ w, atol=1e-10)


def test_a_given_s_must_divide():
    with pytest.raises(ValueError, match="s must divide n_features"):
        SparseProjection(10, s=4).fit(np.eye(3))
    assert SparseProjection(1, random_state=0).fit_transform(np.eye(3)).shape == (3, 1)
