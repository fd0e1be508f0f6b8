"""Pages on learners over kernels and features: Gaussian processes, support vectors, ridge, principal
components."""

from __future__ import annotations

import numpy as np

from mercer.gallery.page import Names, Page

PROCESS = Page(
    slug="process",
    title="From Bayesian linear regression to Gaussian processes",
    claim="Put a normal law on the weights and integrate them out: only inner products remain, and any kernel may take "
    "their place. The posterior of f has a mean and a variance everywhere; that of y adds the noise.",
    look=(
        "Far from the points the band is as wide as the prior; a point pins it down nearby, as far as the kernel reaches.",
        "With the kernel 1 + xz the same formulas are Bayesian linear regression: lines, and a band that opens.",
        "Leave the noise out of the inverse, as the note does: the mean runs through every point, and swings.",
    ),
    code="""
import numpy as np
from mercer import GaussianProcessRegressor
from mercer.kernels import Matern

x = np.array([-4.0, -2.6, -2.1, -0.4, 0.6, 1.1, 2.9])
y = np.array([-0.9, 0.2, 0.5, 0.9, 0.1, -0.3, 0.8])
model = GaussianProcessRegressor(Matern(1.0, nu=2.5), noise=0.04, prior_mean=0.0, fixed="all")
grid = np.linspace(-5, 5, 81)[:, None]
mean, of_f = model.fit(x[:, None], y).predict(grid, return_std=True, of="f")
of_y = model.predict(grid, return_std=True)[1]
""",
    data=lambda n: {
        "x": n["x"],
        "y": n["y"],
        "grid": n["grid"][:, 0],
        "normals": np.random.default_rng(1).normal(size=(81, 4)),
        "mean": n["mean"],
        "f": n["of_f"],
    },
    slips=("noise",),
)

SVM = Page(
    slug="svm",
    title="One machine, three kernels",
    claim="A support vector machine is a sum of kernels at few of its points. With a linear, a cubic and a Gaussian "
    "kernel the same points give a line, a cubic curve and islands; C says what an error costs.",
    look=(
        "Ringed points are support vectors: drag any other point a little and nothing moves.",
        "Dashed lines are the margin, f = ±1; as C grows it narrows, and fewer points lie inside.",
        "Without the bias, as in the note's dual, every curve of the linear machine passes the origin.",
    ),
    code="""
import numpy as np
from mercer import KernelSVC
from mercer.kernels import Gaussian, Linear, Polynomial

rng = np.random.default_rng(7)
X = np.vstack([rng.normal([0.9, 0.7], 0.6, (20, 2)), rng.normal([-0.5, -0.2], 0.7, (20, 2))])
y = np.repeat([1, -1], 20)
machines = [KernelSVC(k, C=1.0, tol=1e-8).fit(X, y) for k in (Linear(), Polynomial(3), Gaussian(0.7))]
supports = [len(m.support_) for m in machines]
""",
    data=lambda n: {"X": n["X"], "y": n["y"], "supports": n["supports"]},
    slips=("dual",),
)

RIDGE = Page(
    slug="ridge",
    title="Ridge in primal and dual: the same numbers",
    claim="Ridge regression solves D equations for the weights of the features, or n for the weights of the points. "
    "(F'F + αI)⁻¹F'y and F'(FF' + αI)⁻¹y are the same vector.",
    look=(
        "The two curves lie on each other to rounding, at every penalty and degree.",
        "With more features than points the dual is the smaller system; with more points, the primal.",
        "Shrink the penalty at a high degree: weights explode, in both forms alike.",
    ),
    code="""
import numpy as np
from mercer import KernelRidge
from mercer.kernels import Polynomial
from mercer.lifts import Monomials

rng = np.random.default_rng(8)
x = np.sort(rng.uniform(-1, 1, 18))[:, None]
y = np.cos(4 * x[:, 0]) + 0.2 * rng.normal(size=18)
primal = KernelRidge(lift=Monomials(6, weights="kernel"), alpha=0.01, fit_intercept=False).fit(x, y)
dual = KernelRidge(Polynomial(6), alpha=0.01, via="exact", fit_intercept=False).fit(x, y)
difference = np.abs(primal.predict(x) - dual.predict(x)).max()
""",
    data=lambda n: {
        "x": n["x"][:, 0],
        "y": n["y"],
        "w": np.ravel(n["primal"].coef_),
        "difference": n["difference"],
    },
)


def _rings(n: Names) -> dict[str, object]:
    return {
        "X": n["X"],
        "ring": n["ring"],
        "bandwidths": n["bandwidths"],
        "labels": [m.labels_ for m in n["clusters"]],
    }


RINGS = Page(
    slug="rings",
    title="Rings: kernel principal components and clusters",
    claim="No line through the plane tells two rings apart, and no two centres in it do. Among the principal components "
    "of the lifted points one does, and with a kernel of the right width the clusters of the lifted points are the rings.",
    look=(
        "At a middling bandwidth the first components bend the rings apart; at a large one they are the plane again.",
        "Between bandwidths of about 0.45 and 0.9 the clusters are the rings; narrower ones make arcs, wider ones halves.",
        "Colours are the clusters that Mercer found, shapes the rings.",
    ),
    code="""
import numpy as np
from mercer import KernelKMeans, KernelPCA
from mercer.kernels import Gaussian

rng = np.random.default_rng(12)
ring, angle = np.repeat([0, 1], 40), rng.uniform(0, 2 * np.pi, 80)
X = ((0.4 + 1.6 * ring) * [np.cos(angle), np.sin(angle)]).T + 0.08 * rng.normal(size=(80, 2))
bandwidths = np.geomspace(0.15, 4, 16)
clusters = [KernelKMeans(2, Gaussian(b), n_init=8, random_state=0).fit(X) for b in bandwidths]
scores = KernelPCA(3, kernel=Gaussian(0.6)).fit_transform(X)
""",
    data=_rings,
)

PAGES = (PROCESS, SVM, RIDGE, RINGS)
