"""GaussianProcessRegressor: scikit-learn's contract, y of any size, plans, files, and sentences for
what cannot be asked."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Constant, Gaussian, Laplace, Linear
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.store import load, save
from tests.models.gp.examples import data


@pytest.mark.parametrize(
    "model",
    [
        GP(Gaussian(0.7), fixed="all", n_restarts=0),
        GP(Gaussian(0.7), 0.1),
        pytest.param(GP(Gaussian(0.7), 0.1, "iterative"), marks=pytest.mark.long),
        pytest.param(GP(Gaussian(0.7), via="landmarks", fixed="all"), marks=pytest.mark.long),
    ],
    ids=["learnt", "exact", "iterative", "landmarks"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.long
def test_scikit_learn_contract_with_all_learnt():
    check_estimator(GP(), on_skip=None)


@pytest.mark.parametrize("size", [1e12, 1e-12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_y_of_any_size(size, dtype):
    X, y = data()
    one, m = (GP(random_state=0).fit(X.astype(dtype), s * y) for s in (1.0, size))
    for a, b in zip(
        m.predict(X.astype(dtype), return_std=True),
        one.predict(X.astype(dtype), return_std=True),
        strict=True,
    ):
        assert a.dtype == dtype
        np.testing.assert_allclose(a / size, b, rtol=1e-3, atol=1e-3)
    assert m.noise_ == pytest.approx(size**2 * one.noise_, rel=1e-2)
    assert m.log_marginal_likelihood_ == pytest.approx(
        one.log_marginal_likelihood_ - 60 * np.log(size), abs=1e-2
    )


@pytest.mark.parametrize("value", [0.0, 3.0, 1e12])
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize("via", ["exact", "iterative", "landmarks"])
def test_constant_y_and_one_row(value, n, via):
    """They tell neither noise nor scale, so that nothing is certain, the less the fewer rows there
    are."""
    X = data(n)[0]
    m = GP(via=via).fit(X, np.full(n, value))
    mean, std = m.predict(X, return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-6)
    assert np.isfinite(std).all()
    assert np.isfinite(m.log_marginal_likelihood_)
    far = m.predict(np.full((1, 2), 1e3), return_std=True)[1][0]
    assert far == pytest.approx((abs(value) or 1.0) * np.sqrt(2 / (n + 1)), rel=1e-6)
    assert far > std.max()


@pytest.mark.parametrize("options", [{}, {"noise": 0.1}, {"noise": 0.1, "prior_mean": 3.0}])
@pytest.mark.parametrize("via", ["exact", "landmarks"])
def test_y_whose_square_overflows_is_refused(via, options):
    X, y = data(20)
    with pytest.raises(ValueError, match="scale y first"):
        GP(Gaussian(0.7), via=via, **options).fit(X, 1e160 * y)


# plans and files
def test_the_plan_says_which_way():
    X, y = data(60)
    assert GP(Gaussian(), 0.1).fit(X, y).plan_.way == "exact"
    few = GP(Gaussian(3.0), 0.1, memory_limit=20_000, random_state=0).fit(X, y)
    assert few.plan_.way == "landmarks"
    assert few.plan_.rejected[0][0] == "exact"
    assert (
        GP(Gaussian(), 0.1, memory_limit=20_000).fit(X, np.column_stack([y, y])).plan_.way
        == "iterative"
    )
    with pytest.raises(ValueError, match="beyond memory_limit"):
        GP(Gaussian(), 0.1, "exact", memory_limit=20_000).fit(X, y)
    with pytest.raises(ValueError, match="via must be"):
        GP(via="guess").fit(X, y)


def test_a_column_of_y_is_answered_by_a_column(monkeypatch):
    """Whichever way "auto" takes."""
    X, y = data(60)
    exact = GP(Gaussian(0.7), 0.1).fit(X, y[:, None])
    monkeypatch.setattr("mercer.models.gp.problem.MAX_EXACT_ROWS", 50)
    large = GP(Gaussian(0.7), 0.1, random_state=0).fit(X, y[:, None])
    assert (exact.plan_.way, large.plan_.way) == ("exact", "landmarks")
    for a, b in zip(
        exact.predict(X[:3], return_cov=True), large.predict(X[:3], return_cov=True), strict=True
    ):
        assert a.shape == b.shape
    assert (
        large.predict(X).shape
        == large.partial_fit(X[:5], y[:5, None]).predict(X, return_std=True)[1].shape
        == (60, 1)
    )
    with pytest.raises(ValueError, match="fit one model a column"):
        large.partial_fit(X[:5], np.column_stack([y, y])[:5])


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_saved_models(via, tmp_path):
    X, y = data(50)
    m = GP(Gaussian(0.7), via=via, random_state=0).fit(X, y)
    save(m, tmp_path / "m.mercer")
    back = load(tmp_path / "m.mercer")
    for a, b in zip(m.predict(X, return_std=True), back.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert clone(back).fit(X, y).kernel_ == m.kernel_


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(noise=-1.0), "noise must be"),
        (dict(noise=[0.1]), "X has 60 rows"),
        (dict(kernel=Gaussian((1.0,) * 3)), "2 columns"),
        (dict(fixed=("width",)), "not a parameter"),
        (dict(n_restarts=-1), "n_restarts"),
        (dict(n_restarts=True), "n_restarts"),
        (dict(restore_variance="no"), "restore_variance must be True or False"),
        (dict(kernel=Laplace(), tied=[("a", "b")]), "not a parameter"),
    ],
)
def test_one_sentence_errors(options, match):
    with pytest.raises(ValueError, match=match):
        GP(**options).fit(*data())


def test_questions_are_checked():
    X, y = data()
    m = GP(Constant() + Linear(), 0.1).fit(X, y)
    for ask, match in (
        (lambda: m.predict(X, of="z"), "of must be"),
        (lambda: m.predict(X, return_std=True, return_cov=True), "not both"),
        (lambda: m.predict_quantiles(X, [0.0]), "between 0 and 1"),
        (lambda: m.predict_interval(X, 1.0), "between 0 and 1"),
        (lambda: m.merge(m), "do not merge"),
        (lambda: m.forget(X, y), "leave at least one"),
    ):
        with pytest.raises(ValueError, match=match):
            ask()
    with pytest.raises(AttributeError, match="via='exact'"):
        GP(Linear(), 0.1, "features").fit(X, y).loo_predictions_  # noqa: B018


@pytest.mark.parametrize(
    "via", ["exact", "iterative", Landmarks(20)], ids=["exact", "iterative", "landmarks"]
)
def test_a_failed_fit_leaves_the_old_model(via):
    X, y = data(60)
    m = GP(Gaussian(0.6), via=via, n_restarts=0, random_state=0).fit(X, y)
    before = m.predict(X, return_std=True)
    with pytest.raises(ValueError, match="NaN"):
        m.fit(np.full((5, 2), np.nan), y[:5])
    with pytest.raises(ValueError, match="no floating-point number"):
        m.fit(X[:5], 1e160 * y[:5])
    np.testing.assert_array_equal(m.predict(X, return_std=True), before)
