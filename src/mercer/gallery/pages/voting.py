"""Pages on learners that go row by row or let all rows vote: perceptrons, soft neighbours, smoothers."""

from __future__ import annotations

import numpy as np

from mercer.gallery.page import Page

PERCEPTRON = Page(
    slug="perceptron",
    title="The perceptron, step by step",
    claim="At every mistake, y w'x ≤ 0, the perceptron adds y x to w; it ends where some line separates the classes. It "
    "makes at most (R/γ)² mistakes, R the longest row and γ the margin of the best line.",
    look=(
        "The line turns only at a mistake, by the row that was mistaken (ringed).",
        "Drag a point towards the other class: the margin shrinks, the bound rises, and often the mistakes too.",
        "Count each row once, as a set would: the line stops learning with rows still on the wrong side.",
    ),
    code="""
import numpy as np
from mercer import KernelSVC, Perceptron
from mercer.kernels import Linear

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])    # one dimension added for the offset
y = np.where(X @ [0.3, 1.0, -1.5] > 0, 1, -1)
model = Perceptron(Linear(), fit_intercept=False, shuffle=False).fit(X, y)
best = KernelSVC(Linear(), C=np.inf, fit_intercept=False, tol=1e-8).fit(X, y)
margin = 1 / np.linalg.norm(best.dual_coef_ @ X[best.support_])
bound = (np.linalg.norm(X, axis=1).max() / margin) ** 2
""",
    data=lambda n: {
        "X": n["X"],
        "y": n["y"],
        "w": np.ravel(n["model"].coef_),
        "mistakes": n["model"].mistakes_,
        "bound": n["bound"],
    },
    slips=("set",),
)

BUDGET = Page(
    slug="budget",
    title="The kernel perceptron with a budget",
    claim="With a kernel, the perceptron keeps its mistakes as points, and there may be as many as rows. A budget limits "
    "them: the oldest leaves, or the mistake is projected onto the points that are there.",
    look=(
        "Without a budget, points pile up along the boundary.",
        "Dropping the oldest forgets parts of the spiral; projecting keeps nearly all of it with few points.",
        "Move the first slider to watch the rows come in one by one.",
    ),
    code="""
import numpy as np
from mercer import KernelPerceptron
from mercer.kernels import Gaussian

rng = np.random.default_rng(2)
turn, y = np.sqrt(rng.uniform(0.02, 1, 300)) * 3 * np.pi, np.where(np.arange(300) % 2, 1, -1)
X = (0.3 * turn * y * [np.cos(turn), np.sin(turn)]).T + 0.08 * rng.normal(size=(300, 2))
model = KernelPerceptron(Gaussian(0.6), budget=12, policy="projectron", shuffle=False).fit(X, y)
mistakes, kept = model.mistakes_, len(model.points_)
""",
    data=lambda n: {"X": n["X"], "y": n["y"], "mistakes": n["mistakes"], "kept": n["kept"]},
)

NEIGHBOURS = Page(
    slug="neighbours",
    title="Soft neighbours: everyone votes",
    claim="Let every point vote for its class with the weight k(x, x_i), and divide by the sum of the weights: the "
    "shares are confidences. A narrow kernel is the nearest neighbour, a wide one the majority.",
    look=(
        "Lines from the query are as strong as the votes; drag it into no man's land.",
        "At a small bandwidth the regions are those of the nearest point, and confidences are near 0 or 1.",
        "Far from all points the shares stay defined: votes are taken relative to the strongest.",
    ),
    code="""
import numpy as np
from mercer import SoftNeighborsClassifier
from mercer.kernels import Gaussian

rng = np.random.default_rng(4)
X = np.vstack([rng.normal([-0.8, 0.4], 0.6, (22, 2)), rng.normal([0.8, -0.3], 0.7, (22, 2))])
y = np.repeat([0, 1], 22)
model = SoftNeighborsClassifier(Gaussian(0.4), bandwidth="fixed").fit(X, y)
confidence = model.predict_proba([[0.1, 0.2]])[0, 1]
""",
    data=lambda n: {"X": n["X"], "y": n["y"], "confidence": n["confidence"]},
)

SMOOTHER = Page(
    slug="smoother",
    title="Nadaraya-Watson and its leave-one-out curve",
    claim="Predict by the mean of the y near x, weighted by the kernel. The bandwidth decides everything, and the error "
    "at points that were left out of their own prediction tells which one is good.",
    look=(
        "Too narrow follows the noise, too wide flattens the curve; the error curve has its minimum between.",
        "The error on the points themselves only falls as the bandwidth does: it cannot choose.",
        "At the ends of the data the mean is pulled inwards, as all neighbours lie on one side.",
    ),
    code="""
import numpy as np
from mercer import NadarayaWatson
from mercer.kernels import Gaussian

rng = np.random.default_rng(6)
x = np.sort(rng.uniform(0, 10, 60))
y = np.sin(x) + 0.3 * x + 0.4 * rng.normal(size=60)
scales = np.geomspace(0.08, 5, 41)
model = NadarayaWatson(Gaussian(1.0), bandwidth="loo", scales=scales).fit(x[:, None], y)
best, errors = model.kernel_.bandwidth, model.loo_errors_
""",
    data=lambda n: {
        "x": n["x"],
        "y": n["y"],
        "scales": n["scales"],
        "best": n["best"],
    },
)

PAGES = (PERCEPTRON, BUDGET, NEIGHBOURS, SMOOTHER)
