"""What may be written, what is refused, and how parameters live inside scikit-learn."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Product,
    Scale,
    Sum,
    exp,
)
from tests.market import rows, size

X = rows(10)


def test_sums_and_products_are_flat():
    a, b, c = Gaussian(), Linear(), Laplace()
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert 2 * a == a * 2 == np.float64(2) * a == a * np.float32(2) == Scale(2.0, a)
    assert sum([a, b]) == a + b
    assert a / 2 == 0.5 * a


def test_algebra_of_values():
    a, b = Gaussian(0.7), Polynomial(2)
    A, B = a(X), b(X)
    for k, K in [
        (a + b, A + B),
        (a * b, A * B),
        (3 * a, 3 * A),
        (a + 2, A + 2),
        (b**3, B**3),
        (exp(a), np.exp(A)),
        (a.compose([1, 2, 3]), 1 + 2 * A + 3 * A**2),
        (a.weighted(size), size(X)[:, None] * A * size(X)),
        (a.warped(lambda X: X**2), a(X**2)),
        (b.normalized(), B / np.sqrt(np.outer(np.diag(B), np.diag(B)))),
        (a.on_columns([2, 0]), a(X[:, [2, 0]])),
    ]:
        np.testing.assert_allclose(k(X), K, rtol=1e-9)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda: Gaussian() - Linear(), "cannot be subtracted"),
        (lambda: 1 - Linear(), "cannot be subtracted"),
        (lambda: -Linear(), "cannot be negated"),
        (lambda: -1.0 * Gaussian(), "scale of a kernel must be a number >= 0, got -1.0"),
        (lambda: Gaussian() + -1, "scale of a kernel"),
        (lambda: Gaussian() ** 1.5, "power of a kernel"),
        (lambda: Gaussian() ** -1, "power of a kernel"),
        (
            lambda: Gaussian().compose([1, -1]),
            "coefficient of compose must be a number >= 0, got -1",
        ),
        (lambda: Linear(metric=[[1.0, 0.0], [0.0, -1.0]]), "metric must be positive semidefinite"),
        (lambda: Linear(metric=[[1.0, 1.0], [0.0, 1.0]]), "metric must be symmetric"),
        (lambda: Gaussian(bandwidth=0.0), "bandwidth must be a number > 0, got 0.0"),
        (lambda: Gaussian(bandwidth=float("nan")), "bandwidth must be a number > 0, got nan"),
        (lambda: Gaussian(bandwidth="wide"), "bandwidth must be a number > 0, got 'wide'"),
        (lambda: Gaussian(bandwidth=[1.0, -1.0]), "bandwidth must be a number > 0, got -1.0"),
        (lambda: Gaussian(bandwidth=[]), "bandwidth is empty"),
        (lambda: Matern(nu=-1), "nu must be a number > 0"),
        (lambda: Laplace(norm=3), "norm must be 1 or 2, got 3"),
        (lambda: Periodic(period=0), "period must be a number > 0, got 0"),
        (lambda: Gaussian(bandwidth=(1.0, 2.0))(X), "bandwidth has 2 values, but X has 3 columns"),
        (
            lambda: Gaussian(bandwidth=(1.0, 2.0)).diag(X),
            "bandwidth has 2 values, but X has 3 columns",
        ),
        (lambda: Gaussian().on_columns([5])(X), "column 5 is out of range; X has 3 columns"),
        (lambda: Gaussian().on_columns(["age"])(X), "X has no column names"),
        (lambda: Linear(metric=np.eye(2))(X), "metric is 2 x 2, but X has 3 columns"),
        (
            lambda: Gaussian().set_params(width=2),
            "'width' is not a parameter of Gaussian; it has bandwidth",
        ),
        (lambda: Gaussian().set_params(bandwidth=-2), "bandwidth must be a number > 0"),
        (lambda: Gaussian().weighted(3), "weighted takes a function of rows, got 3"),
        (lambda: Gaussian().weighted(lambda X: X)(X), "must return one number a row"),
    ],
)
def test_refused_in_one_sentence(write, says):
    with pytest.raises(ValueError, match=says) as e:
        write()
    assert "\n" not in str(e.value)


def test_set_params_reaches_nested_kernels_and_leaves_shared_ones():
    inner = Gaussian()
    k = 0.5 * inner + Linear()
    twin = clone(k).set_params(terms__0__kernel__bandwidth=3.0, terms__0__factor=2.0)
    assert twin == 2.0 * Gaussian(3.0) + Linear()
    assert k == 0.5 * Gaussian() + Linear()
    assert inner == Gaussian()
    assert k.get_params()["terms__0__kernel__bandwidth"] == 1.0


class Smoother(RegressorMixin, BaseEstimator):
    """A minimal estimator of ours: kernel-weighted means."""

    def __init__(self, kernel=None):
        self.kernel = kernel

    def fit(self, X, y):
        self.X_, self.y_ = X, y
        return self

    def predict(self, X):
        K = self.kernel(X, self.X_)
        return K @ self.y_ / K.sum(1)


def rings(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (np.square(X).sum(1) > 1.4).astype(int)


@pytest.mark.parametrize(
    "estimator", [SVC(), KernelRidge(alpha=0.1), Smoother()], ids=lambda e: type(e).__name__
)
def test_grid_search_over_nested_parameters(estimator):
    X, y = rings()
    k = 0.5 * Gaussian(bandwidth=100.0) + 0.001 * Linear()
    search = GridSearchCV(
        estimator.set_params(kernel=k),
        {"kernel__terms__0__kernel__bandwidth": [100.0, 0.5, 0.01]},
        cv=3,
    )
    search.fit(X, y)
    assert search.best_params_ == {"kernel__terms__0__kernel__bandwidth": 0.5}
    assert k.terms[0].kernel.bandwidth == 100.0
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) == 3


def test_grid_search_in_a_pipeline():
    X, y = rings()
    pipe = make_pipeline(StandardScaler(), SVC(kernel=Gaussian(50.0) + Linear()))
    search = GridSearchCV(pipe, {"svc__kernel__terms__0__bandwidth": [50.0, 0.7]}, cv=3).fit(X, y)
    assert search.best_params_ == {"svc__kernel__terms__0__bandwidth": 0.7}
    assert search.best_estimator_.predict(X).shape == y.shape


def test_scikit_learn_asks_for_whole_matrices_after_a_clone():
    """scikit-learn's pairwise_kernels calls a kernel pair by pair unless it knows the class."""
    X, y = rings(60)
    calls = []

    class Counting(Gaussian):
        def on(self, p):
            calls.append(1)
            return super().on(p)

    GridSearchCV(KernelRidge(kernel=Counting()), {"alpha": [1.0]}, cv=2).fit(X, y)
    assert len(calls) < 20


def test_two_vectors_give_a_number():
    assert Gaussian()([0.0, 1.0], [0.0, 1.0]) == 1.0
    assert isinstance(Linear()([1.0, 2.0], [3.0, 4.0]), float)


rng = np.random.default_rng(0)


def test_a_warp_must_keep_the_rows():
    with pytest.raises(ValueError, match="one row for each of 9 rows"):
        Gaussian().warped(lambda X: X.mean(0, keepdims=True))(rows(9))


def test_a_warp_sees_every_row_once():
    seen = []
    X = rng.normal(size=(1500, 2))
    Gaussian().warped(lambda A: (seen.append(len(A)), A)[1])(X)
    assert sum(seen) <= 2 * 1500
