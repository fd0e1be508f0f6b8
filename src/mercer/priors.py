"""Priors of hyper-parameters, for `GaussianProcessRegressor(priors={name: prior})`: what is thought
of a value before the data.

>>> import numpy as np
>>> from mercer.models import GaussianProcessRegressor
>>> from mercer.kernels import Gaussian
>>> X = np.linspace(0, 6, 30)[:, None]
>>> m = GaussianProcessRegressor(Gaussian(), priors={"bandwidth": LogNormal(median=0.5, spread=0.01)})
>>> round(m.fit(X, np.sin(X[:, 0])).posterior_.kernel.bandwidth, 1)
0.5
"""

from mercer.models.gp.priors import Gamma, InverseGamma, LogNormal, Prior

__all__ = ["Gamma", "InverseGamma", "LogNormal", "Prior"]
