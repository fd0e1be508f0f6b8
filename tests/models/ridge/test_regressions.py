"""Ridge regression: what once went wrong, or was accepted in silence."""
import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Gaussian
from mercer.lifts import Identity
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelLogistic, KernelRidge, Perceptron
from mercer.models.ridge.landmarks import falkon
from mercer.models.ridge.problem import RidgeSettings
from mercer.stats import Moments, row_hashes

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = X[:, 0] + np.sin(X[:, 1])
NAN = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_a_preconditioner_in_float32_keeps_its_sign():
    A = rng.uniform(0, 6, size=(3200, 1))
    m = KernelRidge(alpha=1e-3).fit(A, np.sin(A[:, 0]) + 0.1 * rng.normal(size=3200))
    assert m.plan_.way == "conjugate gradients"
    assert m.residual_ <= 1e-6
    assert np.abs(m.predict(A) - np.sin(A[:, 0])).max() < 0.1


def test_models_that_go_through_the_rows_do_not_look_perfect_without_them():
    A = rng.normal(size=(30, 8))
    t = A[:, 0] + A[:, 1] ** 2
    options = dict(kernel=Gaussian(1.0), alpha=1e-6, via=Fourier(600), random_state=0)
    m = KernelRidge(**options, cv="loo").fit(A, t)
    for a, score in zip(RidgeSettings.of(m).grid()[::6], m.loo_scores_[::6], strict=True):
        one = KernelRidge(Gaussian(1.0), a, via=Fourier(600), random_state=0).fit(A, t)
        rest = [KernelRidge(lift=one.lift_.map_, alpha=a).fit(np.delete(A, i, 0), np.delete(t, i)).predict(A[[i]])[0] for i in range(30)]
        assert score == pytest.approx(1 - np.mean((t - rest) ** 2) / t.var(), abs=1e-4)
    low, high = KernelRidge(**(options | dict(alpha=1e-12))).fit(A, t).predict_interval(A, 0.8, "jackknife+")
    assert np.median(high - low) > 1


@pytest.mark.parametrize("via", ["exact", Fourier(20), Fourier(200)], ids=repr)
@pytest.mark.parametrize("rows", [60, 7])
def test_a_column_of_y_gives_the_intervals_of_a_vector(via, rows):
    flat, column = (KernelRidge(Gaussian(), 0.1, via, random_state=0).fit(X, t) for t in (y, y[:, None]))
    for method in ("split", "jackknife+"):
        np.testing.assert_allclose(column.predict_interval(X[:rows], method=method), flat.predict_interval(X[:rows], method=method))


def bad_calls():
    stream = lambda **o: KernelRidge(via=Fourier(16), random_state=0, **o)
    return {
        "exact model, y too large": (KernelRidge().fit(X, y), lambda m: m.partial_fit(X[:5], np.full(5, 1e200))),
        "first batch": (stream(), lambda m: m.partial_fit(X[:5], 1e200 * y[:5])),
        "merge with a bad alpha": (stream().fit(X, y).set_params(alpha=-1), lambda m: m.merge(stream().fit(X, y))),
        "other folds": (stream(cv=2).fit(X, y).set_params(cv=3), lambda m: m.partial_fit(X, y)),
        "other outputs": (stream().fit(X, y), lambda m: m.forget(X, np.column_stack([y, y]))),
        "refit with a bad alpha": (KernelRidge().fit(X, y).set_params(alpha=-1), lambda m: m.fit(X, y)),
        "one class": (KernelLogistic().fit(X, y > 0), lambda m: m.fit(X, np.zeros(60))),
        "comparator": (Perceptron(comparator=[1.0]), lambda m: m.partial_fit(X, y > 0)),
        "new classes": (Perceptron().fit(X, y > 0), lambda m: m.partial_fit(X[:3], [0, 1, 2])),
        "other classes": (Perceptron().partial_fit(X, y > 0), lambda m: m.partial_fit(X, y > 0, classes=[0, 1, 2])),
    }


@NAN
@pytest.mark.parametrize("name", bad_calls())
def test_a_refused_call_leaves_the_model_as_it_was(name):
    model, call = bad_calls()[name]
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"."):
        call(model)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is v for k, v in before.items())


def test_streams_solve_when_asked():
    m = KernelRidge(via=Fourier(16), cv=5, random_state=0).partial_fit(X[:1], y[:1])  # one row has no folds yet
    with pytest.raises(ValueError, match="fewer than two folds have rows"):
        _ = m.alpha_
    m.partial_fit(X, y)
    assert m.score(X, y) > 0.5
    assert m.plan_.settings["rows"] == 61


