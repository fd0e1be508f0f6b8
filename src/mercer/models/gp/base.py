"""What a fitted Gaussian process shows, and what must hold of it; files that had its parts one by
one are put together to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer import methods
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.lifts.base import seed_of
from mercer.models.base import KernelEstimator
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.landmarks import LandmarkResidual, is_projection
from mercer.models.gp.linear import FeatureTargets
from mercer.models.gp.parts import all_logs, mean_slopes, of_points, slope_variance
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.posterior import LeaveOneOut, Outputs, Posterior
from mercer.models.gp.problem import ProcessSettings, check_count, check_shares
from mercer.models.gp.samples import SampledFunctions
from mercer.models.intervals import COVERAGES, plot_coverages, shares_inside, standardised
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.settings import FittedKernel, FittedLift, Seed
from mercer.plans import Plan
from mercer.stats import Moments

NOT_LEFT_OUT = "calibration without X and y leaves rows out in closed form, for which via='exact' is needed; give X and y."
PARTS = (
    "process_",
    "plan_",
    "_units",
    "_flat",
    "_dtype",
    "_found",
    "_candidate",
    "_shares",
    "_large",
    "_unit",
    "_spread",
    "_approximate",
    "moments_",
    "lift_",
    "n_features_lifted_",
)


class ProcessEstimator(KernelEstimator):
    """An estimator that holds one posterior: `posterior_`, of points or over features."""

    posterior_: Posterior

    must = dict(posterior_=Is("PointPosterior", "FeaturePosterior"))

    def _laws(self) -> str | None:
        reads = self.posterior_.reads
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has a posterior over {reads} columns, which are not those that it takes"
        )

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in vars(self)

    def _posterior(self) -> Posterior:
        if not self.__sklearn_is_fitted__():  # the prior can be asked, so scikit-learn does not
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit first."
            )
        return self.posterior_

    @property
    def plan_(self) -> Plan:
        return self._posterior().plan

    @property
    def kernel_(self) -> FittedKernel:
        """The kernel of f, with its scale where there is one output."""
        return self._posterior().scaled_kernel

    @property
    def noise_(self) -> float | Array:
        """The variance of e, given or learnt; one a row or an output where there are several."""
        p, o = self._posterior(), self._outputs()
        return o.each(p.learnt_noise * o.unit**2) if o.noise is None else o.noise

    @property
    def scale_(self) -> float | Array:
        """What multiplies the kernel; one an output where there are several."""
        p, o = self._posterior(), self._outputs()
        return o.each(p.scale * o.unit**2)

    @property
    def prior_mean_(self) -> float | Array:
        return self._outputs().each(self._outputs().mean)

    def _outputs(self) -> Outputs:
        return self._posterior().outputs

    @property
    def log_marginal_likelihood_(self) -> float:
        """log p(y) at the hyper-parameters, summed over outputs."""
        return self._posterior().log_marginal_likelihood

    @property
    def theta_(self) -> dict[str, float]:
        """The logarithms of the hyper-parameters by name, of an exact model with a kernel."""
        try:
            return of_points(self._posterior(), "theta_").theta
        except ValueError as e:
            raise AttributeError(str(e)) from e

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """log p(y) of the rows of `fit` at other hyper-parameters; and its slopes by them.

        Parameters
        ----------
        theta : dict of float, or array-like, default=None
            Logarithms by name, or all in the order of `theta_`; what a dict leaves out, and all
            where None, is as it was fitted.
        eval_gradient : bool, default=False
            Whether to give the slopes too, in the order of `theta_`.

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor, kernels
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> m = GaussianProcessRegressor(kernels.Gaussian()).fit(X, np.sin(X[:, 0]))
        >>> [*m.theta_]
        ['bandwidth', 'noise', 'scale']
        >>> m.log_marginal_likelihood({"bandwidth": 3.0}) < m.log_marginal_likelihood()
        True
        """
        p = of_points(self._posterior(), "log_marginal_likelihood")
        value, slopes = p.likelihood_at(all_logs(p.theta, theta))
        return (value, slopes) if eval_gradient else value

    @property
    def log_marginal_likelihood_error_(self) -> float:
        """Its standard error: zero but for the iterative way, whose determinant is estimated."""
        return self._posterior().log_marginal_likelihood_error

    def _over_features(self, name: str) -> FeaturePosterior:
        if not isinstance(p := self._posterior(), FeaturePosterior):
            raise AttributeError(
                f"{name} is there for models over features or landmarks; this one is of points."
            )
        return p

    @property
    def coef_(self) -> Array:
        return self._over_features("coef_").solution.posterior.coef

    @property
    def effective_dimension_(self) -> float:
        return self._over_features("effective_dimension_").solution.posterior.effective

    @property
    def lift_(self) -> FittedLift:
        return self._over_features("lift_").phi.lift

    @property
    def n_features_lifted_(self) -> int:
        return self._over_features("n_features_lifted_").phi.width

    @property
    def moments_(self) -> Moments:
        """Of [phi, y]."""
        if (found := self._over_features("moments_").moments) is None:
            raise AttributeError(
                "moments_ is there for models over features whose D x D statistics fit memory_limit."
            )
        return found

    # slopes
    def gradient(self, X: Any, return_var: bool = False) -> Any:
        """The posterior mean of df/dx at every row of X, and with it its variance.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The rows.
        return_var : bool, default=False
            Whether to give the variances of all slopes too. They are finite where the kernel is
            smooth enough where rows meet: refused for Matern with nu <= 1, Laplace with an
            exponent < 2 and the like; and over features.

        Returns
        -------
        ndarray of shape (n, d), or (n, q, d) of several outputs; or a pair of such

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor, kernels
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> m = GaussianProcessRegressor(kernels.Gaussian(), noise=1e-4).fit(X, np.sin(X[:, 0]))
        >>> slope, variance = m.gradient([[np.pi]], return_var=True)
        >>> slope.round(2), bool(variance < 0.01)
        (array([[-1.]]), True)
        """
        p, rows, o = self._posterior(), self._rows(X, reset=False), self._outputs()
        rows = Table(rows.data)
        G = mean_slopes(p, rows)
        mean = G[:, 0] if o.flat else G
        if not return_var:
            return mean
        V = slope_variance(p, rows)[:, None] * o.unit[:, None] ** 2
        return mean, (V[:, 0] if o.flat else V).astype(rows.dtype)

    # leave-one-out
    def _left_out(self) -> tuple[LeaveOneOut, Outputs]:
        return self._posterior().left_out, self._outputs()

    @property
    def loo_predictions_(self) -> Array:
        """The mean of y of each row by the model of all others, in closed form.

        At these hyper-parameters.
        """
        left, o = self._left_out()
        return o.shaped(o.mean + o.unit * left.mean)

    @property
    def loo_variances_(self) -> Array:
        """The variance of y of each row by the model of all others."""
        left, o = self._left_out()
        return o.shaped(o.unit**2 * left.variance)

    @property
    def loo_log_densities_(self) -> Array:
        """log p(y_i | all others)."""
        left, o = self._left_out()
        return o.shaped(left.log - np.log(o.unit))

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`, the mean over outputs.

        Of a constant y 1 where it is met, else 0, as in scikit-learn.
        """
        return self._posterior().left_out.score()

    # draws
    def sample_functions(
        self,
        n_samples: int = 1,
        posterior: bool = True,
        n_features: int = 4096,
        random_state: Seed = 0,
    ) -> SampledFunctions:
        """Functions drawn once and evaluated anywhere.

        F = m.sample_functions(3); F(X) is (n, 3), F(X)[:, j] always of one function; of q
        outputs (n, q, 3). A draw of the prior by random features of the kernel, then Matheron's
        update by the points, which is exact: the draws differ from the posterior only as the
        features differ from the kernel. A model over features draws its weights, one over
        landmarks also what these leave out (where `restore_variance` says so), from the prior.
        """
        count, size = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
        return self._posterior().functions(
            count, posterior=posterior, n_features=size, seed=seed_of(random_state)
        )

    # honesty
    def calibration(
        self, X: Any = None, y: Any = None, coverages: Sequence[float] = COVERAGES
    ) -> dict[float, float]:
        """The share of y inside the central interval of each nominal coverage.

        Without X and y by leave-one-out (via="exact").

        >>> from mercer import GaussianProcessRegressor
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> sorted(GaussianProcessRegressor().fit(X, np.sin(X[:, 0])).calibration())
        [0.5, 0.8, 0.9, 0.95]
        """
        nominal = check_shares(coverages, "coverages").tolist()
        return shares_inside(self._standardised(X, y), nominal)

    def _standardised(self, X: Any, y: Any) -> Array:
        """(y - mean) / std of every row."""
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither: their rows are then left out in turn.")
        p = self._posterior()
        if X is not None:
            rows, o = Table(self._rows(X, reset=False).data), p.outputs
            spread = np.sqrt(p.variance(rows, p.noise_level))[:, None] * o.unit
            return standardised(y, o.shaped(p.mean(rows)), o.shaped(spread))
        try:
            return p.left_out.standardised()
        except AttributeError as e:
            raise ValueError(NOT_LEFT_OUT) from e

    def plot_calibration(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Nominal against empirical coverage, on Matplotlib's axes, which are returned."""
        return plot_coverages(lambda nominal: self.calibration(X, y, nominal), ax)


def upgraded(cls: type[ProcessEstimator], state: dict[str, Any]) -> dict[str, Any]:
    """The attributes as they are now, from files that had the parts of a posterior one by one."""
    old = {name: state.pop(name) for name in PARTS if name in state}
    if "plan_" not in old:
        return state
    known = cls().get_params(deep=False)
    model = cls(**{name: state[name] for name in known if name in state})
    s = ProcessSettings.of(model)
    return {
        **state,
        "posterior_": _points_of_before(s, old) if "process_" in old else _over_features(s, old),
    }


def _points_of_before(s: ProcessSettings, old: dict[str, Any]) -> PointPosterior:
    mean, unit = old["_units"]
    outputs = Outputs(mean, unit, old.get("_flat", True), s.noise)
    return replace(old["process_"], outputs=outputs, plan=old["plan_"])


def _over_features(s: ProcessSettings, old: dict[str, Any]) -> FeaturePosterior:
    if old.get("_large", False):  # there were too many rows to factor
        s = replace(s, method=methods.Landmarks())
    candidate, found = old.get("_candidate"), old.get("_found")
    origin, unit = old["_unit"]
    held = FeatureTargets.held_by(s, None if candidate is None else candidate.held)
    targets = FeatureTargets(
        origin, unit, s.prior, s.noise, held, old.get("_flat", True), old.get("_spread", 1.0)
    )
    phi, eps = (
        FittedMap(old["lift_"], min(BATCH_BYTES, s.memory / 8)),
        float(np.finfo(old["_dtype"]).eps),
    )
    residual = (
        LandmarkResidual(s.restore_variance, old.get("_shares")) if is_projection(phi) else None
    )
    return FeaturePosterior(
        plan=old["plan_"],
        phi=phi,
        targets=targets,
        moments=old.get("moments_"),
        approximate=old["_approximate"],
        eps=eps,
        solved=found,
        residual=residual,
    )
