"""Measures: the radius is the quantile of the norm."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import Matern

from mercer.ops.frequencies import frequencies
from mercer.ops.measures import (
    CauchyColumns,
    ColumnMeasure,
    GammaMixture,
    LaplaceColumns,
    Normal,
    PeriodicColumns,
    Sphere,
    Stable,
    StableColumns,
    Student,
)
from mercer.ops.philox import Stream

KERNELS = {  # measure: the kernel as a function of differences (n, d)
    Normal(): lambda D: np.exp(-(D**2).sum(-1) / 2),
    Student(1.0): lambda D: np.exp(-np.linalg.norm(D, axis=-1)),
    Student(3.0): lambda D: Matern(nu=1.5)(D, np.zeros((1, D.shape[1])))[:, 0],
    Student(2.4): lambda D: Matern(nu=1.2)(D, np.zeros((1, D.shape[1])))[:, 0],
    GammaMixture(1.0, 2.0): lambda D: 1 / (1 + (D**2).sum(-1)),
    GammaMixture(0.5, 2.0): lambda D: (1 + (D**2).sum(-1)) ** -0.5,
    Sphere(): lambda D: np.sinc(np.linalg.norm(D, axis=-1) / np.pi),
    CauchyColumns(): lambda D: np.exp(-abs(D).sum(-1)),
    Stable(0.7): lambda D: np.exp(-(np.linalg.norm(D, axis=-1) ** 0.7)),
    Stable(1.3): lambda D: np.exp(-(np.linalg.norm(D, axis=-1) ** 1.3)),
    StableColumns(0.7): lambda D: np.exp(-(abs(D).sum(-1) ** 0.7)),
    LaplaceColumns(): lambda D: np.prod(1 / (1 + D**2), axis=-1),
    PeriodicColumns(0.8, 3.0): lambda D: np.exp(-2 * (np.sin(np.pi * D / 3) ** 2).sum(-1) / 0.8**2),
}


@pytest.mark.parametrize(
    "law", [law for law in KERNELS if not isinstance(law, ColumnMeasure)], ids=str
)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_radius_is_the_quantile_of_the_norm(law, d):
    if isinstance(law, Sphere):
        return
    norms = np.linalg.norm(frequencies(law, d, 4000, Stream(1), "iid"), axis=1)
    quantiles = np.sort(law.radius((np.arange(4000) + 0.5) / 4000, d))
    assert (np.diff(quantiles) > 0).all()
    assert stats.ks_2samp(norms, quantiles).pvalue > 1e-3
