"""Structured frequencies: unbiased at small d too, each row following its measure, without a d x m
array."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard as matrix

from mercer.ops.fastfood import Fastfood, hadamard, reference_hadamard, reference_project
from mercer.ops.measures import CauchyColumns, GammaMixture, Normal, Sphere, Student
from mercer.ops.philox import Stream, signs

PROFILES = {  # measure: its kernel as a function of the squared distance
    "gaussian": (Normal(), lambda q: np.exp(-q / 2)),
    "matern": (Student(3.0), lambda q: (1 + np.sqrt(3 * q)) * np.exp(-np.sqrt(3 * q))),
    "cauchy": (GammaMixture(1.0, 2.0), lambda q: 1 / (1 + q)),
}


def estimates(draw, shift, seeds):
    """The mean of cos(w'shift) over the frequencies of each seed."""
    return np.array([np.cos(draw(Stream(seed)) @ shift).mean(0) for seed in range(seeds)])


@pytest.mark.parametrize("d", [1, 3, 4, 8, 16, 20])
@pytest.mark.parametrize("name", PROFILES)
def test_the_mean_over_seeds_is_the_kernel(name, d):
    measure, profile = PROFILES[name]
    shifts = np.array([np.full(d, 1.5 / np.sqrt(d)), np.eye(d)[0] * 1.5])
    found = estimates(lambda stream: Fastfood(measure, d, 32, stream).matrix(), shifts.T, 800)
    error = found.mean(0) - profile(1.5**2)
    assert (np.abs(error) < 4 * found.std(0) / np.sqrt(len(found))).all()


def test_the_form_with_signs_alone_is_biased():
    def hdhdhd(stream):
        W = np.eye(4)
        for k in range(3):
            W = reference_hadamard(W * signs(stream.child(k), 0, 1, 4)) / 2
        return 2 * W  # rows of norm sqrt(d)

    found = estimates(hdhdhd, np.array([1.5, 0, 0, 0]), 1500)
    assert abs(found.mean() - np.exp(-(1.5**2) / 2)) > 10 * found.std() / np.sqrt(len(found)) + 0.02


def test_rows_are_gaussian_one_by_one():
    W = np.array([Fastfood(Normal(), 4, 20, Stream(seed)).matrix() for seed in range(1000)])
    for row in (0, 7, 19):
        assert stats.kstest((W[:, row] ** 2).sum(1), stats.chi2(4).cdf).pvalue > 1e-3
        assert stats.kstest(W[:, row] @ [0.5, 0.5, -0.5, 0.5], stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "m"), [(1, 1, 1), (3, 5, 40), (9, 16, 16), (20, 100, 300), (8, 64, 65)]
)
def test_project_is_the_reference_inside_a_wider_array(n, d, m, dtype):
    X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    structured = Fastfood(Student(3.0), d, m, Stream(5))
    out, expected = np.full((n, m + 3), np.nan, dtype), np.empty((n, m))
    structured.project(X, out[:, :m])
    reference_project(structured, X.astype(np.float64), expected)
    np.testing.assert_allclose(
        out[:, :m], expected, atol=30 * np.finfo(dtype).eps * np.abs(expected).max()
    )
    assert np.isnan(out[:, m:]).all()
    np.testing.assert_allclose(
        X @ structured.matrix().T, expected, rtol=1e-3, atol=1e-4 if dtype == np.float32 else 1e-10
    )


def test_memory_is_of_the_order_of_m():
    structured, X, out = (
        Fastfood(Normal(), 1024, 4096, Stream(0)),
        np.zeros((4, 1024)),
        np.empty((4, 4096)),
    )
    tracemalloc.start()
    structured.project(X, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 8 * 4096 < 1024 * 4096


@pytest.mark.parametrize("measure", [Sphere(), CauchyColumns()])
def test_other_measures_are_refused(measure):
    with pytest.raises(ValueError, match="no structured frequencies"):
        Fastfood(measure, 2, 10, Stream(0))


dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(n, L, dtype):
    return np.random.default_rng(L).normal(size=(n, L)).astype(dtype)


@dtypes
@pytest.mark.parametrize("L", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
def test_is_scipys_matrix(L, dtype):
    X = rows(11, L, dtype)
    expected = X.astype(np.float64) @ matrix(L)
    tolerance = 4 * np.finfo(dtype).eps * L
    np.testing.assert_allclose(hadamard(X.copy()), expected, atol=tolerance)
    np.testing.assert_allclose(reference_hadamard(X), expected, atol=tolerance)


@dtypes
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40])
def test_any_number_of_rows_in_place_inside_a_wider_array(n, dtype):
    X = rows(n, 128, dtype)
    wide = np.full((n, 200), np.nan, dtype)
    wide[:, 30:158] = X
    hadamard(wide[:, 30:158])
    np.testing.assert_allclose(
        wide[:, 30:158], reference_hadamard(X), atol=1e-3 if dtype == np.float32 else 1e-11
    )
    assert np.isnan(wide[:, :30]).all()
    assert np.isnan(wide[:, 158:]).all()


def test_twice_is_a_scale():
    X = rows(5, 2048, np.float64)
    np.testing.assert_allclose(hadamard(hadamard(X.copy())), 2048 * X)


@pytest.mark.parametrize("L", [0, 3, 48])
def test_other_lengths_are_refused(L):
    with pytest.raises(ValueError, match="power of two of columns"):
        hadamard(np.zeros((2, L)))
