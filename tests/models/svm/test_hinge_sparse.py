"""The hinge over sparse rows where sweeps alone do not close its gap, and rounds without curvature."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelSVC
from mercer.kernels import Linear
from mercer.models.sparse_newton import directions
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm.hinge import HingeDual


def drawn(seed, n, D, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random(n, D, 0.05, "csr", random_state=seed).toarray()
    y = np.arange(n) % 2
    y[2:] = (rng.uniform(size=n) < 0.4)[2:]
    return X.astype(dtype), y, rng


def far(X, rng):
    X[:, 0] = 1e6 + rng.normal(size=len(X))


def far_with_gaps(X, rng):
    far(X, rng)
    X[::3] = 0


def scaled(X, rng):
    X *= 10.0 ** rng.uniform(-6, 6, size=X.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("change", "n"), [(far, 60), (scaled, 6)])
def test_gap_is_closed_on_hostile_columns(change, n, dtype):
    X, y, rng = drawn(0, n, 140)
    change(X, rng)
    m = KernelSVC(Linear(), 0.1).fit(sp.csr_array(X.astype(dtype)), y)
    assert m.plan_.way == "sparse dual coordinate descent"
    assert m.plan_.settings["duality_gap"] <= 1e-4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_told_is_true_where_rounding_leaves_a_gap(dtype):
    for seed, (n, D) in enumerate([(6, 140), (60, 150), (90, 30)]):
        X, y, rng = drawn(seed, n, D)
        far_with_gaps(X, rng)
        A = X.astype(dtype)
        m = KernelSVC(Linear(), 20.0).fit(sp.csr_array(A), y)
        f = A.astype(np.float64) @ m.coef_[0] + m.intercept_[0]
        loss = 20.0 * np.maximum(1 - (2 * y - 1) * f, 0).sum()
        assert m.objective_ == pytest.approx(loss + m.coef_[0] @ m.coef_[0] / 2, rel=1e-6)
        assert 0 <= m.plan_.settings["duality_gap"] < 0.1


@pytest.mark.parametrize("intercept", [True, False])
def test_weights_of_every_size(intercept):
    for seed in range(4):
        X, y, rng = drawn(seed, 70, 120)
        w = 10.0 ** rng.uniform(-6, 6, size=len(y))
        found = [
            KernelSVC(Linear(), 5.0, via=via, fit_intercept=intercept).fit(sp.csr_array(X), y, w)
            for via in ("features", "exact")
        ]
        assert found[0].objective_ == pytest.approx(found[1].objective_, rel=2e-3)


def test_scores_are_the_same_bits_once_the_entries_are_there_by_column():
    X, y, _ = drawn(0, 60, 400)
    S = SparseRows.of(sp.csr_array(X), intercept=True)
    dual = HingeDual(S, 2.0 * y - 1, np.ones(60), True)
    dual._sweeps(5)
    before = dual._look()
    assert S.by_column is not None
    for a, b in zip(before, dual._look(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_directions_without_curvature_are_as_long_as_they_are_made():
    H, g = np.diag([2.0, 0.0]), np.array([[0.0], [3.0]])
    d, products = directions(lambda v: H @ v, g, lambda r: r, 0.1)
    np.testing.assert_array_equal(d, -g)
    assert products == 1
