"""GaussianProcessRegressor: exact, on the operator, over landmarks or over features; the plan says
which, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from mercer import methods
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.base import all_or_nothing, note_columns
from mercer.models.gp import partitions
from mercer.models.gp.base import ProcessEstimator, upgraded
from mercer.models.gp.fit import begin, fit, prior_draws, prior_moments
from mercer.models.gp.parts import term_of
from mercer.models.gp.problem import ProcessSettings, check_count, check_shares
from mercer.models.gp.sources import NO_STREAM
from mercer.models.intervals import MODEL, Interval
from mercer.models.settings import Gamma, KernelSetting, LiftSetting, MemoryLimit, Seed, Via
from mercer.store import register


def _streams(model: GaussianProcessRegressor) -> bool:
    """Whether rows may come and go."""
    if model._precomputed:
        raise AttributeError(NO_STREAM)
    return True


@register("gp.GaussianProcessRegressor")
class GaussianProcessRegressor(RegressorMixin, ProcessEstimator):
    """y = prior_mean + f(x) + e with f ~ GP(0, scale k) and e ~ N(0, noise).

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Any kernel expression, one as in `KernelRidge` (of scikit-learn's what is "fixed" stays
        so, the scale too, and WhiteKernel is the noise), or None: the best by evidence of
        Matern-3/2, Matern-5/2, rational quadratic, Gaussian and (exact way, 200 rows or more)
        Matern-5/2 + Matern-1/2, with one bandwidth a column. "precomputed": X is the Gram
        matrix, (n, n) in `fit` and (m, n) in `predict`, which then tells means only (exact
        way).
    noise : float, array-like of shape (n,), or "learn", default="learn"
        The variance of e, one number a row in `fit` only. "learn": noise, scale and the
        parameters of the kernel at the maximum of the evidence. With a given noise the scale is
        1 and the kernel as it is given, unless there is none, or `fixed`, `tied`, `bounds` or
        `priors` say otherwise. Zero interpolates (exact and iterative ways), as 1e-12 of scale
        k(x, x) for rounding's sake; where the kernel is singular at the rows, so that y is
        missed, a warning says so.
    via : str or a value of `mercer.methods`, default="auto"
        "exact" (Cholesky, float64), "iterative" (conjugate gradients on the operator),
        "landmarks", "features", a value, or "auto": exact up to 5,000 rows where the n x n
        matrix fits in `memory_limit`, landmarks beyond (iterative for several outputs). The
        iterative way is the exact one to a residual of 1e-6 |y| in the mean, 2 % of the noise
        in the variance, and a standard error of 0.001 n (or of 512 probes) in the evidence. A
        first `partial_fit` with "auto" means features. Over features only noise and scale are
        learnt, and nothing can be said of them.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        Instead of a kernel, the features themselves.
    prior_mean : float, "y" or "auto", default="auto"
        "y" is the mean of the y seen. "auto" is "y" where hyper-parameters are learnt over
        points or landmarks, and 0 where none is, and over features of other kinds (a lift,
        `Fourier(500)`), also where their noise and scale are learnt.
    fixed : collection of str, "all", True or None, default=None
        Names of parameters that stay as given, by `kernel.get_params()`, "scale"; "all" of the
        kernel's; True: all as given, scale 1; (): all are learnt. None: () with noise="learn"
        or without a kernel, else "all" unless something is said of them. Where an amplitude
        ("factor") is fixed, bounded or has a prior, the scale is 1, so that it is what was
        said.
    tied : collection of tuples of str, default=()
        Names that share one value, as in [("terms__0__bandwidth", "terms__1__bandwidth")].
    bounds : dict of (float, float) by name, default=None
        {name: (low, high)} in the units of y; without, a factor of 10,000 about the starts,
        noise 1e-9 to 1e4 and scale 1e-9 to 1e9 times var(y). In no way is less noise learnt:
        copies of rows would be all that counts. Parameters that are 0 stay 0. With several
        outputs and something said of noise, scale or an amplitude, or a given noise, all share
        one unit.
    priors : dict of Prior by name, default=None
        {name: `LogNormal(median, spread)`, `Gamma(shape, rate)` or `InverseGamma(shape,
        scale)`} of `mercer.priors`; the parameters are then those of the largest posterior
        density.
    n_restarts : int, default=1
        Starts of the search beside those at the given and at data-scaled values.
    learn_rows : int, "all" or None, default=None
        Rows whose evidence the kernel's parameters are learnt from; where there are fewer, all.
        None: all of them (exact way), 3,000 (on the operator), or 3,000 and from there a few
        steps by all rows over 512 landmarks, of which the better by the evidence of all rows is
        kept (landmarks). "all" takes such steps on the operator too, by products with K.
    restore_variance : bool, default=True
        With landmarks, add scale (k(x, x) - |phi(x)|^2), which they leave out, to every
        variance: far from the data it is then the prior's. Noise that is learnt in `fit` leaves
        that out too: it is counted as noise of the rows (the fully independent training
        conditional). With a given noise, or in a stream, the rows have that noise alone.
    memory_limit : float or str, default=None
        Of n x n and D x D arrays, as in "4GB"; 1 GB where None.
    random_state : int, RandomState, Generator or None, default=None
        The seed of starts, samples of rows, landmarks, features and probes.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.
    device : str, default="cpu"
        "cuda" (or "cuda:1") takes products with K there: "auto" is then iterative from 5,000 to
        200,000 rows. "auto" takes a GPU where there is one; `plan_` says where it was.

    Attributes
    ----------
    posterior_ : Posterior
        The fitted value.
    kernel_ : Kernel
        With its scale.
    noise_, scale_ : float or ndarray
        One an output where there are several; noise also one a row where so given.
    prior_mean_ : float or ndarray of shape (n_outputs,)
    log_marginal_likelihood_, log_marginal_likelihood_error_ : float
        log p(y), and its standard error: 0 but for the iterative way.
    plan_ : Plan
    loo_predictions_, loo_variances_, loo_log_densities_ : ndarray of shape (n,) or (n, q)
        Over points, of q outputs, as `loo_score_`.
    loo_score_ : float
    coef_ : ndarray of shape (D,)
        Over features, as what follows.
    effective_dimension_ : float
    lift_ : Lift
    moments_ : Moments

    Notes
    -----
    Hyper-parameters are searched by BFGS on their logarithms, from several starts on a few
    hundred rows, then on more and more of them. The scale is found in closed form; over
    landmarks noise and scale are those of the best evidence of all rows, or of the search where
    something is said of them. One row, or equal y, tell neither: both are then |y|^2 / (n + 1).

    A map of finitely many features has no prior variance left once the data tell all its
    directions. Where the map is an approximation of its kernel and the data tell more than half
    of its D directions (`effective_dimension_`), a `VarianceStarvationWarning` says so: far
    from the data its variance is then about 1 - effective_dimension_ / D of the right one.
    Landmarks without `restore_variance` warn in `predict`, at points where |phi(x)|^2 < k(x, x)
    / 2.

    Factors and moments are by BLAS in as many threads as it has: another OMP_NUM_THREADS may
    change the last digits, 1 never does.

    References
    ----------
    Rasmussen and Williams, Gaussian processes for machine learning (2006), chapters 2 and 5;
    MacKay, Bayesian interpolation (1992); Quinonero-Candela and Rasmussen, A unifying view of
    sparse approximate GP regression (2005); Snelson and Ghahramani, Sparse Gaussian processes
    using pseudo-inputs (2006); Titsias, Variational learning of inducing variables (2009).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> m = GaussianProcessRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> mean, std = m.predict([[3.0], [30.0]], return_std=True)
    >>> round(float(mean[0]), 2), bool(std[0] < 0.01 < std[1])
    (0.14, True)

    A wave on the first column and a line on the second, with a prior of the wave's bandwidth; f
    is y without the noise:

    >>> from mercer.kernels import Gaussian, Linear
    >>> from mercer.priors import LogNormal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(80, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=80)
    >>> k = Gaussian().on_columns([0]) + Linear().on_columns([1])
    >>> priors = {"terms__0__kernel__bandwidth": LogNormal(1.5, 0.3)}
    >>> m = GaussianProcessRegressor(k, priors=priors, random_state=0).fit(X, y)
    >>> of_y, of_f = (m.predict(X[:1], return_std=True, of=what)[1][0] for what in ("y", "f"))
    >>> bool(of_f < of_y), bool(0.75 < m.calibration()[0.9] <= 1)
    (True, True)
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        noise: Any = "learn",
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        lift: LiftSetting = None,
        prior_mean: Any = "auto",
        fixed: Any = None,
        tied: Any = (),
        bounds: Any = None,
        priors: Any = None,
        n_restarts: int = 1,
        learn_rows: Any = None,
        restore_variance: bool = True,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        verbose: bool | int = False,
        device: str = "cpu",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.noise = noise
        self.via = via
        self.lift = lift
        self.prior_mean = prior_mean
        self.fixed = fixed
        self.tied = tied
        self.bounds = bounds
        self.priors = priors
        self.n_restarts = n_restarts
        self.learn_rows = learn_rows
        self.restore_variance = restore_variance
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    _upgraded = classmethod(upgraded)

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the way, learn the hyper-parameters, and condition on y (n,) or (n, q)."""
        s = ProcessSettings.of(self)
        self.posterior_ = fit(s, *self._checked(X, y, reset=True))
        return self

    @all_or_nothing
    def _fit_dask(self, X: Any, y: Any) -> Self:
        """The same of dask collections, over features by moments of their partitions."""
        self.posterior_ = partitions.fit(ProcessSettings.of(self), X, y)
        note_columns(self, X)
        return self

    @available_if(_streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take in rows: by moments of features, or as points of a model that has them.

        The first batch fixes the map of features; it means `fit` with via="exact" or
        "iterative", and where `fixed`, `tied`, `bounds` or `priors` are given. An exact model
        grows its factor in O(n^2) a point (an iterative one solves again), and both keep their
        hyper-parameters; `fit` learns them anew.
        """
        s = ProcessSettings.of(self)
        if self.__sklearn_is_fitted__():
            rows, Y, _ = self._checked(X, y, reset=False)
            self.posterior_ = self.posterior_.with_points(Table(rows.data), Y)
            return self
        if s.asks or (s.lift is None and s.way in ("exact", "iterative")):
            return self.fit(X, y)
        if s.noise is not None and np.ndim(s.noise):
            raise ValueError(
                "noise has one number a row, which is for fit; give one number, or 'learn', in a stream."
            )
        self.posterior_ = begin(s, *self._checked(X, y, reset=True))
        return self

    @available_if(_streams)
    @all_or_nothing
    def forget(self, X: Any, y: Any) -> Self:
        """Take out rows that were taken in, each once: from moments, or points in O(n^2) each."""
        posterior = self._posterior()
        rows, Y, _ = self._checked(X, y, reset=False)
        self.posterior_ = posterior.without_points(Table(rows.data), Y)
        return self

    @available_if(_streams)
    @all_or_nothing
    def merge(self, other: object) -> Self:
        """Take in what another model over the same features has seen."""
        mine, theirs = (
            self._posterior(),
            vars(other).get("posterior_") if isinstance(other, GaussianProcessRegressor) else None,
        )
        if theirs is None:
            raise ValueError(
                f"merge takes another fitted GaussianProcessRegressor over features, got {type(other).__name__}."
            )
        self.posterior_ = mine.merged(theirs)
        return self

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Table, Array, bool]:
        """Rows, targets (n, q), and whether y had one axis."""
        rows, y = self._rows_and_targets(
            X, y, reset=reset, y_numeric=True, multi_output=self._many()
        )
        return rows, np.asarray(y, np.float64).reshape(len(y), -1), y.ndim == 1

    def _many(self) -> bool:
        """Whether y may have several columns."""
        return self.lift is None and methods.way(self.via) in ("auto", "exact", "iterative")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._many()
        tags.target_tags.single_output = True
        tags.requires_fit = False
        return tags

    # predictions
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        of: str = "y",
        term: int | None = None,
    ) -> Any:
        """The posterior mean, and with it the standard deviation or covariance of y.

        (n,) and (n, n); of f with of="f"; with `term`, of that term's part of f where the kernel
        is a sum (exact way). Of several outputs each is a column, or a slice of the last axis.
        Where noise was given for every row, that of a new y is their mean. Before `fit`, those of
        the prior: the kernel as given, scale 1, noise still to be learnt none.
        """
        if return_std and return_cov:
            raise ValueError("give return_std or return_cov, not both.")
        if not self.__sklearn_is_fitted__():
            return self._of_prior(X, return_std, return_cov, of, term)
        noise, rows, p = self._noise(of), self._asked(X), self._posterior()
        if term is not None:
            p, noise = term_of(p, term), 0.0
        o = p.outputs
        mean = o.shaped(p.mean(rows))
        if return_cov:
            return mean, o.shaped(p.covariance(rows, noise)[..., None] * o.unit**2).astype(
                rows.dtype
            )
        return (
            (mean, o.shaped(np.sqrt(p.variance(rows, noise))[:, None] * o.unit).astype(rows.dtype))
            if return_std
            else mean
        )

    def _of_prior(self, X: Any, std: bool, cov: bool, of: str, term: int | None) -> Any:
        s, rows = ProcessSettings.of(self), clone(self)._rows(X, reset=True)
        if term is not None or self._precomputed:
            raise NotFittedError("the prior has no terms or Gram matrix to tell; call fit first.")
        mean, C = prior_moments(s, rows, of, points=self._many(), full=cov)
        mean = mean.astype(rows.dtype)
        return (mean, (C if cov else np.sqrt(C)).astype(rows.dtype)) if std or cov else mean

    def _asked(self, X: Any) -> Table:
        return Table(self._rows(X, reset=False).data)

    def _noise(self, of: str) -> float:
        """The variance of e in the units of the posterior, none in f."""
        if of not in ("y", "f"):
            raise ValueError(f"of must be 'y' or 'f' (without the noise), got {of!r}.")
        return self._posterior().noise_level if of == "y" else 0.0

    def predict_quantiles(
        self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95), of: str = "y"
    ) -> Array:
        """The quantiles of y (or f) at every row, (n, k), in the order of `quantiles`."""
        q = check_shares(quantiles, "quantiles")
        mean, std = self.predict(X, return_std=True, of=of)
        return np.asarray(mean[..., None] + std[..., None] * ndtri(q), mean.dtype)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Interval:
        """(lower, upper) of y, (n,) each: the central interval of the predictive Gaussian.

        Its `.guarantee` says what that is worth.
        """
        (c,) = check_shares([coverage], "coverage").tolist()
        Q = self.predict_quantiles(X, [(1 - c) / 2, (1 + c) / 2])
        return Interval(Q[..., 0], Q[..., 1], MODEL.format(c))

    # draws
    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        posterior: bool = True,
        random_state: Seed = 0,
        of: str = "y",
    ) -> Array:
        """Draws of y (or f, with of="f") at the rows of X, (n, n_samples) or (n, q, n_samples).

        Of the posterior, or of the prior with posterior=False.

        Before `fit` there is the prior alone, with the kernel as given, the scale 1, noise still
        to be learnt none, and over features with the map of these rows.
        """
        count, rng = (
            check_count(n_samples, "n_samples"),
            np.random.default_rng(seed_of(random_state)),
        )
        if self.__sklearn_is_fitted__():
            p, noise, rows = self._posterior(), self._noise(of), self._asked(X)
            out = p.sample(rows, count, rng, noise=noise, posterior=posterior)
        else:
            s, rows = ProcessSettings.of(self), clone(self)._rows(X, reset=True)
            out = prior_draws(s, rows, count, rng, of, points=self._many())
        return np.asarray(out[:, 0] if out.shape[1] == 1 else out, rows.dtype)
