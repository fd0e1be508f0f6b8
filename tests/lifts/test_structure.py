import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear
from mercer.lifts import (
    Identity,
    NormalizedLift,
    OnColumnsLift,
    One,
    RandomFourier,
    WarpedLift,
    WeightedLift,
)
from mercer.testing import check_lift
from tests.market import bounded, halve, rows, size

EXACT = {
    "identity": Identity(),
    "one": One(),
    "metric": Identity(metric=[[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.5]]),
    "columns": OnColumnsLift(Identity(), [2, 0]),
    "warped": WarpedLift(Identity(), bounded),
    "weighted": WeightedLift(Identity(), size),
    "normalized": NormalizedLift(Identity()),
    "sum": Identity() + One(),
    "product": Identity() * (Identity() + One()),
    "scaled": 3 * Identity(),
    "chain": Identity() >> WarpedLift(Identity(), halve),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_maps_equal_their_kernels(name):
    check_lift(EXACT[name], rows(10))


@pytest.mark.parametrize(
    "name", [name for name in EXACT if name not in ("metric", "columns", "warped", "weighted")]
)
def test_scikit_learns_contract(name):
    check_estimator(EXACT[name], on_skip=None)


def test_products_of_random_maps_are_independent_even_with_one_seed():
    phi = RandomFourier(Gaussian(), 32, random_state=0)
    check_lift(phi * phi, rows(6), exact=False)
    F, G = ((phi * phi).fit(rows(6)).lifts_[i].draw() for i in (0, 1))
    assert not np.allclose(F, G)


def test_squaring_one_map_is_biased():
    """Why products need independent copies: E <f, g>^2 is the square of the kernel plus a
    variance."""
    X = np.array([[0.0], [1.0]])
    squares = [
        np.dot(*RandomFourier(Gaussian(), 8, frequencies="iid", random_state=s).fit_transform(X))
        ** 2
        for s in range(2000)
    ]
    assert np.mean(squares) - np.exp(-1.0) > 5 * np.std(squares) / np.sqrt(2000)


def test_the_algebra_of_maps_is_that_of_kernels():
    phi, psi, X = RandomFourier(Gaussian(), 16, random_state=0), Identity(), rows(6)
    F, G = phi.fit_transform(X), psi.fit_transform(X)
    np.testing.assert_allclose((phi + psi).fit_transform(X), np.hstack([F, G]))
    np.testing.assert_allclose(
        (phi * psi).fit_transform(X), np.einsum("ni,nj->nij", F, G).reshape(6, -1)
    )
    np.testing.assert_allclose((2.0 * phi).fit_transform(X), 2 * F)
    np.testing.assert_allclose((phi >> psi).fit_transform(X), F)
    assert (phi + psi).fit(X).kernel_ == Gaussian() + Linear()
    assert (phi * psi).fit(X).kernel_ == Gaussian() * Linear()
    assert (phi * 2).fit(X).kernel_ == 4.0 * Gaussian()


def test_nested_parameters():
    phi = RandomFourier(Gaussian(), 16) + 2 * Identity()
    assert phi.get_params()["lifts__0__n_features"] == 16
    phi.set_params(lifts__0__n_features=8, lifts__1__by=3.0)
    assert phi.fit(rows(5)).n_features_out_ == 11
    assert phi.lifts[1].by == 3.0


def test_names():
    frame = pd.DataFrame(rows(5), columns=["age", "pay", "size"])
    phi = (Identity() * Identity() + One() + Identity()).set_output(transform="pandas")
    F = phi.fit_transform(frame)
    assert list(F.columns)[:3] == ["age*age", "age*pay", "age*size"]
    assert list(F.columns)[-4:] == ["1", "age", "pay", "size"]
    assert len(set(F.columns)) == F.shape[1]
    assert list(OnColumnsLift(Identity(), ["size"]).fit(frame).get_feature_names_out()) == ["size"]
