"""The features of chi-squared kernels: the spectrum of the additive one, sampled at equal steps to
a stated error, and Fourier features of these for its exponential."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Is, Number, Whole
from mercer.kernels import AdditiveChi2, Chi2, Gaussian
from mercer.kernels.base import positive, whole
from mercer.kernels.domain import check_rows
from mercer.kernels.params import plain
from mercer.lifts.base import TILE_BYTES, Lift, Seed, by_rows
from mercer.lifts.fourier import RandomFourier
from mercer.ops.tiles import cuts
from mercer.store import register

EXACT_EPS = 1e-9  # of what is called exact: the features are those of the kernel to so much
PROJECTED_EPS = 1e-3  # of features that are then projected, or mapped at random
MOST_SAMPLES = 200  # of a column; there its error is below rounding


def additive_error(n: int) -> float:
    """A bound B of |phi(x)'phi(z) - k(x, z)| <= B sum_j max(x_j, z_j) with n frequencies a column.

    At step L = 1 / sqrt(n + 1) and q = exp(-pi / L), the copies of the kernel that sampling adds
    are at most 4 q / (1 - q), and the frequencies left out 4 L q / (1 - exp(-pi L)).

    >>> additive_error(8) < 1e-3 and additive_error(24) < 1e-6
    True
    """
    step = _step(n)
    q = math.exp(-math.pi / step)
    return 4 * q / (1 - q) + 4 * step * q / (1 - math.exp(-math.pi * step))


def samples_for(eps: float) -> int:
    """The fewest frequencies a column whose error is at most eps.

    >>> samples_for(1e-6)
    24
    """
    return next((n for n in range(MOST_SAMPLES) if additive_error(n) <= eps), MOST_SAMPLES)


def _step(n: int) -> float:
    return 1 / math.sqrt(n + 1)


@register("lifts.AdditiveChi2Features")
class AdditiveChi2Features(Lift):
    """sqrt(x_j L), and sqrt(2 x_j L / cosh(pi i L)) times cos and sin of i L log x_j, i <= n.

    2 x z / (x + z) is sqrt(x z) / cosh(log(x/z) / 2), whose spectrum is 1 / cosh(pi w): it is
    sampled at steps of L = 1 / sqrt(n + 1). The error falls as exp(-pi sqrt(n)), for all rows
    >= 0 alike: at most `error_` times sum_j max(x_j, z_j). Sparse rows give sparse features.

    Parameters
    ----------
    eps : float, default=1e-6
        The most that `error_` may be.
    n_samples : int, default=None
        The n instead, >= 0; None is as many as eps asks for.

    Attributes
    ----------
    error_ : float
        The bound.
    n_samples_ : int
        The n: each column has 2 n + 1 features.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps (2012).

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 5.0]])
    >>> phi = AdditiveChi2Features().fit(X)
    >>> F = phi.transform(X)
    >>> (F @ F.T).round(5), phi.error_ < 1e-6, F.shape
    (array([[1. , 1.5],
           [1.5, 8. ]]), True, (2, 98))
    """

    sparse: ClassVar[bool] = True
    n_samples_: int
    error_: float

    must = dict(n_samples_=Whole(0, 1 << 20), error_=Number(0))

    def _laws(self) -> str | None:
        size = self.n_features_in_ * (2 * self.n_samples_ + 1)
        if size == self.n_features_out_:
            return None
        return f"has {size} functions of columns for {self.n_features_out_} features"

    def __init__(self, eps: float = 1e-6, n_samples: int | None = None) -> None:
        self.eps = eps
        self.n_samples = n_samples

    def _learn(self, X: Matrix) -> None:
        eps = positive(plain(self.eps), "eps")
        given = plain(self.n_samples)
        self.n_samples_ = samples_for(eps) if given is None else whole(given, "n_samples")
        self.error_ = additive_error(self.n_samples_)
        self.n_features_out_ = X.shape[1] * (2 * self.n_samples_ + 1)
        self.kernel_ = AdditiveChi2()
        check_rows(self.kernel_, self._table(X))

    def _map(self, X: Matrix) -> Matrix:
        check_rows(self.kernel_, self._table(X))
        if sp.issparse(X):
            return self._map_csr(X)
        F = np.empty((len(X), self.n_features_out_), X.dtype)
        each = F.reshape(*X.shape, -1)  # a view

        def fill(x: Matrix, rows: slice) -> None:
            each[rows] = self._of(x)

        by_rows(X, self.n_features_out_, fill)
        return F

    def _map_csr(self, X: Any) -> Any:
        """The features of the values that are there; those of zeros are zeros."""
        size = 2 * self.n_samples_ + 1
        indices = (X.indices[:, None].astype(np.int64) * size + np.arange(size)).ravel()
        shape = X.shape[0], self.n_features_out_
        made = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
        return made(
            (self._of(X.data).astype(X.dtype).ravel(), indices, X.indptr.astype(np.int64) * size),
            shape=shape,
        )

    def _of(self, x: Array) -> Array:
        """The 2 n + 1 features of every number, along a last axis."""
        x, n, step = x.astype(np.float64), self.n_samples_, _step(self.n_samples_)
        at = step * np.arange(1, n + 1)
        angle = np.log(np.where(x > 0, x, 1))[..., None] * at
        size = np.sqrt(2 * step / np.cosh(np.pi * at))
        waves = [np.full((*x.shape, 1), math.sqrt(step)), size * np.cos(angle)]
        return np.sqrt(x)[..., None] * np.concatenate([*waves, size * np.sin(angle)], axis=-1)

    def _names(self, inputs: list[str]) -> list[str]:
        waves = [f"{f}{i}" for f in ("cos", "sin") for i in range(1, self.n_samples_ + 1)]
        return [f"{f}({name})" for name in inputs for f in ("sqrt", *waves)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


@register("lifts.Chi2Features")
class Chi2Features(Lift):
    """psi(phi(x)): Fourier features psi of a Gaussian kernel of the additive features phi.

    exp(-gamma |phi(x) - phi(z)|^2) is the chi-squared kernel, as |phi(x) - phi(z)|^2 is the
    chi-squared distance. Its features are made a few rows at a time.

    Parameters
    ----------
    gamma : float, default=1.0
        The rate of the kernel, > 0.
    n_features : int, default=256
        The number of features, even with form="pairs".
    eps : float, default=None
        The error of the features phi, see `AdditiveChi2Features`; None is one that moves no
        kernel value between rows of `fit` by more than 0.001.
    form : {"pairs", "shift"}, default="pairs"
        As of `RandomFourier`.
    frequencies : str, default="auto"
        As of `RandomFourier`.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the frequencies.

    Attributes
    ----------
    additive_ : AdditiveChi2Features
        The phi.
    fourier_ : RandomFourier
        The psi.

    Examples
    --------
    >>> from mercer.kernels import Chi2
    >>> X = np.random.default_rng(0).uniform(size=(50, 4))
    >>> F = Chi2Features(n_features=1024, random_state=0).fit_transform(X)
    >>> bool(np.abs(F @ F.T - Chi2()(X)).max() < 0.1)
    True
    """

    sparse: ClassVar[bool] = True

    must = dict(
        additive_=Is("AdditiveChi2Features", n_features_in_="n_features_in_"),
        fourier_=Is(
            "RandomFourier",
            n_features_in_="additive_.n_features_out_",
            n_features_out_="n_features_out_",
        ),
    )

    def __init__(
        self,
        gamma: float = 1.0,
        n_features: int = 256,
        *,
        eps: float | None = None,
        form: str = "pairs",
        frequencies: str = "auto",
        random_state: Seed = None,
    ) -> None:
        self.gamma = gamma
        self.n_features = n_features
        self.eps = eps
        self.form = form
        self.frequencies = frequencies
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = Chi2(plain(self.gamma))
        check_rows(self.kernel_, self._table(X))
        eps = self._enough(X) if self.eps is None else self.eps
        self.additive_ = AdditiveChi2Features(eps).fit(self._table(X))
        self.fourier_ = RandomFourier(
            Gaussian.of(gamma=self.kernel_.gamma),
            self.n_features,
            form=self.form,
            frequencies=self.frequencies,
            random_state=self.random_state,
        ).fit(self.additive_.transform(X[:1]))
        self.n_features_out_ = self.fourier_.n_features_out_

    def _enough(self, X: Matrix) -> float:
        """Where no distance of additive features, which moves by at most four times their error,
        moves the kernel by more than allowed."""
        top = float(X.sum(axis=1, dtype=np.float64).max())
        return min(
            PROJECTED_EPS, max(EXACT_EPS, PROJECTED_EPS / (8 * self.kernel_.gamma * top + 1))
        )

    def _map(self, X: Matrix) -> Array:
        check_rows(self.kernel_, self._table(X))
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        step = max(16, 16 * TILE_BYTES // (8 * self.additive_.n_features_out_))
        for rows in cuts(X.shape[0], step):
            F[rows] = self.fourier_.transform(self.additive_.transform(X[rows]))
        return F

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
