"""Working sets: the minimum of each loss, and a gap that bounds what an end lacks."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax

from mercer.lifts import Monomials
from mercer.models.sparse import working_set
from mercer.models.sparse.gram import Quadratic
from mercer.models.sparse.losses import BinaryLoss, SoftmaxLoss, SquaredLoss
from mercer.models.sparse.stored import LiftedFeatures, StoredDictionary
from mercer.models.sparse.working_set import WorkingSet
from tests.peers import sparse_logistic

RNG = np.random.default_rng(2)
N, P = 120, 300
X = RNG.normal(size=(N, P)) * (RNG.random((N, P)) < 0.5)
F = X[:, :6] @ np.array([2.0, -2.0, 1.0, 1.0, -1.0, 0.5]) + 0.5 * RNG.normal(size=N)
W = RNG.integers(1, 4, size=N) / 1.0
LOSSES = {
    "squared": lambda w: SquaredLoss(F[:, None], w),
    "binary": lambda w: BinaryLoss((F > 0.3)[:, None].astype(float), w),
    "softmax": lambda w: SoftmaxLoss(np.eye(3)[np.digitize(F, [-0.5, 1.0])], w),
}


@pytest.fixture(autouse=True)
def small_sets(monkeypatch):
    """As many features as here would all be members."""
    monkeypatch.setattr(working_set, "FEW", 0)


def dictionary(A, w=None, unit=False):
    n, p = A.shape
    w = np.full(n, 1 / n) if w is None else w / w.sum()
    names = tuple(f"c{j}" for j in range(p))
    return StoredDictionary(A, w, LiftedFeatures(None, p, names), unit)


def walked(X, loss, ratio=1.0, m=12, eps=0.05, tol=1e-9):
    sets = WorkingSet(X, loss, tol)
    alphas = sets.largest / ratio * np.geomspace(1, eps, m)
    after = [*alphas[1:].tolist(), None]
    return alphas, [sets.at(a, ratio, b) for a, b in zip(alphas, after, strict=True)]


def full(ended, p):
    B = np.zeros((len(ended.coef), p))
    B[:, ended.ids] = ended.coef
    return B


def objective(loss, A, B, b0, alpha, ratio):
    smooth = loss.at(A @ B.T + b0)[0] + alpha * (1 - ratio) / 2 * np.square(B).sum()
    return smooth + alpha * ratio * np.abs(B).sum()


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_every_condition_of_the_minimum_holds(name, ratio):
    w = W / W.sum()
    loss = LOSSES[name](w)
    alphas, ends = walked(dictionary(X, W), loss, ratio, tol=1e-12)
    for a, e in zip(alphas, ends, strict=True):
        B = full(e, P)
        R = loss.at(X @ B.T + e.intercept)[1]
        assert np.abs(w @ R).max() < 1e-10
        q = ((X - w @ X).T @ (w[:, None] * R)).T - a * (1 - ratio) * B
        l1 = a * ratio
        assert np.abs(q).max() <= l1 * (1 + 1e-5)
        assert np.abs(q - l1 * np.sign(B))[B != 0].max(initial=0.0) <= 1e-5 * l1
        assert e.gap <= 1e-12
    assert len(ends[-1].ids) > 10


@pytest.mark.parametrize("name", ["binary", "softmax"])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_the_objective_stops_no_step_that_closes_the_gap(name, seed):
    made, noise = LOSSES[name](np.full(N, 1 / N)), np.random.default_rng(seed)

    class Rounded(type(made)):
        def at(self, f):
            value, R = super().at(f)
            return value * (1 + 1e-14 * noise.uniform(-1, 1)), R

    _, ends = walked(dictionary(X), Rounded(made.Y, made.w), m=6, tol=1e-12)
    assert max(e.gap for e in ends) <= 1e-12


@pytest.mark.parametrize("name", LOSSES)
def test_gaps_bound_what_an_end_lacks(name):
    w = np.full(N, 1 / N)
    loss = LOSSES[name](w)
    alphas, rough = walked(dictionary(X), loss, tol=1e-3)
    _, best = walked(dictionary(X), loss, tol=1e-13)
    null = best[0]
    scale = objective(loss, X, full(null, P), null.intercept, 0.0, 1.0)
    seen = 0.0
    for a, e, b in zip(alphas, rough, best, strict=True):
        there = objective(loss, X, full(e, P), e.intercept, a, 1.0)
        lacks = (there - objective(loss, X, full(b, P), b.intercept, a, 1.0)) / scale
        assert -1e-12 <= lacks <= e.gap + 1e-12
        assert e.gap <= 1e-3
        seen = max(seen, lacks)
    assert seen > 1e-9 or name == "squared"  # whose steps are exact


@pytest.mark.parametrize("name", LOSSES)
def test_csr_is_centred_without_being_made_dense(name):
    loss = LOSSES[name](np.full(N, 1 / N))
    _, dense = walked(dictionary(X, unit=True), loss, m=6, tol=1e-11)
    _, sparse = walked(dictionary(sp.csr_array(X), unit=True), loss, m=6, tol=1e-11)
    for a, b in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(full(a, P), full(b, P), atol=1e-5)
        np.testing.assert_allclose(a.intercept, b.intercept, atol=1e-5)


def test_squared_loss_is_that_of_the_gram_matrix():
    D = dictionary(X, W, unit=True)
    alphas, ends = walked(D, LOSSES["squared"](W / W.sum()), 0.7)
    quadratic = Quadratic.of(D, F)
    B, gaps, _ = quadratic.path(alphas, 0.7)
    for e, b in zip(ends, B, strict=True):
        np.testing.assert_allclose(full(e, P)[0, quadratic.ids], b, atol=1e-9)
    assert gaps.max() < 1e-12


@pytest.mark.parametrize("name", ["binary", "softmax"])
def test_the_objective_is_that_of_scikit_learn(name):
    A, w = X[:, :25], np.full(N, 1 / N)
    loss = LOSSES[name](w)
    alphas, ends = walked(dictionary(A), loss, m=5, tol=1e-12)
    a, e = alphas[-1], ends[-1]
    y = loss.Y[:, 0] if name == "binary" else loss.Y.argmax(1)
    peer = sparse_logistic(C=1 / (a * N), tol=1e-10, random_state=0).fit(A, y)
    theirs = objective(loss, A, peer.coef_, peer.intercept_, a, 1.0)
    assert objective(loss, A, full(e, 25), e.intercept, a, 1.0) == pytest.approx(theirs, rel=1e-8)


def test_weights_are_rows_that_come_so_often():
    rows = np.repeat(np.arange(N), W.astype(int))
    y = (F > 0.3)[:, None].astype(float)
    _, weighed = walked(dictionary(X, W), BinaryLoss(y, W / W.sum()), m=5, tol=1e-12)
    n = len(rows)
    often = BinaryLoss(y[rows], np.full(n, 1 / n))
    _, repeated = walked(dictionary(X[rows]), often, m=5, tol=1e-12)
    for a, b in zip(weighed, repeated, strict=True):
        np.testing.assert_allclose(full(a, P), full(b, P), atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_all_features_of_degree_four_by_brute_force(name):
    Z = RNG.uniform(-1, 1, size=(N, 8))
    A = Monomials(4, include_bias=False).fit_transform(Z)
    assert A.shape[1] == 494
    loss = LOSSES[name](np.full(N, 1 / N))
    alphas, ends = walked(dictionary(A), loss, m=4, eps=0.2, tol=1e-12)
    for a, e in zip(alphas, ends, strict=True):
        R = loss.at(A @ full(e, 494).T + e.intercept)[1]
        q = (A - A.mean(0)).T @ R / N
        assert np.abs(q).max() <= a * (1 + 1e-6)


def test_many_classes_are_stepped_in_groups():
    K = 9
    y = RNG.integers(K, size=N)
    loss = SoftmaxLoss(np.eye(K)[y], np.full(N, 1 / N))
    alphas, ends = walked(dictionary(X[:, :40]), loss, m=4, eps=0.5, tol=1e-7)
    assert max(e.gap for e in ends) <= 1e-7
    f = X[:, :40] @ full(ends[-1], 40).T + ends[-1].intercept
    assert -np.mean(log_softmax(f, axis=1)[np.arange(N), y]) < np.log(K)
    assert alphas[0] > alphas[-1]


def test_classes_that_can_be_parted_stay_finite():
    y = (X[:, 0] > 0).astype(float)[:, None]
    A = np.column_stack([np.where(y[:, 0] > 0, 1.0, -1.0), X[:, 1:9]])
    _, ends = walked(dictionary(A), BinaryLoss(y, np.full(N, 1 / N)), m=8, eps=1e-3, tol=1e-8)
    assert max(e.gap for e in ends) <= 1e-8
    assert np.isfinite(ends[-1].coef).all()
