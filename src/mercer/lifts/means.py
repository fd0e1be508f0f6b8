"""Landmarks that are no rows: the means of clusters."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.kernels import measured


def means(rows: Table, first: Array, weight: Array, kernel: Any = None) -> Array:
    """Lloyd's k-means from the rows `first`, which lie as the kernel measures them: the points about
    which the rows lie closest (Zhang, Tsang and Kwok, 2008)."""
    from sklearn.cluster import KMeans

    seen = measured(kernel, rows)
    start = seen[first]
    start = start.toarray() if sp.issparse(seen) else start
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # means that meet: those that are told by others are left out
        found = KMeans(len(first), init=start, n_init=1, max_iter=20).fit(
            seen, sample_weight=weight
        )
    if seen is rows.data:
        return found.cluster_centers_
    return _centres(rows, found.labels_, weight)


def _centres(rows: Table, labels: Array, weight: Array) -> Array:
    """The means of the rows of each cluster that has some: a linear map takes them to the means of
    what it makes of the rows."""
    clusters, at = np.unique(labels[weight > 0], return_inverse=True)
    share = sp.csr_array(
        (weight[weight > 0], (at, np.flatnonzero(weight > 0))), (len(clusters), len(rows))
    )
    total = share @ rows.data
    total = total.toarray() if sp.issparse(total) else total
    return np.asarray(total / share.sum(1)[:, None])
