"""The path as a picture and as a table: what each feature is worth at every penalty, and what folds
made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.models.intervals import new_axes
from mercer.models.sparse.fit import SparseModel

MOST_NAMED = 12  # features in a legend


def path_table(m: SparseModel) -> dict[str, list[float]]:
    """Of every penalty: how many features it keeps, its gap, and with folds the mean loss of rows
    left out, with the standard error of its difference from the least."""
    path = m.path
    table: dict[str, list[float]] = {
        "alpha": path.alphas.tolist(),
        "features": path.sizes.tolist(),
        "gap": path.gaps.tolist(),
    }
    if m.losses is not None:
        table |= {"loss": m.losses.means.tolist(), "error": m.losses.errors.tolist()}
    return table


def effects(m: SparseModel) -> Array:
    """What one standard deviation of each feature of the path adds to a score, (m, C, k); the
    coefficients themselves where a file of before does not tell deviations."""
    spread = m.path.deviations
    return m.path.coef if spread is None else m.path.coef * spread


def plot_path(m: SparseModel, labels: list[str], ax: Any) -> Any:
    """One line a feature and score, those of the model in colour and with their names, on
    Matplotlib's axes, which are returned."""
    ax = new_axes("plot_path") if ax is None else ax
    path, E = m.path, effects(m)
    name = dict(zip(m.ids.tolist(), m.names, strict=True))
    order = np.argsort(-np.abs(E[m.place]).max(0), kind="stable").tolist()
    shown = [j for j in order if int(path.ids[j]) in name]
    for j in sorted(set(order) - set(shown)):
        for c in range(E.shape[1]):
            ax.plot(path.alphas, E[:, c, j], color="lightgrey", linewidth=0.5)
    for place, j in enumerate(shown):
        for c in np.flatnonzero(E[:, :, j].any(0)).tolist():
            told = name[int(path.ids[j])] + (f", {labels[c]}" if labels else "")
            ax.plot(path.alphas, E[:, c, j], label=told if place < MOST_NAMED else None)
    ax.axvline(m.alpha, color="grey", linestyle="dashed", linewidth=1)
    ax.set(xlabel="penalty", ylabel="effect of one standard deviation", xscale="log")
    ax.invert_xaxis()
    if shown:
        ax.legend()
    return ax
