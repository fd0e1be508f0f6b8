"""Priors of hyper-parameters against those of SciPy."""

import numpy as np
import pytest
from scipy.stats import gamma, invgamma, lognorm

from mercer.models.gp.priors import Gamma, InverseGamma, LogNormal


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LogNormal(2.0, 0.7), lognorm(0.7, scale=2.0)),
        (Gamma(3.0, 2.0), gamma(3.0, scale=0.5)),
        (InverseGamma(3.0, 4.0), invgamma(3.0, scale=4.0)),
    ],
    ids=["lognormal", "gamma", "inverse gamma"],
)
def test_priors_against_scipy(ours, theirs):
    v = np.array([0.3, 1.0, 4.0])
    logs = np.array([ours.log(x) for x in v])
    np.testing.assert_allclose(logs - logs[0], theirs.logpdf(v) - theirs.logpdf(v[0]))
    slopes = [(ours.log(x * np.exp(1e-6)) - ours.log(x * np.exp(-1e-6))) / 2e-6 for x in v]
    np.testing.assert_allclose([ours.slope(x) for x in v], slopes, rtol=1e-6)
