"""Learning from some rows and from all: the kernel kept is the better one, and what was said of it
is kept."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mercer.kernels import Gaussian
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from tests.models.gp.examples import data


def plain(k, X, y, Z, noise):
    """The formulas of a GP: posterior mean and covariance of f, log p(y)."""
    K = k(X) + np.diag(np.broadcast_to(noise, len(X)))
    A = np.linalg.solve(K, k(X, Z)).T
    return A @ y, k(Z) - A @ k(X, Z), multivariate_normal(np.zeros(len(y)), K).logpdf(y)


# rows that are learnt from
@pytest.mark.parametrize(
    "via", ["iterative", Landmarks(40), "exact"], ids=["iterative", "landmarks", "exact"]
)
def test_learning_from_all_rows(via):
    """From fewer rows to all of them the evidence of all rows rises, and the plan says what was
    done."""
    X, y = data(400, d=3)
    k = Gaussian((1.0,) * 3)
    make = lambda rows: GP(k, via=via, learn_rows=rows, n_restarts=0, random_state=0).fit(X, y)
    few, all_ = make(100), make("all")
    key = "kernel learnt from" if isinstance(via, Landmarks) else "learnt from"
    assert few.plan_.settings[key] == 100
    assert all_.plan_.settings[key] == 400
    slack = 4 * all_.log_marginal_likelihood_error_ + 1.0
    assert all_.log_marginal_likelihood_ > few.log_marginal_likelihood_ - slack
    (Z, z) = data(300, 1, d=3)
    assert all_.score(Z, z) > few.score(Z, z) - 0.02


@pytest.mark.filterwarnings("ignore:the likelihood grows beyond the bounds")
@pytest.mark.parametrize(
    "options",
    [
        dict(fixed=("factor",)),
        dict(bounds={"factor": (2.0, 2.5)}),
        dict(bounds={"noise": (0.2, 0.3)}),
    ],
)
def test_the_last_rescaling_keeps_what_was_said(options, monkeypatch):
    monkeypatch.setattr(
        "mercer.models.gp.problem.MAX_SEARCH_ROWS", 60
    )  # so that noise and scale are of a subset, and rescaled
    X, y = data(150)
    m = GP(2.0 * Gaussian(0.7), via="iterative", n_restarts=0, **options).fit(X, y)
    assert m.plan_.settings["learnt from"] == 60
    if "factor" in (*options.get("fixed", ()), *options.get("bounds", ())):
        assert 2.0 - 1e-9 <= m.kernel_.factor <= 2.5 + 1e-9
        assert m.scale_ == pytest.approx(1.0)
    else:
        assert 0.2 - 1e-9 <= m.noise_ <= 0.3 + 1e-9


def test_steps_by_products_go_towards_the_exact_optimum(monkeypatch):
    monkeypatch.setattr(
        "mercer.models.gp.problem.MAX_SEARCH_ROWS", 60
    )  # the subset that the search starts from
    X, y = data(400, d=3)
    few, all_ = (
        GP(Gaussian((1.0,) * 3), via="iterative", learn_rows=r, n_restarts=0, random_state=0).fit(
            X, y
        )
        for r in (None, "all")
    )
    exact = GP(Gaussian((1.0,) * 3), n_restarts=0, random_state=0).fit(X, y)
    at = lambda m: plain(m.kernel_, X, y - m.prior_mean_, X[:1], m.noise_)[2]
    assert few.plan_.settings["learnt from"] == 60
    assert at(exact) - at(all_) < 0.7 * (at(exact) - at(few))


@pytest.mark.parametrize("restores", [True, False])
def test_the_better_kernel_by_all_rows_is_kept(restores, monkeypatch):
    """Over seeds: never less evidence than the kernel of the few rows has, and often more."""
    monkeypatch.setattr("mercer.models.gp.problem.MAX_SEARCH_ROWS", 80)
    gained, kept = [], set()
    for seed in range(4):
        X, y = data(500, seed, d=3)
        few, all_ = (
            GP(
                Gaussian((1.0,) * 3),
                via=Landmarks(50),
                learn_rows=r,
                restore_variance=restores,
                n_restarts=0,
                random_state=seed,
            ).fit(X, y)
            for r in (80, None)
        )
        gained.append(all_.log_marginal_likelihood_ - few.log_marginal_likelihood_)
        kept.add(all_.plan_.settings["kernel learnt from"])
        assert few.plan_.settings["kernel learnt from"] == 80
    assert min(gained) >= -1e-6
    assert max(gained) > 1
    assert kept <= {80, 500}
    assert 500 in kept


@pytest.mark.parametrize("rows", [0, -1, 1.5, "some", True])
def test_learn_rows_is_checked(rows):
    with pytest.raises(ValueError, match="learn_rows must be"):
        GP(learn_rows=rows).fit(*data())
