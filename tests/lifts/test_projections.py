"""Random projections: unbiased, with the variance and the bounds that are promised; dense and
sparse alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

from mercer.lifts import GaussianProjection, HashedFeatures, SparseProjection
from mercer.ops.philox import Stream
from mercer.ops.projections import Hashed, projection_dim
from mercer.testing import check_lift

PROJECTIONS = {
    "gaussian": GaussianProjection(64, random_state=0),
    "sparse": SparseProjection(64, random_state=0),
    "sparse, s = 1": SparseProjection(64, s=1, random_state=0),
    "unsigned": SparseProjection(64, s=4, signed=False, random_state=0),
    "hashed": HashedFeatures(64, random_state=0),
    "hashed, many": HashedFeatures(random_state=0),
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
@pytest.mark.parametrize(
    "phi", [GaussianProjection(8), SparseProjection(8), HashedFeatures()], ids=repr
)
def test_is_an_estimator(phi):
    check_estimator(phi)


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
    norms = np.array(
        [((Hashed(m, s, True, Stream(seed)).matrix(12) @ x) ** 2).sum() for seed in range(4000)]
    )
    expected = 2 / m * ((x**2).sum() ** 2 - (x**4).sum())
    spread = norms.var() * np.sqrt(
        (stats.kurtosis(norms) + 2) / len(norms)
    )  # standard error of a variance
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
    assert (
        max(note) < m
    )  # (i-1)s + h(i,j): the note's blocks overlap, and its last rows are never reached


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
    phis = [
        GaussianProjection(eps=eps, delta=delta, random_state=seed).fit(X) for seed in range(60)
    ]
    assert phis[0].n_features_out_ == projection_dim(n, eps, delta)
    worst = [
        np.abs(F @ F.T - X @ X.T)[np.triu_indices(n, 1)].max()
        for F in (phi.transform(X) for phi in phis)
    ]
    assert np.mean(np.array(worst) > eps) <= delta
    assert max(worst) > eps / 5  # not a bound without content


@pytest.mark.parametrize(
    ("phi", "sentence"),
    [
        (
            SparseProjection(10, s=4),
            "s must divide n_features, got s=4 and n_features=10; use n_features=12",
        ),
        (SparseProjection(4, s=4, signed=False), "signed=False needs n_features > s"),
        (HashedFeatures(8, s=2, signed=False), "signed=False adds a bias"),
        (HashedFeatures(8, signed="no"), "signed must be True or False"),
        (SparseProjection(8, signed=None), "signed must be True or False"),
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
    np.testing.assert_array_equal(
        phi.transform(X), SparseProjection(m, s, signed, random_state=0).fit_transform(X)
    )
    w = np.random.default_rng(1).normal(size=m)
    np.testing.assert_allclose(phi.inner(X, w), phi.transform(X) @ w, atol=1e-10)


def test_a_given_s_must_divide():
    with pytest.raises(ValueError, match="s must divide n_features"):
        SparseProjection(10, s=4).fit(np.eye(3))
    assert SparseProjection(1, random_state=0).fit_transform(np.eye(3)).shape == (3, 1)
