"""GaussianProcessClassifier: Laplace's approximation as scikit-learn has it, calibrated, exactly
and over landmarks."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import check_estimator

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Polynomial
from mercer.kernels.params import substitute
from mercer.lifts import Monomials
from mercer.methods import Landmarks
from mercer.models.gp.classifier import GaussianProcessClassifier as GPC
from mercer.models.gp.laplace import laplace_likelihood, probability
from mercer.models.gp.laplace_posterior import LaplaceWeights
from mercer.store import load, save

TWINS = {
    "gaussian": (Gaussian(0.7), sk.RBF(0.7)),
    "matern": (2.0 * Matern((0.5, 2.0), nu=1.5), 2.0 * sk.Matern((0.5, 2.0), nu=1.5)),
}


def data(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    p = 1 / (1 + np.exp(-4 * np.sin(3 * X[:, 0]) - 2 * X[:, 1]))
    return X, (rng.uniform(size=n) < p).astype(int), p


@pytest.mark.parametrize(
    "model",
    [
        GPC(Gaussian(0.7), fixed=True),
        pytest.param(
            GPC(Gaussian(0.7), Landmarks(10), fixed=True, random_state=0), marks=pytest.mark.long
        ),
    ],
    ids=["exact", "landmarks"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("name", TWINS)
def test_twins(name):
    ours, theirs = TWINS[name]
    (X, y, _), (Z, _, _) = data(), data(20, 1)
    m, p = (
        GPC(ours, fixed=True).fit(X, y),
        Theirs(theirs, optimizer=None, max_iter_predict=500).fit(X, y),
    )
    assert m.log_marginal_likelihood_ == pytest.approx(p.log_marginal_likelihood_value_, abs=1e-4)
    np.testing.assert_allclose(
        m.predict_proba(Z), p.predict_proba(Z), atol=2e-3
    )  # theirs is an approximation of the integral
    np.testing.assert_array_equal(m.predict(Z), p.predict(Z))
    assert m.kernel_ == ours


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_the_gradient_is_that_of_the_evidence(scale):
    X, y, _ = data(60)
    Y, k = 2.0 * y[:, None] - 1, Gaussian((0.6, 1.1)) + 0.3 * Matern(0.9)

    def at(path, t):
        moved = substitute(k, lambda p, v: v * np.exp(t) if p == path else v)
        return laplace_likelihood(
            moved, Table(X), Y, 1.0, scale * np.exp(t * (path == "scale"))
        ).log

    wanted = [(at(p, 1e-4) - at(p, -1e-4)) / 2e-4 for p in (*k.parameters(), "noise", "scale")]
    np.testing.assert_allclose(
        laplace_likelihood(k, Table(X), Y, 1.0, scale).gradient, wanted, rtol=1e-3, atol=1e-4
    )


def test_the_evidence_is_not_below_scikit_learns():
    X, y, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = Theirs(1.0 * sk.RBF((1.0, 1.0), (1e-3, 1e4)), random_state=0).fit(X, y)
    assert (
        GPC(Gaussian((1.0, 1.0))).fit(X, y).log_marginal_likelihood_
        >= p.log_marginal_likelihood_value_ - 0.05
    )


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e9])
def test_separable_classes_at_any_scale(scale):
    x = np.linspace(-2, 2, 41)[:, None]
    y = (x[:, 0] > 0.03).astype(int)
    m = GPC(scale * Gaussian(1.0), fixed=True).fit(x, y)
    assert m.score(x, y) == 1.0
    np.testing.assert_array_equal(m.predict_proba(x)[:, 1] > 0.5, m.decision_function(x) > 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("via", ["exact", Landmarks(10)], ids=["exact", "landmarks"])
def test_decisions_are_symmetric_and_keep_their_order(via, dtype):
    """Where probabilities are 0 or 1 to rounding too."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(300, 1)).astype(dtype)
    y = (rng.uniform(size=300) < 1 / (1 + np.exp(-12 * x[:, 0]))).astype(int)
    m, swapped = (
        GPC(100.0 * Linear(), via, fixed=True, random_state=0).fit(x, t) for t in (y, 1 - y)
    )
    Z = np.linspace(-6, 6, 25, dtype=dtype)[:, None]
    d, P = m.decision_function(Z), m.predict_proba(Z)
    assert d.dtype == P.dtype == dtype
    assert d.max() > 20  # 1 - p is then below 1e-8
    np.testing.assert_allclose(d, -swapped.decision_function(Z), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(d, -d[::-1], rtol=1e-3, atol=1e-3)
    assert (np.diff(d) > 0).all()
    some = (P > 1e-3).all(1)
    np.testing.assert_allclose(d[some], np.log(P[some, 1] / P[some, 0]), rtol=1e-3, atol=1e-3)


def test_decisions_of_several_classes_are_log_odds():
    X, y = load_iris(return_X_y=True)
    m = GPC(Gaussian(2.0), fixed=True).fit(X[::2], y[::2])
    P = m.predict_proba(X)
    np.testing.assert_allclose(m.decision_function(X), np.log(P / (1 - P)), rtol=1e-6)
    np.testing.assert_array_equal(m.decision_function(X).argmax(1), m.predict(X))


# what is said of hyper-parameters
@pytest.mark.filterwarnings("ignore:the likelihood grows beyond the bounds")
def test_fixed_is_the_regressors():
    X, y, _ = data(60)
    assert GPC(2.0 * Gaussian(0.7), fixed=("factor",)).fit(X, y).kernel_.factor == 2.0
    assert GPC(2.0 * Gaussian(0.7), fixed=True).fit(X, y).kernel_ == 2.0 * Gaussian(0.7)
    assert isinstance(GPC(Gaussian(0.7), fixed=("scale",)).fit(X, y).kernel_, Gaussian)
    assert GPC(Gaussian(0.7), fixed="all").fit(X, y).kernel_.kernel == Gaussian(0.7)
    free, none = (GPC(Gaussian(0.7), fixed=f).fit(X, y).kernel_ for f in ((), None))
    assert free == none != Gaussian(0.7)
    assert (
        3 <= GPC(Gaussian(0.7), bounds={"scale": (3.0, 3.5)}).fit(X, y).kernel_.factor <= 3.5 + 1e-9
    )


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y, _ = data(60)
    m = GPC(Gaussian(0.7), fixed=True).fit(X, y)
    before, names = m.predict_proba(X), sorted(vars(m))
    with pytest.raises(ValueError, match="not a parameter"):
        m.set_params(fixed=("width",)).fit(X[:, :1], np.where(y == 1, "a", "b"))
    assert sorted(vars(m)) == names
    np.testing.assert_array_equal(m.predict_proba(X), before)


def test_weights_are_the_process():
    """On an exact lift, Laplace on the weights and on the values of f are one."""
    (X, y, _), (Z, _, _) = data(60), data(10, 1)
    phi = Monomials(2, weights="kernel").fit(X)
    w = LaplaceWeights.at_mode(phi.transform(X), 2.0 * y - 1, 1.0)
    m = GPC(Polynomial(2), fixed=True).fit(X, y)
    found = probability(*w.latent(phi.transform(Z), np.zeros(10)))
    np.testing.assert_allclose(found, m.predict_proba(Z)[:, 1], atol=1e-5)
    assert w.log_marginal_likelihood == pytest.approx(m.log_marginal_likelihood_, abs=1e-4)


@pytest.mark.parametrize("via", ["exact", Landmarks(60)], ids=["exact", "landmarks"])
def test_calibrated(via):
    """The mean of p over bins of p, against the share of ones in them, over seeds."""
    gaps, likelihood, best = [], [], []
    for seed in range(3):
        X, y, _ = data(200, seed)
        Z, z, p = data(2000, 100 + seed)
        q = GPC(Gaussian((0.7, 0.7)), via, random_state=0).fit(X, y).predict_proba(Z)[:, 1]
        bins = np.digitize(q, [0.2, 0.4, 0.6, 0.8])
        gaps.append(sum(abs(q[bins == b].sum() - z[bins == b].sum()) for b in range(5)) / len(z))
        likelihood.append(np.mean(np.log(np.where(z == 1, q, 1 - q))))
        best.append(np.mean(np.log(np.where(z == 1, p, 1 - p))))
    assert np.mean(gaps) < 0.06
    assert np.mean(likelihood) > np.mean(best) - 0.05


def test_far_away_nothing_is_known():
    X, y, _ = data()
    for via in ("exact", Landmarks(40)):
        P = GPC(Gaussian(0.5), via, random_state=0).fit(X, y).predict_proba(np.full((1, 2), 60.0))
        np.testing.assert_allclose(P, 0.5, atol=1e-6)


def test_three_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    m = GPC(Gaussian(2.0), n_restarts=0).fit(X[::2], names[::2])
    P = m.predict_proba(X[1::2])
    np.testing.assert_allclose(P.sum(1), 1)
    assert m.score(X[1::2], names[1::2]) > 0.93
    assert len(m.kernel_) == 3
    save(m, tmp_path / "m.mercer")
    np.testing.assert_allclose(
        load(tmp_path / "m.mercer").predict_proba(X), m.predict_proba(X), atol=1e-9
    )


def test_one_sentence_errors():
    X, y, _ = data(30)
    for options, match in (
        (dict(via="features"), "via must be"),
        (dict(via="exact", memory_limit=100), "beyond memory_limit"),
        (dict(n_restarts=-1), "n_restarts must be"),
        (dict(n_restarts="a"), "n_restarts must be"),
        (dict(fixed=3), "fixed must be"),
        (dict(bounds={"noise": (1, 2)}), "no 'noise'"),
        (dict(fixed=("noise",)), "no 'noise'"),
        (dict(fixed=True), "give a kernel"),
        (dict(tied=("a", "b")), "groups of two"),
    ):
        with pytest.raises(ValueError, match=match):
            GPC(**options).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        GPC().fit(X, np.ones(30))


def test_a_failed_fit_leaves_the_old_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    m = GPC(random_state=0).fit(X, X[:, 0] > 0)
    before = m.predict_proba(X)
    with pytest.raises(ValueError, match="one class only"):
        m.fit(X[:, :1], np.zeros(40))
    np.testing.assert_array_equal(m.predict_proba(X), before)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [(np.zeros(4, int), "0"), (np.array(["a"] * 4), "'a'"), (np.ones(4, bool), "True")],
)
def test_the_only_class_is_named_without_its_type(labels, shown):
    with pytest.raises(ValueError, match=rf"one class only \({shown}\)"):
        GPC().fit(np.arange(8.0).reshape(4, 2), labels)