@pytest.mark.parametrize("order", [1, -1])
def test_a_model_does_not_forget_all_that_counts(order):
    m = KernelRidge(via=Fourier(64), random_state=0).fit(X, y, np.r_[np.ones(30), np.zeros(30)])
    with pytest.raises(ValueError, match="cannot forget"):
        m.forget(X[:30][::order], y[:30][::order])


@pytest.mark.parametrize("size", [1e-300, 1e-165, 1e155, 1e300])
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_y_of_any_size(size, via):
    right = KernelRidge(alpha=0.1, via=via).fit(X, y).predict(X)
    np.testing.assert_allclose(KernelRidge(alpha=0.1, via=via).fit(X, size * y).predict(X) / size, right, rtol=1e-6)


@NAN
def test_rows_too_large_are_refused_and_tiny_ones_fitted():
    with pytest.raises(ValueError, match="is not a finite number"):
        KernelRidge("linear", via="exact").fit(1e200 * X, y)
    with pytest.raises(ValueError, match="too large for sums"):
        KernelLogistic(lift=Identity()).fit(1e200 * X, y > 0)
    for size in (1e-155, 1e150):
        assert KernelRidge(alpha=0.1).fit(size * X, y).score(size * X, y) == pytest.approx(KernelRidge(alpha=0.1).fit(X, y).score(X, y))


@pytest.mark.parametrize("via", ["exact", Fourier(20)], ids=repr)
def test_the_callers_arrays_are_theirs(via):
    A, t = X.copy(), y.copy()
    m = KernelRidge(via=via, random_state=0).fit(A, t)
    before = m.loo_score_, m.predict(X)
    A *= 3
    t[:] = 0
    assert m.loo_score_ == before[0]
    np.testing.assert_array_equal(m.predict(X), before[1])


@pytest.mark.parametrize("via", ["exact", Fourier(20), Landmarks(10)], ids=repr)
def test_rows_of_weight_zero_are_as_absent(via):
    some = np.r_[np.ones(40), np.zeros(20)]
    a, b = KernelRidge(via=via, random_state=0).fit(X, y, some), KernelRidge(via=via, random_state=0).fit(X[:40], y[:40])
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)
    for method in ("split", "jackknife+"):
        np.testing.assert_allclose(a.predict_interval(X, 0.8, method), b.predict_interval(X, 0.8, method), rtol=1e-9)
    np.testing.assert_allclose(a.loo_predictions_, np.r_[b.loo_predictions_, b.predict(X[40:])], rtol=1e-9)


@pytest.mark.parametrize("via", ["exact", Fourier(20)], ids=repr)
def test_one_row_without_itself_is_unknown(via):
    m = KernelRidge(via=via, random_state=0).fit(X[:1], y[:1])
    assert np.isnan(m.loo_predictions_).all()
    with pytest.raises(ValueError, match="leave-one-out tells nothing"):
        KernelRidge(via=via, cv="loo", random_state=0).fit(X[:1], y[:1])


def test_a_shift_in_float32_is_what_was_subtracted():
    A = (rng.normal(size=(2000, 1)) + 1e6).astype(np.float32)
    t = A[:, 0].astype(np.float64) - 1e6
    m = KernelRidge(lift=Identity(), alpha=1e-9).fit(A, t)
    assert np.abs(m.predict(A.astype(np.float64)) - t).max() < 1e-4


def test_moments_refuse_other_widths_and_take_integers():
    with pytest.raises(ValueError, match="2 columns, but the moments are of 3"):
        Moments.of(np.ones((3, 2)), shift=np.zeros(3))
    assert Moments.of(np.ones((3, 2), int), shift=np.zeros(2)).S[0, 0] == 3


def test_falkon_notices_batches_that_do_not_come_again():
    spent = iter([(X, y, None)])
    with pytest.raises(ValueError, match="other rows than in the first pass"):
        falkon(Gaussian(), X[:20], lambda: spent, alpha=1e-3)


def test_intervals_after_passes():
    m = KernelRidge(lift=Identity(), alpha=0.1, memory_limit=10).fit(X, y)
    assert m.plan_.way == "conjugate gradients"
    right = KernelRidge(lift=Identity(), alpha=0.1).fit(X, y)
    np.testing.assert_allclose(m.predict_interval(X), right.predict_interval(X), atol=1e-4)
    with pytest.raises(ValueError, match="cv='loo' over features needs"):
        KernelRidge(lift=Identity(), cv="loo", memory_limit=10).fit(X, y)


