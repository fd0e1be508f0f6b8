"""One protocol: every posterior answers the same questions, and refuses in one sentence what it
cannot tell."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.landmarks import LandmarkResidual
from mercer.models.gp.laplace_posterior import LaplacePosterior
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.sources import GivenPoints, KernelPoints
from mercer.models.gp.systems import CholeskySystem, IterativeSystem
from mercer.operators.stored import GivenOperator

K = Gaussian(0.8)
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(-1, 1, size=(40, 2)), RNG.uniform(-1, 1, size=(7, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=40)
WAYS = {
    "exact": (K, "exact"),
    "iterative": (K, "iterative"),
    "landmarks": (K, Landmarks(30)),
    "features": (K, Fourier(400)),
    "gram": ("precomputed", "exact"),
}
SYSTEMS = {
    "exact": (CholeskySystem, KernelPoints),
    "iterative": (IterativeSystem, KernelPoints),
    "gram": (CholeskySystem, GivenPoints),
}


def model(way):
    kernel, via = WAYS[way]
    return GP(kernel, 0.1, via, random_state=0).fit(K(X) if way == "gram" else X, Y)


def asked(way, rows=NEW):
    return Table(K(rows, X) if way == "gram" else rows)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_its_posterior(way):
    p = model(way).posterior_
    if way in SYSTEMS:
        assert (type(p), type(p.system), type(p.system.points)) == (PointPosterior, *SYSTEMS[way])
    else:
        assert type(p) is FeaturePosterior
        assert isinstance(p.residual, LandmarkResidual) == (way == "landmarks")
    assert p.mean(asked(way)).shape == (7, 1)
    assert p.plan.way == ("exact" if way == "gram" else way)
    assert p.reads == (40 if way == "gram" else 2)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "gram"])
def test_variances_are_those_of_the_covariance(way):
    p = model(way).posterior_
    for noise in (0.0, 0.3):
        np.testing.assert_allclose(
            p.variance(asked(way), noise), p.covariance(asked(way), noise).diagonal(), atol=2e-3
        )
    S = p.sample(asked(way), 20_000, np.random.default_rng(0), noise=0.3)
    assert S.shape == (7, 1, 20_000)
    np.testing.assert_allclose(S[:, 0].mean(1), p.mean(asked(way))[:, 0], atol=0.03)
    np.testing.assert_allclose(np.cov(S[:, 0]), p.covariance(asked(way), 0.3), atol=0.03)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "gram"])
def test_rows_come_and_go(way):
    p = model(way).posterior_
    before = p.mean(asked(way))
    more = p.with_points(Table(NEW), np.ones((7, 1)))
    assert np.abs(more.mean(asked(way)) - before).max() > 0.01
    np.testing.assert_allclose(
        more.without_points(Table(NEW), np.ones((7, 1))).mean(asked(way)), before, atol=1e-6
    )


@pytest.mark.parametrize(
    ("way", "ask", "kind", "match"),
    [
        ("gram", lambda p: p.variance(asked("gram")), ValueError, "means only"),
        ("gram", lambda p: p.covariance(asked("gram")), ValueError, "means only"),
        ("gram", lambda p: p.sample(asked("gram"), 1, RNG), ValueError, "means only"),
        (
            "gram",
            lambda p: p.functions(1, posterior=True, n_features=9, seed=0),
            ValueError,
            "means only",
        ),
        ("gram", lambda p: p.with_points(asked("gram"), Y[:7, None]), ValueError, "no stream"),
        ("gram", lambda p: p.without_points(asked("gram"), Y[:7, None]), ValueError, "no stream"),
        ("iterative", lambda p: p.left_out, AttributeError, "via='exact'"),
        ("landmarks", lambda p: p.left_out, AttributeError, "via='exact'"),
        ("features", lambda p: p.left_out, AttributeError, "via='exact'"),
        ("exact", lambda p: p.merged(p), ValueError, "do not merge"),
        ("exact", lambda p: p.with_points(Table(X), np.ones((40, 2))), ValueError, "1 expected"),
        (
            "features",
            lambda p: p.with_points(Table(X), np.ones((40, 2))),
            ValueError,
            "fit one model a column",
        ),
        ("features", lambda p: p.merged(model("exact").posterior_), ValueError, "do not merge"),
    ],
)
def test_what_cannot_be_told_is_refused(way, ask, kind, match):
    with pytest.raises(kind, match=match):
        ask(model(way).posterior_)


@pytest.mark.parametrize("way", WAYS)
def test_caches_do_not_travel(way):
    p = model(way).posterior_
    p.mean(asked(way))
    caches = {"L", "handle", "solution", "left_out", "determinant", "_side"}
    for again in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        system = getattr(again, "system", again)
        for value in (again, system, getattr(system, "points", again)):
            assert not caches & vars(value).keys()
        np.testing.assert_array_equal(again.mean(asked(way)), p.mean(asked(way)))


def test_a_factor_that_is_known_is_that_of_its_rows():
    """It comes with the rows, and stays behind where the noise or the scale are others."""
    grown = model("exact").posterior_.with_points(Table(NEW), np.ones((7, 1))).system
    assert vars(grown)["L"] is grown.L
    fresh = CholeskySystem(grown.points, grown.noise, grown.scale)
    np.testing.assert_allclose(np.tril(grown.L), np.tril(fresh.L), atol=1e-12)
    other = replace(grown, noise=grown.noise + 1)
    assert "L" not in vars(other)
    A = grown.scale * K(grown.points.X) + np.diag(grown.noise + 1)
    np.testing.assert_allclose(np.tril(other.L) @ np.tril(other.L).T, A, atol=1e-12)


def test_functions_hold_no_factor():
    p = model("exact").posterior_
    f = p.functions(2, posterior=True, n_features=32, seed=0)
    assert "L" in vars(p.system)
    assert "L" not in vars(f.process.system)


def test_a_given_matrix_is_read_by_its_operator(monkeypatch):
    """Means, draws of the prior, and the factor."""
    p, wanted = model("gram").posterior_, model("exact").posterior_.mean(Table(NEW))
    read, block = [], GivenOperator.block
    monkeypatch.setattr(
        GivenOperator,
        "block",
        lambda self, *rows: read.append(self.shape) or 2 * block(self, *rows),
    )
    np.testing.assert_allclose(p.mean(asked("gram")), 2 * wanted, atol=1e-9)
    p.sample(Table(K(X)), 1, RNG, posterior=False)
    assert read == [(7, 40), (40, 40)]
    bare = CholeskySystem(p.system.points, p.system.noise, p.system.scale)
    A = 2 * K(X) + np.diag(bare.noise)
    np.testing.assert_allclose(np.tril(bare.L) @ np.tril(bare.L).T, A, atol=1e-12)


@pytest.mark.parametrize(
    "cls",
    [
        PointPosterior,
        FeaturePosterior,
        LaplacePosterior,
        CholeskySystem,
        IterativeSystem,
        KernelPoints,
        GivenPoints,
        LandmarkResidual,
    ],
)
def test_what_differs_is_held_not_inherited(cls):
    assert (cls.__subclasses__(), cls.__bases__) == ([], (object,))


def test_attributes_are_those_of_the_way():
    exact, features = model("exact"), model("features")
    for name in ("coef_", "lift_", "moments_", "effective_dimension_", "n_features_lifted_"):
        assert hasattr(features, name)
        assert not hasattr(exact, name)
    for name in ("loo_predictions_", "loo_score_"):
        assert hasattr(exact, name)
        assert not hasattr(features, name)
