"""Fits of support vector machines: optimal, at any penalty, on odd data, by blocks, warm and
cold."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.models.svm.classifier import KernelSVC

EPS = float(np.finfo(np.float32).eps)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


def objective(K, coef):
    """sum |b| - b'Kb/2 of a binary rule's coefficients at all rows."""
    return np.abs(coef).sum() - coef @ K @ coef / 2


def everywhere(m, n):
    coef = np.zeros(n)
    coef[m.support_] = m.dual_coef_[0]
    return coef


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(3), Laplace(2.0)], ids=repr)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_is_that_of_libsvm(kernel, C, dtype):
    X, y = data()
    K = kernel(X)
    m = KernelSVC(kernel, C=C, via="exact", memory_limit="1MB").fit(X.astype(dtype), y)
    twin = SVC(kernel="precomputed", C=C, tol=1e-3).fit(K, y)
    ours, theirs = (objective(K, everywhere(e, len(y))) for e in (m, twin))
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert m.objective_ == pytest.approx(ours, rel=1e-4)
    assert np.mean(m.predict(X) == twin.predict(K)) >= 0.99
    best = objective(K, everywhere(SVC(kernel="precomputed", C=C, tol=1e-7).fit(K, y), len(y)))
    assert best - ours <= m.gap_ * best + 1e-6 * best  # the gap bounds the distance to the optimum


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimality_conditions_hold(C, fit_intercept, loss):
    X, y = data()
    m = KernelSVC(
        Gaussian(), C=C, loss=loss, via="exact", fit_intercept=fit_intercept, tol=1e-5
    ).fit(X, y)
    coef, s = everywhere(m, len(y)), np.where(y == 1, 1, -1)
    alpha, margin = coef * s, s * m.decision_function(X)
    assert (alpha >= 0).all()
    if loss == "hinge":
        assert alpha.max() <= C
        assert (margin[alpha == 0] >= 1 - 1e-4).all()
        assert (margin[alpha == C] <= 1 + 1e-4).all()
        np.testing.assert_allclose(margin[(alpha > 0) & (alpha < C)], 1, atol=1e-4)
    else:
        np.testing.assert_allclose(alpha, 2 * C * np.maximum(1 - margin, 0), atol=2 * C * 1e-4)
    assert abs(coef.sum()) < 1e-9 * C or not fit_intercept
    assert (m.intercept_ == 0).all() or fit_intercept


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("bandwidth", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_all_penalties_and_bandwidths(C, bandwidth):
    X, y = data(80, 2)
    m = KernelSVC(Gaussian(bandwidth), C=C, via="exact").fit(X, y)
    K = Gaussian(bandwidth)(X)
    coef, s = everywhere(m, len(y)), np.where(y == 1, 1, -1)
    hinge = np.maximum(1 - s * (K @ coef + m.intercept_), 0)
    primal, dual = coef @ K @ coef / 2 + C * hinge.sum(), objective(K, coef)
    assert (
        primal - dual <= max(1.01e-5 * dual, 1.01e-3 * C * len(y)) + 1e-7 * primal
    )  # one of the two rules stopped it
    assert np.isfinite(m.decision_function(X)).all()
    if bandwidth <= 1e-3 and C >= 1:
        assert m.score(X, y) == 1  # every row is alone


def test_duplicates_and_opposite_labels():
    X, y = data(60)
    X2, y2 = np.concatenate([X, X, X[:20]]), np.concatenate([y, y, 1 - y[:20]])
    m = KernelSVC(Gaussian(), C=10.0, via="exact").fit(X2, y2)
    twin = SVC(gamma=0.5, C=10.0).fit(X2, y2)
    K = Gaussian()(X2)
    assert objective(K, everywhere(m, len(y2))) == pytest.approx(
        objective(K, everywhere(twin, len(y2))), rel=1e-4
    )


def test_collinear_rows_and_constant_columns():
    X = np.linspace(-1, 1, 50)[:, None] * [1.0, -2.0, 0.0] + [0, 0, 7.0]
    m = KernelSVC(Linear(), C=10.0, via="exact").fit(X, X[:, 0] > 0.2)
    assert m.score(X, X[:, 0] > 0.2) >= 0.98


def test_separable_data_is_separated_at_the_widest_margin():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    m = KernelSVC(Linear(), C=1e6, via="exact", tol=1e-8).fit(X, [0, 0, 1, 1])
    coef = m.dual_coef_[0] @ m.support_vectors_
    np.testing.assert_allclose([*coef, *m.intercept_], [0.5, 0, -1], atol=1e-6)


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_hopeless_data_ends(C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    m = KernelSVC(Linear(), C=C, via="exact").fit(X, y)
    assert m.gap_ <= 1e-3
    assert m.objective_ <= C * 2 * min(y.sum(), 300 - y.sum())


def test_two_rows():
    m = KernelSVC(via="exact").fit([[0.0], [1.0]], ["a", "b"])
    assert m.predict([[-1.0], [2.0]]).tolist() == ["a", "b"]


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_many_rows_go_by_blocks_and_agree_with_one_block(monkeypatch, multiclass):
    X, y = data(420, classes=3)
    whole = KernelSVC(Gaussian(), via="exact", multiclass=multiclass, tol=1e-4).fit(X, y)
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 100)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 64)
    blocks = KernelSVC(Gaussian(), via="exact", multiclass=multiclass, tol=1e-4).fit(X, y)
    assert blocks.n_iter_ > whole.n_iter_
    assert blocks.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X), atol=0.02)


def test_weights_and_classes_bound_the_duals():
    X, y = data(150)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X, y, w)
    repeated = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )
    assert (w[weighted.support_] > 0).all()
    m = KernelSVC(Gaussian(), via="exact", class_weight={0: 5.0}).fit(X, y)
    twin = SVC(gamma=0.5, class_weight={0: 5.0}).fit(X, y)
    np.testing.assert_allclose(m.decision_function(X), twin.decision_function(X), atol=5e-3)
    with pytest.raises(ValueError, match="class_weight names 7"):
        KernelSVC(via="exact", class_weight={7: 1.0}).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_warm_starts_along_C_end_where_cold_ones_do(classes):
    X, y = data(200, classes=classes)
    m = KernelSVC(Gaussian(), C=1.0, via="exact", warm_start=True).fit(X, y)
    for C in (1.2, 1.5):
        steps = m.set_params(C=C).fit(X, y).plan_.settings["steps"]
        cold = KernelSVC(Gaussian(), C=C, via="exact").fit(X, y)
        assert steps < cold.plan_.settings["steps"]
        assert m.objective_ == pytest.approx(cold.objective_, rel=1e-4)
    assert (
        m.fit(X, 1 - y if classes == 2 else (y + 1) % 3).score(
            X, 1 - y if classes == 2 else (y + 1) % 3
        )
        > 0.5
    )


def test_a_warning_where_rounds_run_out(monkeypatch):
    X, y = data(300)
    monkeypatch.setattr("mercer.models.svm.solver.STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol, or lower C"):
        KernelSVC(Linear(), C=1e3, via="exact", max_iter=1, tol=1e-9).fit(X, y)


@pytest.mark.parametrize(
    "change", [{"fit_intercept": True}, {"loss": "squared_hinge"}, {"multiclass": "ovr"}], ids=str
)
def test_warm_starts_only_where_the_problems_are_the_same(change):
    X, y = data(150, classes=3)
    first = {"fit_intercept": False, "loss": "hinge", "multiclass": "ovo"}
    m = KernelSVC(Gaussian(), via="exact", warm_start=True, **first).fit(X, y)
    m.set_params(**change, C=2.0).fit(X, y)
    cold = KernelSVC(Gaussian(), C=2.0, via="exact", **{**first, **change}).fit(X, y)
    np.testing.assert_array_equal(m.decision_function(X), cold.decision_function(X))
    assert m.set_params(warm_start=False).fit(X, y)._last is None


@pytest.mark.parametrize("C", [0.1, 0.03, 0.01, 0.003])
@pytest.mark.parametrize("seed", range(3))
def test_a_dual_one_rounding_off_its_bound_does_not_set_the_intercept(C, seed):
    X, y = make_classification(300, 8, n_informative=6, flip_y=0.2, random_state=seed)
    warm = (
        KernelSVC(Gaussian(2.0), C=100.0, via="exact", warm_start=True)
        .fit(X, y)
        .set_params(C=C)
        .fit(X, y)
    )
    cold = KernelSVC(Gaussian(2.0), C=C, via="exact").fit(X, y)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=5e-3)
    assert warm.score(X, y) == pytest.approx(cold.score(X, y), abs=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [100.0, 400.0])
def test_the_gap_is_that_of_the_kernel_not_of_its_rounding(C, dtype):
    X, y = make_classification(2200, 8, n_informative=6, flip_y=0.3, random_state=2)
    X = X.astype(np.float32)
    m = KernelSVC(Gaussian(2.0), C=C, via="exact").fit(X.astype(dtype), y)
    K, s = Gaussian(2.0)(X.astype(np.float64)), np.where(y == 1, 1, -1)
    coef = everywhere(m, len(y))
    hinge = np.maximum(1 - s * (K @ coef + m.intercept_), 0)
    dual = objective(K, coef)
    assert (coef @ K @ coef / 2 + C * hinge.sum() - dual) / dual <= m.gap_ + 2e-4
    assert m.plan_.settings["kernel_values"] == "float64" or EPS * C * len(y) ** 0.5 <= 1e-3


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("C", "scale"), [(1e4, 1.0), (1e6, 1.0), (1.0, 1e3)])
def test_linear_kernels_at_a_large_C_end(loss, C, scale):
    X, y = data(300, 6)
    m = KernelSVC(Linear(), C=C, loss=loss, via="exact", max_iter=200).fit(X * scale, y)
    assert m.gap_ <= 1e-3
    assert (
        m.score(X * scale, y)
        >= KernelSVC(Linear(), C=1.0, via="exact").fit(X, y).score(X, y) - 0.03
    )


def test_the_plan_says_what_ended_it_and_counts_the_blocks():
    X, y = data(100)
    m = KernelSVC(Gaussian(0.01), C=1e5, via="exact").fit(X, y)
    assert m.gap_ <= 1e-3
    assert m.plan_.settings["ended_by"] in ("gap", "slopes")
    assert m.plan_.bytes >= 4 * 100 * 100


@pytest.mark.parametrize("classes", [2, 3])
def test_the_plan_says_how_kernel_values_came(classes, monkeypatch):
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 64)
    X, y = data(1500, classes=classes, noise=1.0)
    far = X + 8 * np.eye(classes, 3)[y]

    def way(X, **options):
        m = KernelSVC(Gaussian(2.0), via="exact", **options).fit(X, y)
        return m.plan_.settings["kernel_rows"]

    assert way(X) == "whole matrix"
    assert way(X, memory_limit="4MB") == "blocks"
    # with room for all of K, pairs are parts of it
    assert way(far) == ("few rows" if classes == 2 else "whole matrix")
    monkeypatch.undo()
    m = KernelSVC(Gaussian(2.0), via="exact").fit(X[:300], y[:300])
    assert m.plan_.settings["kernel_rows"] == "whole matrix"
    assert "kernel_rows = whole matrix" in str(m.plan_)


def test_blocks_stay_near_the_limit_of_memory():
    X, y = data(3000, 4)
    KernelSVC(Gaussian(), via="exact").fit(X[:2100], y[:2100])  # compiled
    tracemalloc.start()
    m = KernelSVC(Gaussian(), via="exact", memory_limit="4MB").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert m.plan_.bytes <= 4e6
    assert peak < 12e6  # vectors of n and tiles beside the limit; one block of 2,048 would be 17 MB
    assert m.gap_ <= 1e-3


@pytest.mark.parametrize("C", [1e-300, 1e-30, 1e-12])
def test_the_smallest_C_gives_numbers(C):
    X, y = data(60)
    m = KernelSVC(Gaussian(), C=C, loss="squared_hinge", via="exact").fit(X, y)
    assert np.isfinite(m.decision_function(X)).all()
    mean = np.mean(np.where(y == 1, 1.0, -1.0))
    np.testing.assert_allclose(m.intercept_, mean, atol=1e-3)  # the best constant