def test_penalties_of_their_own_have_left_out_rows():
    Y = np.column_stack([y, y**2])
    for via in ("exact", Fourier(20), Fourier(200)):
        both = KernelRidge(Gaussian(), [0.1, 10.0], via, random_state=0).fit(X, Y)
        one = KernelRidge(Gaussian(), 10.0, via, random_state=0).fit(X, Y[:, 1])
        np.testing.assert_allclose(both.loo_predictions_[:, 1], one.loo_predictions_, rtol=1e-6)


def test_large_coefficients_keep_their_digits_at_float32_rows():
    A = np.linspace(0, 6, 200)[:, None]
    m = KernelRidge(Gaussian(1.0), 1e-9).fit(A, np.sin(A[:, 0]))
    np.testing.assert_allclose(m.predict(A.astype(np.float32)), np.sin(A[:, 0]), atol=2e-4)


def test_hashes_of_sparse_rows_with_entries_given_twice():
    A = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert row_hashes(A)[0] == row_hashes(A.toarray())[0]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KernelRidge(memory_limit="-4GB").fit(X, y), "memory_limit must be"),
        (lambda: KernelRidge(memory_limit=True).fit(X, y), "memory_limit must be"),
        (lambda: KernelRidge(via=Fourier(0)).fit(X, y), "n_features must be an integer >= 1"),
        (lambda: KernelRidge(via=Landmarks(0)).fit(X, y), "n_landmarks must be an integer >= 1"),
        (lambda: KernelRidge(lift=Identity(), via=Fourier(7)).fit(X, y), "a lift is the feature map itself"),
        (lambda: KernelRidge(tol=-1).fit(X, y), "tol must be a number > 0"),
        (lambda: KernelRidge(alpha="a").fit(X, y), "alpha must be a number >= 0"),
        (lambda: KernelRidge(alpha={}).fit(X, y), "alpha must be a number >= 0"),
        (lambda: KernelRidge(cv=3, alphas=[[1.0]]).fit(X, y), "alphas must be numbers >= 0"),
        (lambda: KernelRidge(via="exact", cv="loo", bandwidths=[]).fit(X, y), "bandwidths must be numbers >= 0"),
        (lambda: KernelRidge().fit(X, y).predict_interval(X, "0.9"), "coverage must be a number"),
        (lambda: KernelRidge(cv=[(np.arange(60), []), ([], np.arange(60))]).fit(X, y), "fewer than two folds"),
        (lambda: KernelRidge(cv="loo").partial_fit(X, y), "cv='loo' needs the rows of one fit"),
        (lambda: KernelLogistic(class_weight={0: np.inf, 1: 1.0}).fit(X, y > 0), "class_weight must be"),
        (lambda: KernelLogistic(class_weight={0: "a"}).fit(X, y > 0), "class_weight must be"),
        (lambda: Perceptron().fit(X, y > 0).mistake_bound(X, y > 0, passes=-1), "passes must be an integer >= 1"),
    ],
)
def test_settings_are_refused_by_name(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_settings_of_other_kinds_are_taken():
    assert KernelRidge(memory_limit=np.int64(10**9)).fit(X, y).score(X, y) > 0.5
    labels = np.where(y > 0, "a", "b")
    KernelLogistic(class_weight={"a": 1.0, "b": 2.0, "c": 3.0}).fit(X, labels)  # as in a fold without c
    with pytest.raises(ValueError, match="class_weight names 'c'"):
        KernelLogistic(class_weight={"a": 1.0, "c": 3.0}).fit(X, labels)


@pytest.mark.parametrize("seed", range(5))
def test_landmarks_near_the_floor_of_rounding(seed):
    Z = np.random.default_rng(seed).normal(size=(500, 2))
    assert KernelRidge(None, 1e-2, "landmarks", random_state=seed).fit(Z, Z[:, 0]).score(Z, Z[:, 0]) > 0.99


@pytest.mark.parametrize("via", ["exact", "iterative", Landmarks(30), Fourier(30)], ids=repr)
def test_the_unit_of_y_does_not_choose_the_penalty(via, monkeypatch):
    monkeypatch.setattr("mercer.models.ridge.problem.MOMENTS", 10)
    t = y + 0.3 * np.random.default_rng(3).normal(size=60)
    model = KernelRidge(Gaussian(), via=via, cv=3, alphas=[1e-3, 0.1, 10.0, 1e3], random_state=0)
    assert len({model.fit(X, s * t).alpha_ for s in (1e-3, 1.0, 1e3)}) == 1


def test_a_constant_y_is_told_without_its_row():
    assert KernelRidge(via="exact").fit(X, np.full(60, 3.0)).loo_score_ in (0.0, 1.0)
