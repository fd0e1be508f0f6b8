"""Three kernels, one SVM: linear, cubic and Gaussian boundaries of the same rows.

.venv/bin/python -m pip install matplotlib
.venv/bin/python docs/examples/svm_boundaries.py boundaries.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import KernelSVC
from mercer.kernels import Gaussian, Linear, Polynomial

COLOURS = np.array(["#c8553d", "#2d6a8e"])
MACHINES = {"Linear()": Linear(), "Polynomial(3)": Polynomial(3), "Gaussian(0.5)": Gaussian(0.5)}


def panel(ax, title, kernel, X, y):
    """The rows, the sides, the boundary (f = 0) and the margins (f = -1, 1); support vectors are ringed."""
    model = KernelSVC(kernel, C=10.0, via="exact").fit(X, y)
    grid = np.meshgrid(np.linspace(-1.7, 2.7, 300), np.linspace(-1.2, 1.7, 200))
    f = model.decision_function(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    ax.contourf(*grid, f, levels=[-np.inf, 0, np.inf], colors=["#f6e3de", "#dfeaf1"])
    ax.contour(
        *grid,
        f,
        levels=[-1, 0, 1],
        colors="#444444",
        linestyles=["dashed", "solid", "dashed"],
        linewidths=[0.8, 1.6, 0.8],
    )
    ax.scatter(*X.T, s=16, c=COLOURS[y])
    ax.scatter(*X[model.support_].T, s=52, facecolors="none", edgecolors="#444444", linewidths=0.8)
    ax.set_title(
        f"{title}: {model.score(X, y):.0%} of the rows, {len(model.support_)} support vectors",
        fontsize=9,
    )
    ax.set(xticks=[], yticks=[])


def main(path):
    X, y = make_moons(150, noise=0.15, random_state=0)
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    for ax, (title, kernel) in zip(axes, MACHINES.items(), strict=True):
        panel(ax, title, kernel, X, y)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "boundaries.png")
