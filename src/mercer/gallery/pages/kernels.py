"""Pages on kernels themselves: their algebra, Taylor features, random features, projections, strings."""

from __future__ import annotations

import numpy as np

from mercer.gallery.page import Names, Page
from mercer.inputs import Array

ALGEBRA = Page(
    slug="algebra",
    title="Kernels and their algebra",
    claim="Sums, products, powers and exponentials of kernels are kernels: every Gram matrix they make has no negative "
    "eigenvalue. Differences and other functions need not be, and points with a negative eigenvalue disprove them.",
    look=(
        "A product is rough where either factor is, and near zero where either is: periodic times Gaussian fades.",
        "Smooth kernels have eigenvalues that fall fast; rough ones fall slowly, and their functions are rugged.",
        "Choose the difference: Mercer refuses it in one sentence, and the figure shows the points that disprove it.",
    ),
    code="""
import numpy as np
from mercer import check_psd, exp
from mercer.kernels import Callable, Gaussian, Linear, Periodic

x = np.linspace(-3, 3, 48)[:, None]
k = Gaussian(1.0) * Periodic(period=1.5) + 0.3 * Linear()
eigenvalues, proof = np.linalg.eigvalsh(k(x))[::-1], str(k.proof())
draws = np.linalg.cholesky(k(x) + 1e-6 * np.eye(48)) @ np.random.default_rng(0).normal(size=(48, 3))
difference = Callable(lambda X, Z: Gaussian(1.0)(X, Z) - 0.9 * Gaussian(0.4)(X, Z))
found = check_psd(difference, x)                     # the points and weights that disprove it
""",
    data=lambda n: {
        "x": n["x"][:, 0],
        "normals": np.random.default_rng(0).normal(size=(48, 3)),
        "eigenvalues": n["eigenvalues"],
        "found": n["found"].eigenvalue,
    },
    slips=("power", "dimension"),
)

TAYLOR = Page(
    slug="taylor",
    title="The Gaussian, term by term",
    claim="exp(-(x-z)²/2s²) is a series of products of x^j and z^j: one feature for every power, without end. Cut at "
    "degree p it is never above the kernel on the diagonal, and the tail bound says how far below.",
    look=(
        "A few terms suffice near 0; farther out the cut series fails, and each degree adds some reach.",
        "Halve the bandwidth and twice the distance counts: the degree that is needed grows with |x|²/s².",
        "The features are bumps that move outwards; their squares at any x add up to at most 1.",
    ),
    code="""
import numpy as np
from mercer.kernels import Gaussian
from mercer.lifts import Taylor

x, z = np.linspace(-4, 4, 81)[:, None], np.array([[1.2]])
phi = Taylor(Gaussian(1.0), degree=5).fit([[0.0]])              # about the centre 0
cut, kernel = phi.transform(x) @ phi.transform(z).T, Gaussian(1.0)(x, z)
bound = phi.tail_bound([[2.0]])                                 # the most it is off within |x| <= 2
""",
    data=lambda n: {"x": n["x"][:, 0], "cut": n["cut"][:, 0], "bound": n["bound"]},
    slips=("taylor",),
)

PAGES = (ALGEBRA, TAYLOR)
