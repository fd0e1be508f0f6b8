"""Problems on arrays, for tests of the parts of a study."""

import numpy as np

from mercer.automl.budget import Clock
from mercer.automl.machines import MachineSetting
from mercer.automl.metrics import METRICS
from mercer.automl.recipes import EXPLICIT, LINEAR, Recipe
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.kernels import Gaussian, Laplace

SETTING = MachineSetting(Laplace(2.0, norm=1), 0.1)
KINDS = [LINEAR, EXPLICIT, Recipe("fourier", Gaussian(1.0)), Recipe("landmarks", Gaussian(1.0))]


def problem(n=600, seed=0, classes=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return SearchProblem(
        TableRows(X, y, np.arange(n), **more), METRICS["accuracy" if classes else "r2"], classes
    )


def forever():
    return Clock(1e9)


def checkers(n, seed=0, classes=2):
    """A board of fields, which no straight line parts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, size=(n, 2)).astype(np.float32)
    y = (np.floor(X).sum(1) % classes).astype(int)
    return SearchProblem(TableRows(X, y, np.arange(n)), METRICS["accuracy"], classes)
