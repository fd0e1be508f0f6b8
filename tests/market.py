"""Named kernel values, and a strategy of random kernel trees, that every property is run
through."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from mercer.kernels import (
    AllSubsets,
    Anova,
    ArcCosine,
    Callable,
    Cauchy,
    Constant,
    Cosine,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sinc,
    exp,
)

COLUMNS = 3


def halve(X):
    return X / 2


def bounded(X):
    return np.tanh(X[:, :2])


def size(X):
    return 1 / (1 + np.square(np.asarray(X)).sum(1))


def dots(X, Z):
    return X @ Z.T


LEAVES: dict[str, Kernel] = {
    "constant": Constant(),
    "linear": Linear(),
    "cosine": Cosine(),
    "metric": Linear(metric=[[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.5]]),
    "polynomial": Polynomial(),
    "homogeneous": Polynomial(degree=2, bias=0.0),
    "subsets": AllSubsets(),
    "anova": Anova(order=2),
    "anova too high": Anova(order=7),
    "step": ArcCosine(order=0),
    "ramp": ArcCosine(order=1),
    "squared ramp": ArcCosine(order=2),
    "gaussian": Gaussian(bandwidth=1.3),
    "gaussian ard": Gaussian(bandwidth=[0.5, 1.0, 3.0]),
    "laplace": Laplace(bandwidth=0.8),
    "laplace ard": Laplace(bandwidth=(0.5, 1.0, 3.0)),
    "laplace 1-norm": Laplace(bandwidth=0.8, norm=1),
    "laplace 1-norm ard": Laplace(bandwidth=(0.5, 1.0, 3.0), norm=1),
    "laplace rough": Laplace(bandwidth=0.8, exponent=0.7),
    "laplace smooth ard": Laplace(bandwidth=(0.5, 1.0, 3.0), exponent=1.3),
    "laplace squared": Laplace(bandwidth=(0.5, 1.0, 3.0), exponent=2.0),
    "laplace 1-norm rough": Laplace(bandwidth=0.8, norm=1, exponent=0.7),
    "laplace 1-norm rough ard": Laplace(bandwidth=(0.5, 1.0, 3.0), norm=1, exponent=0.4),
    "matern 1/2": Matern(nu=0.5),
    "matern 3/2": Matern(bandwidth=2.0),
    "matern 5/2 ard": Matern(bandwidth=(0.5, 1.0, 3.0), nu=2.5),
    "matern 7/2": Matern(nu=3.5),
    "matern bessel": Matern(nu=0.8),
    "matern bessel ard": Matern(bandwidth=(0.5, 1.0, 3.0), nu=1.2),
    "matern high": Matern(nu=55.0),
    "matern limit": Matern(nu=math.inf),
    "cauchy": Cauchy(bandwidth=1.5),
    "rational": RationalQuadratic(bandwidth=0.9, mixture=0.6),
    "sinc": Sinc(bandwidth=0.7),
    "periodic": Periodic(bandwidth=1.1, period=1.7),
    "periodic ard": Periodic(bandwidth=(0.5, 1.0, 3.0), period=(1.0, 2.0, 3.0)),
}

TREES: dict[str, Kernel] = {
    "of the design": 0.5 * Gaussian() + Linear() * Polynomial(degree=2),
    "scaled twice": 2 * (3 * Gaussian()),
    "scaled product": 2.0 * (Gaussian() * Linear()),
    "product with scale": 2.0 * Gaussian() * Linear() * (0.5 * Cauchy()),
    "offset": Linear() + 1,
    "power": (Linear() + 1.5) ** 3,
    "power zero": Gaussian() ** 0,
    "exponential": exp(0.3 * Linear()),
    "series": Gaussian().compose([0.5, 0.0, 2.0]),
    "normalized": (Polynomial(degree=2) + Gaussian()).normalized(),
    "normalized linear": Linear().normalized(),
    "columns": Gaussian(bandwidth=(1.0, 2.0)).on_columns([0, 2]) * Periodic().on_columns([1]),
    "columns of columns": Gaussian(0.5).on_columns([1]).on_columns([2, 0]),
    "sinc on a column": Sinc().on_columns([0]) + Linear(),
    "zero": 0 * Gaussian() + Laplace(),
    "mapped": Gaussian(bandwidth=(1.0, 2.0)).mapped([[1.0, 0.5, -0.25], [0.0, 2.0, 1.0]]),
    "mapped to one": Laplace(exponent=0.7, norm=1).mapped([[0.5, -1.0, 0.25]]),
    "mapped up": Laplace(2.0, exponent=1.3).mapped(
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.25, 0.0, 1.0], [1.0, 1.0, 1.0]]
    ),
    "mapped by factors": 2.0 * Laplace(norm=1).mapped([0.5, 0.0, 3.0]),
    "mapped dots": (Polynomial(degree=2) * ArcCosine(1) + AllSubsets()).mapped(
        [[0.5, 0.25, 0.0], [0.0, 0.5, 1.0]]
    ),
    "mapped angles": Linear().normalized().mapped([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]),
    "mapped circles": Periodic(period=1.7).mapped([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]),
    "mapped twice": Matern().mapped([[1.0, 2.0]]).mapped([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]),
    "mapped columns": Gaussian(0.5)
    .on_columns([1])
    .mapped([[1.0, 0.5], [0.25, 1.0]])
    .on_columns([2, 0]),
}

WITH_FUNCTIONS: dict[str, Kernel] = {
    "weighted": Gaussian().weighted(size),
    "warped": (Gaussian(bandwidth=(1.0, 2.0)) + Polynomial(degree=2)).warped(bounded),
    "callable": Callable(dots) + 0.5 * Gaussian(),
    "warped twice": (Linear().warped(halve) * Laplace()).warped(halve),
}

KERNELS = LEAVES | TREES | WITH_FUNCTIONS

_positive = st.floats(0.3, 3.0).map(lambda v: round(v, 3))
_bandwidth = _positive | st.tuples(*[_positive] * COLUMNS)
_entry = st.sampled_from([0.0, 0.5, -0.5, 0.25, 1.0])
_matrix = st.tuples(*[st.tuples(*[_entry] * COLUMNS)] * COLUMNS) | st.tuples(*[_entry] * COLUMNS)

leaves = st.one_of(
    st.sampled_from(
        [Constant(), Linear(), AllSubsets(), Anova(), Anova(order=3), ArcCosine(0), ArcCosine(1)]
    ),
    st.builds(Gaussian, _bandwidth),
    st.builds(Laplace, _bandwidth, st.sampled_from([1, 2])),
    st.builds(Laplace, _bandwidth, st.just(1), st.sampled_from([0.3, 0.7])),
    st.builds(Laplace, _bandwidth, st.just(2), st.sampled_from([0.7, 1.3, 1.9, 2.0])),
    st.builds(Matern, _bandwidth, st.sampled_from([0.5, 1.5, 2.5, 1.1])),
    st.builds(Cauchy, _bandwidth),
    st.builds(RationalQuadratic, _bandwidth, _positive),
    st.builds(Periodic, _bandwidth, _bandwidth),
    st.builds(Sinc, _bandwidth),
    st.builds(Polynomial, st.integers(1, 3), _positive),
)

trees = st.recursive(
    leaves,
    lambda t: st.one_of(
        st.builds(lambda a, b: a + b, t, t),
        st.builds(lambda a, b: a * b, t, t),
        st.builds(lambda c, k: c * k, _positive, t),
        st.builds(lambda k: k**2, t),
        st.builds(lambda k, S: k.mapped(S), t, _matrix),
        st.builds(lambda k: k.normalized(), t),
        st.builds(lambda k: exp(0.1 * k.normalized()), t),
        st.builds(lambda k, a: k.compose(a), t, st.lists(_positive, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)


def rows(n: int = 9, d: int = COLUMNS, seed: int = 0) -> np.ndarray:
    """Rows of size about 1, one of them twice and one of them zero."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, d))
    X[-1], X[-2] = X[0], 0
    return X
