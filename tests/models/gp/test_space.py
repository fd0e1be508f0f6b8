"""Hyper-parameters as a vector: what is fixed stays, what is tied moves together, bounds and priors
are in the units of y."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Polynomial
from mercer.models.gp.hyperparameters import HyperparameterSpec as Spec
from mercer.models.gp.search import Start, learn
from mercer.models.gp.space import space, times
from mercer.priors import LogNormal

THREE = Gaussian((1.0, 2.0, 4.0))
SUM = Gaussian(0.7) + 0.5 * Linear()


def data(n=40, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return Table(X), size * (np.sin(X[:, :1]) + X[:, 1:2] + 0.1 * rng.normal(size=(n, 1)))


def value(s, name, z):
    """A parameter in the units of y."""
    i = s.names.index(name)
    return np.exp(s.full(z)[i] - s.shift[i])


def test_a_vector_and_back():
    s = space(SUM, Spec(bounds={"noise": (1e-9, 10.0)}), None, unit=5.0)
    z = np.array([0.1, -0.2, 0.3, 0.4])
    np.testing.assert_allclose(s.first(s.full(z)), z)
    assert s.at(s.full(z)) == Gaussian(np.exp(0.1)) + np.exp(-0.2) * Linear()
    assert [value(s, n, z) for n in ("noise", "scale")] == pytest.approx([np.exp(0.3), np.exp(0.4)])


# units
@pytest.mark.parametrize("unit", [1.0, 10.0, 1e-6])
def test_default_bounds_of_noise_and_scale_follow_the_unit(unit):
    s = space(Gaussian(), Spec(priors={"noise": LogNormal()}), None, unit=unit)
    assert not s.profiled
    np.testing.assert_allclose(np.exp(s.lower[1:]), unit**2 * np.array([1e-9, 1e-9]))
    np.testing.assert_allclose(np.exp(s.upper[1:]), unit**2 * np.array([1e4, 1e9]))
    assert np.exp(s.full(s.first())[-2]) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["noise", "scale", "terms__1__factor"])
def test_bounds_are_in_the_units_of_y(name):
    s = space(SUM, Spec(bounds={name: (0.2, 0.3)}), None, unit=10.0)
    for z, wanted in ((s.lower, 0.2), (s.upper, 0.3)):
        assert value(s, name, z) == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["noise", "scale", "terms__1__factor"])
def test_priors_are_in_the_units_of_y(name):
    prior = LogNormal(3.0, 0.5)
    s = space(SUM, Spec(priors={name: prior}), None, unit=10.0)
    z = s.first() + 0.3
    log, slope = s.prior(s.full(z))
    assert log == pytest.approx(prior.log(value(s, name, z)))
    wanted = [
        (s.prior(s.full(z + h))[0] - s.prior(s.full(z - h))[0]) / 2e-5
        for h in 1e-5 * np.eye(s.size)
    ]
    np.testing.assert_allclose(s.free(slope), wanted, atol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(fixed=("terms__1__factor",)),
        Spec(bounds={"terms__1__factor": (0.1, 1.0)}),
        Spec(priors={"terms__1": LogNormal()}),
        Spec(tied=[("terms__1__factor", "noise")]),
        Spec(fixed=True),
        Spec(fixed="all"),
        Spec(fixed=("scale",)),
    ],
    ids=["fixed", "bounds", "prior", "with noise", "true", "all", "scale"],
)
def test_the_scale_is_one_where_an_amplitude_is_said(spec):
    s = space(SUM, spec, None, unit=10.0)
    assert s.group[-1] == -1
    assert value(s, "scale", s.first()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(),
        Spec(fixed=("terms__0__bandwidth",)),
        Spec(bounds={"scale": (1.0, 2.0)}),
    ],
    ids=["none", "fixed", "scale"],
)
def test_the_scale_is_free_where_not(spec):
    s = space(SUM, spec, None, unit=10.0)
    assert s.profiled or s.group[-1] >= 0


def test_one_of_two_scales_is_enough():
    def free(spec):
        s = space(2.0 * Gaussian(), spec, None)
        return {n for n, g in zip(s.names, s.group, strict=True) if g >= 0}

    assert free(Spec()) == {"kernel__bandwidth", "noise"}
    assert free(Spec(bounds={"factor": (1.0, 3.0)})) == {"factor", "kernel__bandwidth", "noise"}
    assert free(Spec(fixed=("scale",))) == {"factor", "kernel__bandwidth", "noise"}
    assert free(Spec(fixed=("factor",))) == {"kernel__bandwidth", "noise"}
    assert free(Spec(fixed=True)) == {"noise"}


def test_fixed_values_stay_to_the_last_bit():
    k = Gaussian((0.1, 0.7, 3.3)) + 0.3 * Linear()
    s = space(
        k,
        Spec(fixed=("terms__0__bandwidth__0", "terms__0__bandwidth__1", "terms__1__factor")),
        None,
    )
    assert (
        s.at(s.full(s.first() + 1)).parameters() | {"terms__0__bandwidth__2": 3.3} == k.parameters()
    )


# ties
def test_ties_that_meet_are_one():
    pairs = [
        ("bandwidth__0", "bandwidth__1"),
        ("bandwidth__2", "noise"),
        ("bandwidth__1", "bandwidth__2"),
    ]
    for tied in (pairs, pairs[::-1], [p[::-1] for p in pairs]):
        assert space(THREE, Spec(tied=tied), None).group[:4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("fixed", ["bandwidth__0", "bandwidth__1"])
def test_a_fixed_member_gives_its_value(fixed):
    s = space(THREE, Spec(fixed=(fixed,), tied=[("bandwidth__0", "bandwidth__1")]), None)
    wanted = THREE.parameters()[fixed]
    assert s.kernel == Gaussian((wanted, wanted, 4.0))
    assert s.at(s.full(s.first())).bandwidth[:2] == (wanted, wanted)
    assert s.group.tolist() == [-1, -1, 0, 1, -1]


def test_fixed_members_that_differ_are_refused():
    with pytest.raises(
        ValueError, match="bandwidth__0, bandwidth__1 are tied, but held at different values"
    ):
        space(THREE, Spec(fixed=("bandwidth",), tied=[("bandwidth__0", "bandwidth__1")]), None)
    assert (
        space(
            Gaussian((2.0, 2.0)),
            Spec(fixed=("bandwidth",), tied=[("bandwidth__0", "bandwidth__1")]),
            None,
        ).size
        == 1
    )


def test_the_noise_takes_a_fixed_amplitude_in_the_units_of_y():
    s = space(
        SUM,
        Spec(fixed=("terms__1__factor",), tied=[("noise", "terms__1__factor")]),
        None,
        unit=10.0,
    )
    assert value(s, "noise", s.first()) == pytest.approx(0.5)


def test_far_starts_that_are_tied_have_room():
    s = space(Gaussian((1e-6, 1e6)), Spec(tied=[("bandwidth__0", "bandwidth__1")]), None)
    assert s.lower[0] < np.log(1e-6) < np.log(1e6) < s.upper[0]


# sentences
@pytest.mark.parametrize(
    ("spec", "match"),
    [
        (dict(fixed=("width",)), "'width' is not a parameter"),
        (dict(fixed="none"), "fixed must be"),
        (dict(fixed=3), "fixed must be"),
        (dict(fixed=False), "fixed must be"),
        (dict(fixed=("noise",)), "give the noise as a number"),
        (dict(bounds={"bandwidth": (2, 1)}), "0 < low <= high"),
        (dict(bounds={"bandwidth": 3}), "two numbers"),
        (dict(bounds=(1, 2)), "bounds must be by name"),
        (dict(priors=[LogNormal()]), "priors must be by name"),
        (dict(priors={"bandwidth": 1.0}), "must be LogNormal"),
        (dict(tied=[("bandwidth", "noise")]), "as many values"),
        (dict(tied=("bandwidth__0", "bandwidth__1")), "groups of two names"),
        (dict(tied=[()]), "groups of two names"),
        (dict(tied=[("nu", "nu")]), "must be learnt"),
        (
            dict(
                tied=[("bandwidth__0", "bandwidth__1")],
                bounds={"bandwidth__0": (1, 2), "bandwidth__1": (3, 4)},
            ),
            "no value in common",
        ),
        (dict(bounds={"nu": (0.5, 2.5)}), "'nu' has bounds or a prior, but is not learnt"),
        (dict(fixed=("bandwidth",), priors={"bandwidth__0": LogNormal()}), "it is fixed"),
        (dict(fixed=("scale",), bounds={"scale": (1, 2)}), "the scale is 1"),
    ],
)
def test_specs_are_checked(spec, match):
    with pytest.raises(ValueError, match=match):
        space(Matern((1.0, 2.0)), Spec(**spec), None)


def test_what_is_given_has_no_bounds():
    with pytest.raises(ValueError, match="the noise is given"):
        space(Gaussian(), Spec(bounds={"noise": (1, 2)}), 0.1)
    with pytest.raises(ValueError, match="above zero"):
        space(Polynomial(2, bias=0.0), Spec(bounds={"bias": (1, 2)}), None)


# the search
def test_a_strong_prior_is_obeyed():
    rows, Y = data()
    s = space(
        Gaussian(),
        Spec(priors={"bandwidth": LogNormal(0.05, 1e-3), "noise": LogNormal(0.7, 1e-3)}),
        None,
    )
    found = learn([Start(s, s.first())], rows, Y)
    assert found.kernel.bandwidth == pytest.approx(0.05, rel=1e-2)
    assert found.noise == pytest.approx(0.7, rel=1e-2)
    assert not found.profiled


def test_what_is_learnt_is_the_same_in_any_unit():
    rows, Y = data(size=30.0)
    for spec in (
        Spec(bounds={"noise": (1.0, 2.0)}),
        Spec(bounds={"terms__1__factor": (50.0, 90.0)}),
        Spec(fixed=("scale",)),
    ):
        spaces = {
            u: space(300.0 * Gaussian(2.0) + 100.0 * Linear(), spec, None, unit=u)
            for u in (1.0, 30.0)
        }
        one, other = (
            learn([Start(s, spaces[30.0].first())], rows, Y / u) for u, s in spaces.items()
        )
        assert other.log - len(Y) * np.log(30.0) == pytest.approx(one.log, abs=1e-2)
        assert 900 * other.noise == pytest.approx(one.noise, rel=1e-2)


def test_one_scale_only():
    assert times(3.0, 2.0 * Gaussian()) == 6.0 * Gaussian()
    assert times(1 + 1e-15, 0.7 * Gaussian()) == 0.7 * Gaussian()
    assert times(3.0, Gaussian()) == 3.0 * Gaussian()
