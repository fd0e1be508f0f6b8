"""Folds: who is dealt where, what a fold sees, and the rule of one standard error."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold

from mercer import SparseRegressor
from mercer.inputs import Table
from mercer.models.sparse.folds import FoldLosses, mean_losses, splits
from mercer.models.sparse.problem import WeighedRows

RNG = np.random.default_rng(3)
X = RNG.normal(size=(53, 3))
Y = X[:, 0] + RNG.normal(size=53)


def asked(cv=5, seed=0):
    return SimpleNamespace(cv=cv, seed=seed)


def rows(X=X, y=Y, w=None, classes=0, groups=None):
    return WeighedRows.of(Table(X), y, w, classes, groups)


def test_every_row_is_left_out_once_and_folds_are_alike():
    found = splits(asked(), rows())
    assert sorted(np.concatenate([test for _, test in found]).tolist()) == list(range(53))
    assert all(len(np.intersect1d(a, b)) == 0 and len(a) + len(b) == 53 for a, b in found)
    assert {len(test) for _, test in found} <= {9, 10, 11, 12}
    assert np.ptp([Y[test].mean() for _, test in found]) < 0.5 * Y.std()


def test_folds_know_nothing_of_units_order_or_columns():
    at = RNG.permutation(53)
    first = splits(asked(), rows())
    for other, y, back in (
        (X[:, ::-1].copy(), Y, np.arange(53)),
        (X * [1e9, 3.0, 1e-5], Y, np.arange(53)),
        (X[at], Y[at], at),
    ):
        found = splits(asked(), rows(other, y))
        for (_, a), (_, b) in zip(first, found, strict=True):
            assert set(a.tolist()) == set(back[b].tolist())


def test_equal_rows_are_on_one_side():
    Z, y = np.vstack([X[:20]] * 3), np.tile(Y[:20], 3)
    for train, test in splits(asked(), rows(Z, y)):
        assert not {i % 20 for i in train.tolist()} & {i % 20 for i in test.tolist()}


def test_equal_texts_are_on_one_side():
    texts = [f"text {i % 9}" for i in range(45)]
    p = WeighedRows.of(Table(texts), np.arange(45) % 3, None, 3, None)
    for train, test in splits(asked(3), p):
        assert not {i % 9 for i in train.tolist()} & {i % 9 for i in test.tolist()}


def test_groups_are_on_one_side():
    groups = RNG.integers(7, size=53)
    found = splits(asked(), rows(groups=groups))
    assert len(found) == 5
    for train, test in found:
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="groups has one label only"):
        splits(asked(), rows(groups=np.zeros(53)))
    with pytest.raises(
        ValueError, match=r"groups must be one label a row, \(53,\), got shape \(3,\)"
    ):
        rows(groups=[1, 2, 3])


def test_classes_are_in_every_fold_and_a_lone_one_always_fitted():
    y = np.r_[np.zeros(30, int), np.ones(22, int), 2]
    found = splits(asked(), rows(y=y, classes=3))
    for train, test in found:
        assert set(y[train]) == {0, 1, 2}
        assert set(y[test]) == {0, 1}


def test_positions_are_those_of_all_rows_also_where_some_have_no_weight():
    w = np.ones(53)
    w[[0, 7]] = 0
    p = rows(w=w)
    given = list(KFold(4).split(X))
    for (a, b), (train, test) in zip(splits(asked(given), p), given, strict=True):
        assert p.y[a].tolist() == Y[np.setdiff1d(train, [0, 7])].tolist()
        assert p.y[b].tolist() == Y[np.setdiff1d(test, [0, 7])].tolist()
    assert len(splits(asked(KFold(4)), p)) == 4
    with pytest.raises(ValueError, match="two splits or more"):
        splits(asked(given[:1]), p)
    for cv in (1, 0, True, "loo", None, 2.5):
        with pytest.raises(ValueError, match="cv must be a number of folds >= 2"):
            splits(asked(cv), p)


class Witness(TransformerMixin, BaseEstimator):
    """The columns, and a list of the rows that it was fitted to."""

    seen: list = []

    def fit(self, X, y=None):
        Witness.seen.append(X[:, 0].copy())
        self.fitted_ = True
        return self

    def transform(self, X):
        return X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "fitted_")


def test_no_fold_sees_the_rows_it_is_asked_about():
    Witness.seen = []
    given = list(KFold(3).split(X))
    SparseRegressor(Witness(), cv=given, n_alphas=5).fit(X, Y)
    every, *folds = Witness.seen
    assert every.tolist() == X[:, 0].tolist()
    for (train, _), seen in zip(given, folds, strict=True):
        assert seen.tolist() == X[train, 0].tolist()


def test_values_of_a_fold_left_out_change_nothing_of_its_model():
    """Its scales and knots are those of the other rows: what is left out may be anything."""
    given = list(KFold(3).split(X))
    wild = X.copy()
    wild[given[0][1]] *= 1000
    quiet = SparseRegressor(cv=given, n_alphas=4, alpha="cv").fit(X, Y)
    loud = SparseRegressor(cv=[given[0], given[0]], n_alphas=4).fit(X, Y)
    assert loud.cv_losses_[:, 0] == pytest.approx(quiet.cv_losses_[:, 0])
    # the grid of penalties is that of all rows, so the first fold alone is compared
    assert np.isfinite(SparseRegressor(cv=given, n_alphas=4).fit(wild, Y).cv_losses_).all()


def test_mean_losses_are_squares_and_logarithms():
    f = RNG.normal(size=(53, 2, 1))
    p = rows(w=RNG.random(53))
    direct = [np.average((f[:, i, 0] - Y) ** 2, weights=p.w) for i in range(2)]
    np.testing.assert_allclose(mean_losses(p, f), direct)
    y = (Y > 0).astype(int)
    two = mean_losses(rows(y=y, classes=2), f)
    both = np.concatenate([np.zeros_like(f), f], axis=2)
    three = mean_losses(rows(y=y, classes=3), np.concatenate([both, f - 1e9], axis=2))
    np.testing.assert_allclose(two, three)


def test_one_standard_error_is_of_differences_fold_by_fold():
    """Folds that differ by far more than penalties do say nothing about the penalties."""
    level = np.array([10.0, 0.0, 100.0, 3.0, 50.0])
    by_penalty = np.array([[1.0, 1.1, 0.9, 1.0, 1.05], [0.2, 0.1, 0.3, 0.2, 0.2], [0.0] * 5])
    losses = FoldLosses(level + by_penalty)
    assert losses.best == losses.chosen("min") == losses.chosen("1se") == 2
    close = FoldLosses(
        level + np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [0.3, -0.2, 0.1, -0.2, 0.1], [0.0] * 5])
    )
    assert (close.best, close.chosen("1se")) == (2, 1)
    np.testing.assert_allclose(
        close.errors[1], np.std([0.3, -0.2, 0.1, -0.2, 0.1], ddof=1) / np.sqrt(5)
    )


def test_more_folds_than_rows_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    weight = np.r_[np.zeros(10), np.ones(20)]
    with pytest.raises(ValueError, match=r"^cv=100 folds need as many rows .* there are 30;"):
        SparseRegressor(cv=100).fit(X, y)
    with pytest.raises(ValueError, match=r"^cv=21 folds need as many rows .* there are 20;"):
        SparseRegressor(cv=21).fit(X, y, weight)
    assert SparseRegressor(cv=20, n_alphas=3).fit(X, y, weight).cv_losses_.shape == (3, 20)
    assert SparseRegressor(n_alphas=3).fit(X[:3], y[:3]).cv_losses_.shape == (3, 3)
