"""A table of two honest columns and a target, and what a column in it becomes."""

import numpy as np
import pyarrow as pa

from mercer.tables import Columns

N = 400


def table(seed=0, n=N, **more):
    """Two honest columns, a target, and what a test adds."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    return pa.table({"a": a, "b": b, **more, "y": a + np.sin(b) + 0.1 * rng.normal(size=n)})


def treatment(found, name):
    return next(t for t in found.treatments_ if t.name == name)


def fitted(column, **settings):
    """The treatment of a column `x` beside two honest ones."""
    found = Columns("y", **settings).fit(table(x=column))
    return found, treatment(found, "x")
