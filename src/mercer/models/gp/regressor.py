"""GaussianProcessRegressor: exact, on the operator, over landmarks or over features; the plan says which, and why."""
from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from mercer.models.gp.checks import Checks
from mercer.models.gp.features import VarianceStarvationWarning
from mercer.store import register

__all__ = ["GaussianProcessRegressor", "VarianceStarvationWarning"]


@register("gp.GaussianProcessRegressor")
class GaussianProcessRegressor(RegressorMixin, Checks):
    """y = prior_mean + f(x) + e with f ~ GP(0, scale k) and e ~ N(0, noise).

    Parameters
    ----------
    kernel : any kernel expression, a name as in `KernelRidge`, or None: the best by evidence of Matern-3/2, Matern-5/2,
        rational quadratic, Gaussian and (exact way, 200 rows or more) Matern-5/2 + Matern-1/2, with one bandwidth a column.
        "precomputed": X is the Gram matrix, (n, n) in `fit` and (m, n) in `predict`, which then tells means only (exact way).
    noise : the variance of e: a number, one number a row (in `fit` only), or "learn": noise, scale and the parameters of the
        kernel at the maximum of the evidence. With a given noise the scale is 1 and the kernel as it is given, unless there is
        none, or `fixed`, `tied`, `bounds` or `priors` say otherwise. Zero interpolates (exact and iterative ways), as 1e-12 of
        scale k(x, x) for rounding's sake; where the kernel is singular at the rows, so that y is missed, a warning says so.
    via : "exact" (Cholesky, float64), "iterative" (conjugate gradients on the operator), "landmarks", "features", a value of
        `mercer.methods`, or "auto": exact up to 5,000 rows where the n x n matrix fits in `memory_limit`, landmarks beyond
        (iterative for several outputs). The iterative way is the exact one to a residual of 1e-6 |y| in the mean, 2 % of the
        noise in the variance, and a standard error of 0.001 n (or of 512 probes) in the evidence. A first `partial_fit` with
        "auto" means features. Over features only noise and scale are learnt, and nothing can be said of them.
    lift : instead of a kernel, the features themselves.
    prior_mean : a number, "y" (the mean of the y seen), or "auto": "y" where the hyper-parameters are learnt, else 0.
    fixed : names of parameters that stay as given, by `kernel.get_params()`, "scale"; "all" of the kernel's; True: all as given,
        scale 1; (): all are learnt. None: () with noise="learn" or without a kernel, else "all" unless something is said of them.
        Where an amplitude ("by") is fixed, bounded or has a prior, the scale is 1, so that it is what was said.
    tied : groups of names that share one value, as in [("terms__0__bandwidth", "terms__1__bandwidth")].
    bounds : {name: (low, high)} in the units of y; without, a factor of 10,000 about the starts, noise 1e-9 to 1e4 and scale 1e-9
        to 1e9 times var(y). In no way is less noise learnt: copies of rows would be all that counts. Parameters that are 0 stay
        0. With several outputs and something said of noise, scale or an amplitude, or a given noise, all share one unit.
    priors : {name: `LogNormal(median, spread)`, `Gamma(shape, rate)` or `InverseGamma(shape, scale)`} of
        `mercer.priors`; the parameters are then those of the largest posterior density.
    n_restarts : starts of the search beside those at the given and at data-scaled values.
    learn_rows : rows whose evidence the kernel's parameters are learnt from; where there are fewer, all. None: all of them (exact
        way), 3,000 (on the operator), or 3,000 and from there a few steps by all rows over 512 landmarks, of which the better by
        the evidence of all rows is kept (landmarks). "all" takes such steps on the operator too, by products with K.
    restore_variance : with landmarks, add scale (k(x, x) - |phi(x)|^2), which they leave out, to every variance: far from the
        data it is then the prior's. Noise that is learnt in `fit` leaves that out too: it is counted as noise of the rows (the
        fully independent training conditional). With a given noise, or in a stream, the rows have that noise alone.
    memory_limit : of n x n and D x D arrays, as in "4GB"; 1 GB where None.

    Hyper-parameters are searched by L-BFGS on their logarithms, from several starts on a few hundred rows, then on more and
    more of them. The scale is found in closed form; over landmarks noise and scale are those of the best evidence of all rows, or
    of the search where something is said of them. One row, or equal y, tell neither: both are then |y|^2 / (n + 1).

    A map of finitely many features has no prior variance left once the data tell all its directions. Where the map is an
    approximation of its kernel and the data tell more than half of its D directions (`effective_dimension_`), a
    `VarianceStarvationWarning` says so: far from the data its variance is then about 1 - effective_dimension_ / D of the right
    one. Landmarks without `restore_variance` warn in `predict`, at points where |phi(x)|^2 < k(x, x) / 2.

    Factors and moments are by BLAS in as many threads as it has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Attributes: `kernel_` (scale included), `noise_`, `scale_`, `prior_mean_`, `log_marginal_likelihood_` with its standard error
    `log_marginal_likelihood_error_` (0 but for the iterative way), `plan_`; over points `process_`, `loo_predictions_`,
    `loo_variances_`, `loo_log_densities_`, `loo_score_`; over features `coef_`, `effective_dimension_`, `lift_`, `moments_`.

    Rasmussen and Williams, Gaussian processes for machine learning (2006), chapters 2 and 5; MacKay, Bayesian interpolation
    (1992); Quinonero-Candela and Rasmussen, A unifying view of sparse approximate GP regression (2005); Snelson and Ghahramani,
    Sparse Gaussian processes using pseudo-inputs (2006); Titsias, Variational learning of inducing variables (2009).

    >>> import numpy as np
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> m = GaussianProcessRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> mean, std = m.predict([[3.0], [30.0]], return_std=True)
    >>> round(float(mean[0]), 2), bool(std[0] < 0.01 < std[1])
    (0.14, True)

    A wave on the first column and a line on the second, with a prior of the wave's bandwidth; f is y without the noise:

    >>> from mercer.kernels import Gaussian, Linear
    >>> from mercer.priors import LogNormal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(80, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=80)
    >>> k = Gaussian().on_columns([0]) + Linear().on_columns([1])
    >>> m = GaussianProcessRegressor(k, priors={"terms__0__kernel__bandwidth": LogNormal(1.5, 0.3)}, random_state=0).fit(X, y)
    >>> of_y, of_f = (m.predict(X[:1], return_std=True, of=what)[1][0] for what in ("y", "f"))
    >>> bool(of_f < of_y), bool(0.75 < m.calibration()[0.9] <= 1)
    (True, True)
    """

    def __init__(
        self, kernel: Any = None, noise: Any = "learn", via: Any = "auto", *, lift: Any = None, prior_mean: Any = "auto",
        fixed: Any = None, tied: Any = (), bounds: Any = None, priors: Any = None, n_restarts: int = 1,
        learn_rows: Any = None, restore_variance: bool = True, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._many()
        tags.target_tags.single_output = True
        return tags


