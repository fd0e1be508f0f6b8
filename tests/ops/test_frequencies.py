"""Frequencies: the same bits in slices, unbiased in every kind and measure, and errors no larger
than those of iid."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import RBFSampler

from mercer.ops.frequencies import RULES, choose, frequencies
from mercer.ops.measures import (
    CauchyColumns,
    ColumnMeasure,
    GammaMixture,
    LaplaceColumns,
    Normal,
    PeriodicColumns,
    Sphere,
    Stable,
    StableColumns,
    Student,
)
from mercer.ops.philox import Stream

KERNELS = {  # measure: the kernel as a function of differences (n, d)
    Normal(): lambda D: np.exp(-(D**2).sum(-1) / 2),
    Student(1.0): lambda D: np.exp(-np.linalg.norm(D, axis=-1)),
    Student(3.0): lambda D: Matern(nu=1.5)(D, np.zeros((1, D.shape[1])))[:, 0],
    Student(2.4): lambda D: Matern(nu=1.2)(D, np.zeros((1, D.shape[1])))[:, 0],
    GammaMixture(1.0, 2.0): lambda D: 1 / (1 + (D**2).sum(-1)),
    GammaMixture(0.5, 2.0): lambda D: (1 + (D**2).sum(-1)) ** -0.5,
    Sphere(): lambda D: np.sinc(np.linalg.norm(D, axis=-1) / np.pi),
    CauchyColumns(): lambda D: np.exp(-abs(D).sum(-1)),
    Stable(0.7): lambda D: np.exp(-(np.linalg.norm(D, axis=-1) ** 0.7)),
    Stable(1.3): lambda D: np.exp(-(np.linalg.norm(D, axis=-1) ** 1.3)),
    StableColumns(0.7): lambda D: np.exp(-(abs(D).sum(-1) ** 0.7)),
    LaplaceColumns(): lambda D: np.prod(1 / (1 + D**2), axis=-1),
    PeriodicColumns(0.8, 3.0): lambda D: np.exp(-2 * (np.sin(np.pi * D / 3) ** 2).sum(-1) / 0.8**2),
}
CASES = [
    (law, kind)
    for law in KERNELS
    for kind in [*RULES, "auto"]
    if not (isinstance(law, ColumnMeasure) and kind in ("orthogonal", "design"))
]
cases = pytest.mark.parametrize(("law", "kind"), CASES, ids=str)


def estimates(W, D):
    return np.cos(D @ W.T).mean(axis=1)


def assert_centred(sample, mean, sigmas=5):
    """Rows of the sample are seeds; compares at the rate of the central limit theorem."""
    error = abs(sample.mean(axis=0) - mean)
    assert (error <= sigmas * sample.std(axis=0, ddof=1) / np.sqrt(len(sample)) + 1e-7).all()


@cases
@pytest.mark.parametrize(("d", "m"), [(1, 50), (3, 50), (3, 700), (2, 0)])
def test_slices_are_slices_of_the_whole(law, kind, d, m):
    whole = frequencies(law, d, m, Stream(5, (2,)), kind)
    assert whole.shape == (m, d)
    for start, stop in [(0, m), (0, 1), (m // 3, m // 2), (m - 1, m), (m // 2, m // 2)]:
        start = max(start, 0)
        np.testing.assert_array_equal(
            frequencies(law, d, m, Stream(5, (2,)), kind, start, stop), whole[start:stop]
        )


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize(("d", "m"), [(40, 30), (40, 100), (300, 200), (300, 700)])
def test_slices_of_wide_maps(kind, d, m):
    whole = frequencies(Normal(), d, m, Stream(5), kind)
    np.testing.assert_array_equal(
        frequencies(Normal(), d, m, Stream(5), kind, 17, 120), whole[17:120]
    )


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize(
    "law", [Student(0.01), Student(1e9), GammaMixture(0.01, 9.0), GammaMixture(1e6, 1.0)], ids=str
)
def test_extreme_laws_stay_finite(law, d, kind):
    assert np.isfinite(frequencies(law, d, 70, Stream(0), kind)).all()


@cases
def test_streams_differ(law, kind):
    W = frequencies(law, 3, 40, Stream(5), kind)
    assert np.isfinite(W).all()
    for other in [Stream(6), Stream(5, (0,)), Stream(5, (1,))]:
        assert not np.array_equal(frequencies(law, 3, 40, other, kind), W)


@cases
@pytest.mark.parametrize("d", [1, 3])
def test_unbiased(law, kind, d):
    D = np.array([0.3, 1.0, 2.2])[:, None] * np.array([[0.8, -0.5, 0.33]])[:, :d]
    sample = [estimates(frequencies(law, d, 21, Stream(s), kind), D) for s in range(100)]
    assert_centred(np.array(sample), KERNELS[law](D))


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize(("d", "m"), [(9, 30), (16, 40), (40, 12), (300, 330)])
def test_unbiased_from_every_start_of_a_design(kind, d, m):
    D = np.array([0.5, 1.5])[:, None] * np.ones((1, d)) / np.sqrt(d)
    sample = [estimates(frequencies(Normal(), d, m, Stream(s), kind), D) for s in range(40)]
    assert_centred(np.array(sample), KERNELS[Normal()](D))


@cases
def test_a_part_of_the_rows_is_unbiased(law, kind):
    D = np.array([[0.7, -0.4, 0.2], [1.0, 1.0, 1.0]])
    sample = [estimates(frequencies(law, 3, 21, Stream(s), kind, 0, 4), D) for s in range(100)]
    assert_centred(np.array(sample), KERNELS[law](D))


@pytest.mark.parametrize("kind", RULES)
def test_sums_of_two_streams_serve_the_product(kind):
    """Norms in the same order in both would be correlated, and the product biased."""
    D = np.array([[0.7, -0.4, 0.2], [1.0, 1.0, 1.0]])
    laws = Student(3.0), GammaMixture(1.0, 2.0)
    two = lambda s: sum(
        frequencies(law, 3, 64, Stream(s, (i,)), kind) for i, law in enumerate(laws)
    )
    sample = [estimates(two(s), D) for s in range(100)]
    assert_centred(np.array(sample), KERNELS[laws[0]](D) * KERNELS[laws[1]](D))


@pytest.mark.parametrize("d", [2, 7, 20, 60])
@pytest.mark.parametrize("law", [law for law in KERNELS if not isinstance(law, Sphere)], ids=str)
def test_auto_is_no_worse_than_iid(law, d):
    """The error of m iid frequencies has the variance (1 + k(2δ) - 2 k(δ)²) / (2m)."""
    k, m = KERNELS[law], 128
    D = np.random.default_rng(0).standard_normal((100, d)) / (
        d if isinstance(law, ColumnMeasure) else np.sqrt(d)
    )
    errors = [estimates(frequencies(law, d, m, Stream(s)), D) - k(D) for s in range(12)]
    assert np.mean(np.square(errors)) < np.mean(1 + k(2 * D) - 2 * k(D) ** 2) / (2 * m)


@pytest.mark.parametrize(("d", "target"), [(4, 33), (8, 8), (16, 4), (64, 5)])
def test_error_against_scikit_learn(d, target):
    X = np.random.default_rng(d).standard_normal((120, d))
    i, j = np.triu_indices(len(X), 1)
    K = np.exp(-((X[i] - X[j]) ** 2).sum(1) / (2 * d))

    def ours(seed):
        P = X @ frequencies(Normal(), d, 512, Stream(seed)).T / np.sqrt(d)
        return np.hstack([np.cos(P), np.sin(P)]) / np.sqrt(512)

    theirs = lambda seed: RBFSampler(
        gamma=1 / (2 * d), n_components=1024, random_state=seed
    ).fit_transform(X)
    ours, theirs = (
        np.mean([((F @ F.T)[i, j] - K) ** 2 for F in map(make, range(12))])
        for make in (ours, theirs)
    )
    assert theirs / ours > target


def test_errors_name_the_argument():
    with pytest.raises(
        ValueError, match="kind must be one of auto, iid, orthogonal, qmc, design, got 'sobol'"
    ):
        frequencies(Normal(), 2, 5, Stream(0), "sobol")
    with pytest.raises(ValueError, match="changes under rotations"):
        frequencies(CauchyColumns(), 2, 5, Stream(0), "orthogonal")
    with pytest.raises(ValueError, match="d <= 3; X has 4 columns"):
        frequencies(Sphere(), 4, 5, Stream(0))


def test_the_rule_of_auto():
    assert {choose(Normal(), d, 512) for d in (1, 20, 5000)} == {"design"}
    assert [choose(CauchyColumns(), d, 512) for d in (1, 256, 257)] == ["qmc", "qmc", "iid"]


@pytest.mark.parametrize("rotations", ["factors", "reflections"])
@pytest.mark.parametrize("kind", ["orthogonal", "design"])
@pytest.mark.parametrize(("d", "m"), [(1, 5), (3, 40), (7, 20), (300, 120), (300, 301), (301, 700)])
def test_products_with_frequencies_and_float32(d, m, kind, rotations):
    """Without forming them, in either precision, they are those of the matrix."""
    made = {"kind": kind, "rotations": rotations}
    W = frequencies(Normal(), d, m, Stream(5), **made)
    X = np.random.default_rng(0).normal(size=(6, d)) / np.sqrt(d)
    for dtype, allowed in ((np.float64, 1e-12), (np.float32, 3e-5)):
        narrow = frequencies(Normal(), d, m, Stream(5), dtype=dtype, **made)
        P = frequencies(Normal(), d, m, Stream(5), dtype=dtype, times=X.T.astype(dtype), **made)
        assert narrow.dtype == P.dtype == dtype
        np.testing.assert_allclose(narrow, W, atol=allowed * np.sqrt(d))
        np.testing.assert_allclose(P, W @ X.T, atol=allowed * np.sqrt(d))


@pytest.mark.parametrize(("d", "m"), [(3, 21), (300, 310)])
def test_reflections_are_unbiased_as_factors_are(d, m):
    D = np.random.default_rng(1).normal(size=(4, d)) / d**0.5
    made = {"rotations": "reflections"}
    sample = [estimates(frequencies(Normal(), d, m, Stream(s), **made), D) for s in range(60)]
    assert_centred(np.array(sample), KERNELS[Normal()](D))
