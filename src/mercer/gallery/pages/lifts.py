"""Pages on explicit lifts: the paraboloid, polynomials, bases, and products that are never formed."""

from __future__ import annotations

import numpy as np

from mercer.gallery.page import Page

PARABOLIC = Page(
    slug="parabolic",
    title="Balls are halfspaces on the paraboloid",
    claim="Add one coordinate, the squared length, and every point of the plane moves up onto a paraboloid. There a "
    "plane cuts out exactly what a disc holds below, so a linear rule in three dimensions is a round one in two.",
    look=(
        "Move the disc: the plane tilts with its centre and sinks or rises with its radius.",
        "Points inside the disc lie below the plane, all others above; the two counts never differ.",
        "A disc of radius 0 is a plane that touches the paraboloid; lower planes hold no point at all.",
    ),
    code="""
import numpy as np
from mercer.lifts import Ball, Parabolic, ball_to_halfspace

X = np.random.default_rng(1).uniform(-2, 2, size=(70, 2))
lifted = Parabolic().fit_transform(X)              # x1, x2, x1^2 + x2^2
half = ball_to_halfspace([0.5, 0.3], 1.1)          # the ball as a halfspace
inside = lifted @ np.array(half.normal) >= half.offset
assert np.array_equal(inside, Ball([0.5, 0.3], 1.1).contains(X))
""",
    data=lambda n: {"X": n["X"], "inside": n["inside"]},
    slips=("ball",),
)

POLYNOMIAL = Page(
    slug="polynomial",
    title="Polynomial boundaries of growing degree",
    claim="All monomials up to degree p turn a hyperplane into any polynomial boundary of degree p. In the plane that "
    "takes C(2+p, p) features, and the kernel (1 + x'z)^p has them all without writing one.",
    look=(
        "Degree 1 is a line and degree 2 a conic; the petals need degree 3 or more.",
        "With little penalty and a high degree the boundary bends between points and beyond them.",
        "The number of features grows, the number of equations to solve stays the number of points.",
    ),
    code="""
import numpy as np
from mercer import KernelRidge
from mercer.kernels import Polynomial

rng = np.random.default_rng(3)
angle, radius = rng.uniform(0, 2 * np.pi, 80), np.sqrt(rng.uniform(0, 1, 80))
X = 1.3 * np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
y = np.where(radius < 0.6 + 0.3 * np.cos(3 * angle), 1.0, -1.0)
model = KernelRidge(Polynomial(4), alpha=0.1, via="exact", fit_intercept=False).fit(X, y)
accuracy = np.mean(np.sign(model.predict(X)) == y)
""",
    data=lambda n: {"X": n["X"], "y": n["y"], "accuracy": n["accuracy"]},
    slips=("finite",),
)

BASIS = Page(
    slug="basis",
    title="A basis makes a curve linear",
    claim="Fit y by a plane over (x, cos x) and read it as a function of x: a wave along a slope, from three "
    "coefficients of a linear model. Which functions to add is the whole question.",
    look=(
        "In the view on the right the data lie near a plane; turn it until you look along the plane.",
        "Powers of x need many terms for what one cosine does; a jump does it only at its own place.",
        "Drag a point far out: the whole curve moves, as every function of the basis reaches everywhere.",
    ),
    code="""
import numpy as np
from mercer import KernelRidge
from mercer.lifts import Basis

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-5, 5, 40))
y = 0.4 * x + 1.5 * np.cos(x) + 0.3 * rng.normal(size=40)
model = KernelRidge(lift=Basis(["x", "cos"]), alpha=1e-6).fit(x[:, None], y)
coefficients = model.coef_, model.intercept_
""",
    data=lambda n: {"x": n["x"], "y": n["y"], "w": np.ravel(n["coefficients"][0])},
)

CONIC = Page(
    slug="conic",
    title="The circle becomes a plane",
    claim="Under (x1², √2 x1x2, x2²) a disc and the ring around it lie on two sides of a plane. The kernel (x'z)² is "
    "the inner product of that map, so a support vector machine finds the plane without it.",
    look=(
        "Turn the view: all points lie on a cone, and the plane cuts it between the classes.",
        "The boundary on the left is always a conic about the origin, as the map is even.",
        "Drag a point of the disc outwards on one side: the circle becomes an ellipse.",
    ),
    code="""
import numpy as np
from mercer import KernelSVC
from mercer.kernels import Polynomial

rng = np.random.default_rng(5)
angle, inner = rng.uniform(0, 2 * np.pi, 60), np.arange(60) < 30
radius = np.where(inner, rng.uniform(0.1, 0.8, 60), rng.uniform(1.2, 1.8, 60))
X, y = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(inner, 1, -1)
model = KernelSVC(Polynomial(2, bias=0), C=1.0, tol=1e-8).fit(X, y)
values = model.decision_function(X)
""",
    data=lambda n: {"X": n["X"], "y": n["y"], "values": n["values"]},
)

TRICK = Page(
    slug="trick",
    title="The kernel trick, counted",
    claim="The inner product of all monomials up to degree p is (1 + x'z)^p. The left side has C(d+p, p) products to "
    "add, the right side d of them and one power.",
    look=(
        "The two numbers agree to rounding, whatever you drag.",
        "At d = 20 and p = 6 there are 230,230 features; the kernel multiplies 26 times.",
        "The weights of the features are square roots of multinomial coefficients; without them the sum is another "
        "kernel.",
    ),
    code="""
import numpy as np
from mercer.kernels import Polynomial
from mercer.lifts import Monomials

x, z = np.array([[0.9, -0.4, 0.7, 0.5]]), np.array([[0.6, 0.8, -0.3, 1.0]])
phi = Monomials(degree=3, weights="kernel").fit(x)
by_features = (phi.transform(x) @ phi.transform(z).T).item()
by_kernel = Polynomial(degree=3)(x, z).item()
""",
    data=lambda n: {
        "x": n["x"][0],
        "z": n["z"][0],
        "features": n["by_features"],
        "kernel": n["by_kernel"],
    },
    slips=("square",),
)

SUBSETS = Page(
    slug="subsets",
    title="All subsets in d steps",
    claim="Every subset S of the columns gives a feature, the product of x_i over S: 2^d of them. Their inner product "
    "is the product of (1 + x_i z_i), one factor a column.",
    look=(
        "Each bar is one subset's share; a column with x_i z_i = 0 silences half of them.",
        "Add a column and the bars double, while the product gets one more factor.",
        "Only one order at a time: the elementary symmetric polynomial, which is the ANOVA kernel.",
    ),
    code="""
import numpy as np
from mercer.kernels import AllSubsets, Anova
from mercer.lifts import Subsets

x, z = np.array([[0.8, -0.5, 1.2, 0.4, -0.9, 0.7]]), np.array([[0.6, 0.9, 0.5, -0.8, -0.4, 1.1]])
phi = Subsets().fit(x)
shares = phi.transform(x) * phi.transform(z)        # 64 numbers
total, product = shares.sum(), AllSubsets()(x, z).item()
orders = [Anova(order)(x, z).item() for order in range(1, 7)]
""",
    data=lambda n: {"x": n["x"][0], "z": n["z"][0], "total": n["total"], "orders": n["orders"]},
)

PAGES = (PARABOLIC, POLYNOMIAL, BASIS, CONIC, TRICK, SUBSETS)
