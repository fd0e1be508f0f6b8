"""Paths of penalties: the same scores as models fitted fold by fold, and the penalty that they
choose."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder

from mercer import KernelLogistic, KernelSVC, kernels, methods
from mercer.inputs import Table
from mercer.models.folds import Folds
from mercer.models.penalties import HeldOut, PenaltyPath, log_likelihood, penalty_grid

RNG = np.random.default_rng(0)
X = sp.random(150, 60, 0.15, "csr", random_state=0)
Y = (X @ RNG.normal(size=(60, 3)) + 0.3 * RNG.normal(size=(150, 3))).argmax(1)
W = RNG.integers(1, 4, 150).astype(float)
GRID = [0.03, 0.3, 3.0]
FOLDS = KFold(3)


def by_hand(model, y, name, score):
    """Every fold and penalty, each fit on its own."""
    out = np.empty((len(GRID), 3))
    for j, (train, test) in enumerate(FOLDS.split(X)):
        for i, value in enumerate(GRID):
            m = model.set_params(**{name: value}).fit(X[train], y[train], W[train])
            out[i, j] = score(m, test)
    return out


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("via", ["features", "exact"])
@pytest.mark.parametrize("classes", [2, 3])
def test_machines(classes, via, loss):
    y = Y if classes == 3 else (Y > 0).astype(int)
    kind = dict(kernel="linear", loss=loss, via=via, multiclass="ovr", tol=1e-4)
    m = KernelSVC(**kind, cv=FOLDS, Cs=GRID).fit(X, y, W)
    expected = by_hand(KernelSVC(**kind), y, "C", lambda m, at: m.score(X[at], y[at], W[at]))
    np.testing.assert_allclose(m.path_.scores, expected, atol=0.03)  # gaps of 1e-3 while choosing
    assert m.C_ == m.path_.best == GRID[int(np.argmax(m.path_.pooled))]
    alone = KernelSVC(**kind, C=m.C_).fit(X, y, W)
    np.testing.assert_array_equal(m.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dense", [False, True])
def test_logistic(classes, dense):
    y = Y if classes == 3 else (Y > 0).astype(int)
    rows = X.toarray() if dense else X
    m = KernelLogistic("linear", cv=FOLDS, alphas=GRID).fit(rows, y, W)

    def score(model, at):
        P = model.predict_proba(X[at])
        return np.average(np.log(P[np.arange(len(at)), y[at]]), weights=W[at])

    expected = by_hand(KernelLogistic("linear"), y, "alpha", score)
    np.testing.assert_allclose(
        m.path_.scores, expected[::-1], atol=5e-3
    )  # rounds of 1e-4 while choosing
    assert m.path_.values.tolist() == GRID[::-1]
    assert m.alpha_ == m.path_.best
    alone = KernelLogistic("linear", m.alpha_).fit(rows, y, W)
    np.testing.assert_array_equal(m.coef_, alone.coef_)


def test_copies_of_rows_are_in_one_fold():
    twice = Table(sp.vstack([X, X], format="csr"))
    held = HeldOut.of(Folds(4), twice, np.concatenate([Y, Y]), np.ones(300))
    np.testing.assert_array_equal(held.fold[:150], held.fold[150:])
    assert len(np.unique(held.fold)) == 4


def test_folds_without_a_class_are_left_out():
    held = HeldOut(np.array([0, 0, 1, 1, 2]), 3, np.array([0, 1, 0, 1, 1]), np.ones(5))
    path = held.path(np.ones(1), lambda out: iter([np.ones(int(out.sum()))]), lambda f, y, w: 1.0)
    assert np.isfinite(path.scores).all()
    lone = HeldOut(np.array([0, 0, 1, 1, 2]), 3, np.array([0, 0, 1, 1, 0]), np.ones(5))
    path = lone.path(np.ones(1), lambda out: iter([np.ones(int(out.sum()))]), lambda f, y, w: 1.0)
    assert np.isfinite(path.scores).tolist() == [[True, False, True]]
    none = HeldOut(np.zeros(4, int), 1, np.array([0, 0, 1, 1]), np.ones(4))
    with pytest.raises(ValueError, match="no fold"):
        none.path(np.ones(1), lambda out: iter([np.ones(4)]), lambda f, y, w: 1.0)


def test_pooled_is_by_the_rows_of_the_folds():
    path = PenaltyPath(
        np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 3.0])
    )
    assert path.pooled.tolist() == [0.25, 0.75]
    assert path.best == 2.0


def test_log_likelihood():
    f = np.array([[0.0, np.log(3)], [np.log(3), 0.0]])
    both = log_likelihood(f, np.array([1, 1]), np.array([3.0, 1.0]))
    assert both == pytest.approx((3 * np.log(0.75) + np.log(0.25)) / 4)
    assert log_likelihood(
        f[:, 1] - f[:, 0], np.array([1, 1]), np.array([3.0, 1.0])
    ) == pytest.approx(both)


def test_grids():
    np.testing.assert_allclose(penalty_grid(None, 2.0, "Cs", 3)[[0, -1]], [0.02, 200])
    assert penalty_grid([3, 1, 1], 2.0, "Cs", 3).tolist() == [1, 3]
    for wrong in ([0.0, 1.0], [], "no", [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="Cs must be"):
            KernelSVC("linear", cv=3, Cs=wrong).fit(X, Y)


def test_what_is_refused():
    with pytest.raises(ValueError, match="loo"):
        KernelSVC("linear", cv="loo").fit(X, Y)
    with pytest.raises(ValueError, match="cv must be"):
        KernelLogistic("linear", cv=1).fit(X, Y)
    with pytest.raises(AttributeError, match="cv"):
        KernelSVC("linear").fit(X, Y).path_  # noqa: B018
    assert KernelSVC("linear", C=3).fit(X, Y).C_ == 3


def test_maps_and_matrices_have_paths_too():
    y = (Y > 0).astype(int)
    m = KernelSVC(kernels.Gaussian(), via=methods.Fourier(32), cv=3, Cs=GRID, random_state=0).fit(
        X, y
    )
    assert m.path_.scores.shape == (3, 3)
    K = (X @ X.T).toarray()
    given = KernelSVC("precomputed", cv=FOLDS, Cs=GRID).fit(K, y)
    rows = KernelSVC("linear", via="exact", cv=FOLDS, Cs=GRID).fit(X, y)
    np.testing.assert_allclose(given.path_.scores, rows.path_.scores, atol=0.05)
    codes = np.round(X.toarray()[:, :3], 1)
    hot = KernelLogistic(lift=OneHotEncoder(handle_unknown="ignore"), cv=3, alphas=GRID).fit(
        codes, y
    )
    assert hot.plan_.way == "sparse newton"
    sure = KernelSVC("linear", cv=3, Cs=GRID, probability=True).fit(X, y)
    assert sure.predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelSVC("linear", Cs=[0.1, 1.0]), "Cs are chosen from by folds; give cv too"),
        (KernelLogistic("linear", alphas=[0.1, 1.0]), "alphas are chosen from by folds"),
        (KernelSVC("linear", cv=500), "at most the number of rows, 20, got 500"),
        (KernelLogistic("linear", cv=500), "at most the number of rows, 20, got 500"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(model, match):
    A = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=match):
        model.fit(A, A[:, 0] > 0)
