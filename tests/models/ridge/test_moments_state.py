"""Ridge regression by moments: batches that are refused, broken off or taken by a copy change
nothing else."""

import copy
import pickle

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.methods import Fourier
from mercer.stats import Moments

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
y, zy = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), np.cos(Z[:, 1])


def ridge(**options):
    return KernelRidge(Gaussian(1.0), via=Fourier(64), random_state=0, **options)


def test_a_batch_that_is_refused_is_not_kept():
    model = ridge().fit(X, y).set_params(alphas=[-1.0])
    other = ridge().fit(Z, zy)
    for change in (
        lambda: model.partial_fit(Z, zy),
        lambda: model.merge(other),
        lambda: model.forget(X[:5], y[:5]),
    ):
        with pytest.raises(ValueError, match="alphas must be numbers"):
            change()
        assert model.moments_[0].count == 60
    model.set_params(alphas=None).partial_fit(Z, zy)
    np.testing.assert_array_equal(model.predict(X), ridge().fit(X, y).partial_fit(Z, zy).predict(X))


def test_a_copy_that_goes_on_leaves_the_original():
    model = ridge(cv=3).fit(X, y)
    before, held = model.predict(Z), [m.S.copy() for m in model.moments_]
    other = ridge(cv=3).fit(X, y)
    copy.copy(model).partial_fit(Z, zy)
    copy.copy(model).merge(other)
    assert sum(m.count for m in model.moments_) == sum(m.count for m in other.moments_) == 60
    for m, S in zip(model.moments_, held, strict=True):
        np.testing.assert_array_equal(m.S, S)
    np.testing.assert_array_equal(copy.deepcopy(model).predict(Z), before)


def test_a_batch_that_is_broken_off_between_folds_leaves_all_of_them(monkeypatch):
    model, joined, calls = ridge(cv=3).fit(X, y), Moments.joined, []
    held = [(m.count, m.n, m.S.copy()) for m in model.moments_]

    def broken(self, batch):
        calls.append(batch)
        if len(calls) == 2:
            batch.S += self.S  # in the midst of it
            raise KeyboardInterrupt
        return joined(self, batch)

    monkeypatch.setattr(Moments, "joined", broken)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(Z, zy)
    for m, (count, n, S) in zip(model.moments_, held, strict=True):
        assert (m.count, m.n) == (count, n)
        np.testing.assert_array_equal(m.S, S)


def test_what_was_computed_is_not_pickled():
    model = ridge().fit(X, y)
    fresh = len(pickle.dumps(model.solution_))
    model.predict(X)
    assert model.plan_.way == "features"
    assert "weights" in vars(model.solution_)
    assert len(pickle.dumps(model.solution_)) == fresh
    assert "weights" not in vars(pickle.loads(pickle.dumps(model.solution_)))


def test_a_penalty_chosen_by_left_out_rows_ends_with_them():
    model = ridge(cv="loo", alpha=0.3).fit(X, y)
    assert model.alpha_ != 0.3
    assert len(model.loo_scores_) == 25
    model.set_params(cv=None).partial_fit(Z, zy)
    assert model.alpha_ == 0.3
    assert not hasattr(model, "loo_scores_")
    np.testing.assert_array_equal(
        model.predict(Z), ridge(alpha=0.3).fit(X, y).partial_fit(Z, zy).predict(Z)
    )
