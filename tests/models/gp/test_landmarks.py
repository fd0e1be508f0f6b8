"""Processes over landmarks: learnt kernels, the evidence as a density, rows that come and go."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from mercer.inputs import Table
from mercer.kernels import Gaussian, Matern
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp.landmarks import ResidualGroups, RowWeights
from mercer.models.gp.sparse import BLOCK_ROWS, fitc
from mercer.store import load, save
from tests.models.gp.examples import data


def test_landmarks_learn_the_kernel():
    (X, y), (Z, z) = data(250, d=3), data(200, 1, d=3)
    m = GP(Gaussian((1.0,) * 3), via=Landmarks(100), n_restarts=0, random_state=0).fit(X, y)
    exact = GP(Gaussian((1.0,) * 3), n_restarts=0, random_state=0).fit(X, y)
    assert m.score(Z, z) > exact.score(Z, z) - 0.01
    assert m.calibration(Z, z)[0.9] == pytest.approx(exact.calibration(Z, z)[0.9], abs=0.03)
    assert m.predict(np.full((1, 3), 50.0), return_std=True, of="f")[1] ** 2 == pytest.approx(
        m.scale_, rel=1e-3
    )


# what landmarks leave out
def rough(n, seed):
    """A function that few landmarks cannot follow."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(8 * X[:, 1]) + 0.1 * rng.normal(size=n)


def test_what_is_left_out_is_not_counted_twice():
    """Over seeds: intervals that cover what they say, where noise of all rows alike would be too
    wide, and a better density."""
    found = []
    for seed in range(3):
        (X, y), (Z, z) = rough(1500, seed), rough(800, 100 + seed)
        m = GP(Gaussian(0.15), via=Landmarks(60), fixed="all", random_state=seed).fit(X, y)
        assert "leave out" in m.plan_.settings["noise of a row"]
        alike = GP(Gaussian(0.15), via=Landmarks(60), fixed="all", random_state=seed).partial_fit(
            X, y
        )
        log = [norm.logpdf(z, *model.predict(Z, return_std=True)).mean() for model in (m, alike)]
        found.append([*log, m.calibration(Z, z)[0.5], alike.calibration(Z, z)[0.5]])
    ours, theirs, inside, wide = np.mean(found, axis=0)
    assert ours > theirs
    assert abs(inside - 0.5) < 0.08
    assert wide > inside


def test_the_evidence_over_landmarks_is_a_gaussian_density():
    X, y = rough(200, 0)
    m = GP(Gaussian(0.3), via=Landmarks(20), fixed="all", random_state=0).fit(X, y)
    F = m.lift_.transform(X)
    left = 1 - np.square(F).sum(1)
    law = multivariate_normal(
        np.full(200, m.prior_mean_), m.scale_ * (F @ F.T + np.diag(left)) + m.noise_ * np.eye(200)
    )
    assert m.log_marginal_likelihood_ == pytest.approx(law.logpdf(y), rel=1e-6)
    assert m.prior_mean_ == pytest.approx(y.mean())
    mean = m.prior_mean_ + m.scale_ * F @ F.T @ np.linalg.solve(law.cov, y - m.prior_mean_)
    np.testing.assert_allclose(m.predict(X), mean, atol=1e-6)


def test_rows_over_landmarks_come_and_go(tmp_path):
    """Later rows weigh by the ratio of noise to scale that was found, also in a model from a
    file."""
    X, y = rough(400, 0)
    m = GP(Gaussian(0.3), via=Landmarks(20), fixed="all", random_state=0).fit(X[:300], y[:300])
    before, log = m.predict(X, return_std=True), m.log_marginal_likelihood_
    ratio = m.noise_ / m.scale_
    save(m, tmp_path / "m.mercer")
    m = load(tmp_path / "m.mercer").partial_fit(X[300:], y[300:])
    assert m.noise_ / m.scale_ == pytest.approx(ratio)
    F = m.lift_.transform(X)
    cov = m.scale_ * (F @ F.T + np.diag(1 - np.square(F).sum(1))) + m.noise_ * np.eye(400)
    assert m.log_marginal_likelihood_ == pytest.approx(
        multivariate_normal(np.full(400, m.prior_mean_), cov).logpdf(y), rel=1e-6
    )
    with pytest.raises(ValueError, match="cannot forget"):
        m.forget(np.vstack([X, X]), np.append(y, y))
    m.forget(X[300:], y[300:])
    np.testing.assert_allclose(m.predict(X, return_std=True), before, rtol=1e-5)
    assert m.log_marginal_likelihood_ == pytest.approx(log, rel=1e-6)
    with pytest.raises(ValueError, match="give the rows to partial_fit"):
        m.merge(load(tmp_path / "m.mercer"))


def test_the_first_batch_of_a_stream_may_be_small():
    X, y = data(300)
    m = GP(Gaussian(0.7), via="features", random_state=0).partial_fit(X[:10], y[:10])
    assert m.n_features_lifted_ == 2048


# functions over landmarks
def test_functions_over_landmarks_vary_far_from_the_data():
    (X, y), (Z, _) = data(), data(5, 1)
    m = GP(Gaussian(0.7), 0.1, Landmarks(20), prior_mean=1.0, random_state=0).fit(X, y)
    Z = np.vstack([Z, [[2.0, 2.0], [30.0, 30.0]]])
    mean, cov = m.predict(Z, return_cov=True, of="f")
    for posterior in (True, False):
        values = np.concatenate(
            [m.sample_functions(1500, posterior=posterior, random_state=s)(Z) for s in range(3)],
            axis=1,
        )
        np.testing.assert_allclose(values.mean(1), mean if posterior else 1.0, atol=0.08)
        np.testing.assert_allclose(
            np.cov(values), cov if posterior else Gaussian(0.7)(Z), atol=0.12
        )
    F = m.sample_functions(3)
    np.testing.assert_allclose(F(Z[4:5])[0], F(Z)[4], atol=1e-9)
    assert F(Z.astype(np.float32)).dtype == np.float32


def blocks(n=2 * BLOCK_ROWS + 88, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


# the ratio of noise to scale
def test_groups_find_the_ratio_of_every_row():
    """The ratio that groups of rows find costs next to nothing of the evidence of all rows; over
    seeds."""
    lost = []
    for seed in range(3):
        X, Y = blocks(600, seed=seed)
        k, Z = Matern(1.0, nu=1.5), Table(X[:60])
        R = np.linalg.cholesky(k(Z))
        F = np.linalg.solve(R, k(Z, Table(X))).T
        left = np.maximum(k.diag(X) - np.square(F).sum(1), 0)
        groups = ResidualGroups.between(left, 60)
        groups.add(F, left, Y[:, 0])
        log = lambda ratio: fitc(k, Table(X), Y, ratio, None, points=Z, slopes=False).log  # noqa: B023
        lost.append(max(map(log, np.geomspace(1e-4, 1, 60))) - log(groups.best()))
    assert max(lost) < 1.0


def test_weights_have_the_geometric_mean_one():
    left, y = np.array([0.0, 0.5, 2.0]), np.array([1.0, 2.0, 4.0])
    s = RowWeights.of(0.1, left, y)
    assert np.log(s.weights(left)).sum() == pytest.approx(0)
    more = s.taking(left[:2], y[:2])
    back = more.taking(left[:2], y[:2], -1)
    assert (back.logs, back.total) == (pytest.approx(s.logs), pytest.approx(s.total))
    assert more.total == pytest.approx(10.0)
