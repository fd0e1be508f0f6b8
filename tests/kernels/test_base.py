"""Every kernel's questions: distances, functions of pairs, gradients, columns in order, and bad
input."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from mercer.kernels import (
    ArcCosine,
    Callable,
    Cauchy,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
)
from tests.market import rows

X, Z = rows(8), rows(5, seed=1)


def test_kernel_distance_takes_the_root():
    for k in (Gaussian(), Polynomial(2), Linear()):
        square = k.diag(X)[:, None] + k.diag(Z) - 2 * k(X, Z)
        np.testing.assert_allclose(k.distance(X, Z), np.sqrt(square), rtol=1e-7)
    np.testing.assert_allclose(Linear().distance(X, Z), cdist(X, Z), rtol=1e-7)
    assert (np.diag(Gaussian().distance(X)) == 0).all()


def test_callable_takes_numbers_or_any_list():
    words = ["tree", "three", "two"]
    common = Callable(lambda A, B: np.array([[len(set(a) & set(b)) for b in B] for a in A], float))
    np.testing.assert_array_equal(common(words), [[3, 3, 1], [3, 4, 1], [1, 1, 3]])
    np.testing.assert_array_equal(common.diag(words), [3, 4, 3])
    assert (2 * common + 1)(words)[0, 0] == 7
    with pytest.raises(ValueError, match="must return an array of shape"):
        Callable(lambda A, B: np.zeros(3))(X)


rng = np.random.default_rng(0)
CLUSTERS = np.repeat([[1.0], [-1.0]], 20, axis=0)


@pytest.mark.parametrize("size", [10.0, 1e2, 1e4])
@pytest.mark.parametrize("k", [Gaussian(), Cauchy(), Laplace(), Matern()], ids=repr)
def test_sparse_float32_keeps_its_digits(k, size):
    A = sp.csr_array((CLUSTERS * size + rng.normal(size=(40, 3))).astype(np.float32))
    assert np.abs(k(A) - k(A.astype(np.float64))).max() < 1e-4


@pytest.mark.parametrize(("small", "large", "at"), [(1e-3, 2e4, 1e4), (1e-12, 1e4, 1e4)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_far_distance_is_not_reused_for_another_bandwidth(small, large, at, dtype):
    X = np.array([[-at, at], [at, at]], dtype)
    expected = Gaussian(large)(X)[0, 1]
    assert (Gaussian(small) + Gaussian(large))(X)[0, 1] == pytest.approx(expected, rel=1e-4)
    assert (Gaussian(large) + Gaussian(small))(X)[0, 1] == pytest.approx(expected, rel=1e-4)


class Inverse(Kernel):
    width: float = 1.0

    def on(self, p):
        return (1 + p.sqdist(self.width)) ** -1


def test_whole_numbers_as_floats_and_floats_as_whole_numbers():
    assert Laplace(norm=1.0).parameters() == {"bandwidth": 1.0}
    assert ArcCosine(1.0).parameters() == {}
    assert Inverse(2).parameters() == {"width": 2.0}


def test_scikit_learn_asks_for_whole_matrices_without_a_clone():
    calls = []

    class Counting(Gaussian):
        def on(self, p):
            calls.append(1)
            return super().on(p)

    KernelRidge(kernel=Counting()).fit(rows(40), np.arange(40.0))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "holds dates or times"),
        (sp.csr_array(np.zeros((3, 0))), "at least one column"),
        (None, "must be a table of numbers"),
        ("abc", "must be a table of numbers"),
    ],
)
def test_more_bad_input(X, says):
    with pytest.raises(ValueError, match=says):
        Gaussian()(X)


def test_gradient_checks_its_weights():
    with pytest.raises(ValueError, match=r"G must be numbers of shape \(4, 4\)"):
        Gaussian().gradient(rows(4), np.ones(4))


def test_columns_in_another_order_are_put_in_order():
    import pandas as pd

    frame = pd.DataFrame(rows(5), columns=list("abc"))
    np.testing.assert_allclose(
        Gaussian((1.0, 2.0, 3.0))(frame, frame[["c", "a", "b"]]),
        Gaussian((1.0, 2.0, 3.0))(rows(5), rows(5)),
    )


def test_a_function_of_pairs_is_called_on_lists_too():
    k = Callable(lambda A, B: np.array([[float(a == b) for b in B] for a in A])).normalized()
    np.testing.assert_array_equal(k(["a", "b"]), np.eye(2))
