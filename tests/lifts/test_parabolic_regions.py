"""Balls are halfspaces on the paraboloid, there and back; and the form in note 000 is not
theirs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.lifts import (
    Ball,
    Everything,
    Halfspace,
    Nothing,
    Parabolic,
    ball_to_halfspace,
    halfspace_to_ball,
)

_small = st.integers(-3, 3).map(float)


def points(n=400, d=2, seed=0):
    return np.random.default_rng(seed).uniform(-3, 3, size=(n, d))


def lifted(X):
    return Parabolic().fit_transform(X)


def test_a_ball_is_a_halfspace():
    X, ball = points(), Ball((0.5, -1.0), 1.5)
    halfspace = ball_to_halfspace([0.5, -1.0], 1.5)
    assert halfspace == Halfspace((1.0, -2.0, -1.0), 1.25 - 2.25)
    np.testing.assert_array_equal(halfspace.contains(lifted(X)), ball.contains(X))
    np.testing.assert_array_equal(
        ball_to_halfspace([0.5, -1.0], 1.5, complement=True).contains(lifted(X)), ~ball.contains(X)
    )
    assert Parabolic.halfspace_to_ball(halfspace.normal, halfspace.offset) == ball
    assert halfspace_to_ball(*ball_to_halfspace(*ball)) == ball


def test_the_form_of_the_note_is_a_slip():
    """Note 000 has u' = (-2c, 1) and (u', phi(x)) > |c|^2 - r^2: that leaves out the centre and
    holds what is far away."""
    c, r = np.array([1.0, 0.0]), 0.5
    noted = Halfspace((*(-2 * c), 1.0), c @ c - r**2, strict=True)
    ball, X = Ball(c, r), np.array([[1.0, 0.0], [1.2, 0.1], [9.0, 9.0]])
    assert ball.contains(X).tolist() == [True, True, False]
    assert noted.contains(lifted(X)).tolist() == [False, False, True]
    assert ball.lifted().contains(lifted(X)).tolist() == [True, True, False]


@given(st.tuples(_small, _small, _small), _small, st.booleans())
def test_every_halfspace_is_a_region(normal, offset, strict):
    region = halfspace_to_ball(normal, offset, strict)
    X = np.stack(np.meshgrid(np.arange(-4, 4.5, 0.53), np.arange(-4, 4.5, 0.61)), axis=-1).reshape(
        -1, 2
    )
    F = lifted(X)
    clear = np.abs(F @ np.asarray(normal) - offset) > 1e-9  # on the boundary both sides only round
    clear |= not any(normal)
    expected = Halfspace(normal, offset, strict).contains(F)
    np.testing.assert_array_equal(region.contains(X)[clear], expected[clear])
    np.testing.assert_array_equal(region.lifted().contains(F)[clear], expected[clear])
    np.testing.assert_array_equal((~region).contains(X), ~region.contains(X))
    np.testing.assert_array_equal((~region).lifted().contains(F)[clear], ~expected[clear])


def test_what_each_halfspace_is():
    assert halfspace_to_ball((1.0, 2.0, 0.0), 3.0) == Halfspace((1.0, 2.0), 3.0)
    assert halfspace_to_ball((0.0, 0.0, 1.0), 4.0) == Ball((0.0, 0.0), 2.0, complement=True)
    assert halfspace_to_ball((0.0, 0.0, -1.0), 1.0) == Nothing(2)
    assert halfspace_to_ball((0.0, 0.0, 1.0), -1.0) == Everything(2)
    assert halfspace_to_ball((0.0, 0.0, 0.0), 0.0) == Everything(2)
    assert halfspace_to_ball((0.0, 0.0, 0.0), 0.0, strict=True) == Nothing(2)
    assert halfspace_to_ball((0.0, 0.0, -1.0), 0.0).contains([[0.0, 0.0], [0.1, 0.0]]).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "region",
    [Everything(2), Nothing(2), Ball((0, 1), 2), ~Ball((0, 1), 2), Halfspace((1, 2), 3)],
    ids=repr,
)
def test_there_and_back(region):
    up = region.lifted()
    assert halfspace_to_ball(up.normal, up.offset, up.strict) == region
    assert ~~region == region
