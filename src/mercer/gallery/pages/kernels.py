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
    slips=("power", "dimension", "sinc"),
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


def _fourier(n: Names) -> dict[str, object]:
    drawn = {
        kind: [{"D": D, "W": phi.draw(0, D // 2), "bound": bound} for D, phi, bound in maps]
        for kind, maps in n["maps"].items()
    }
    return {"X": n["X"], "maps": drawn}


FOURIER = Page(
    slug="fourier",
    title="Random features approach the kernel",
    claim="Draw frequencies from the kernel's spectral measure; cosines and sines of them are features whose inner "
    "product has the kernel as its mean. The error falls like 1/√D, and a certificate says how large it is.",
    look=(
        "Designed frequencies are as unbiased as independent ones, with less error at the same D.",
        "Hoeffding's bound holds before any data are seen; the certificate, of fresh pairs, is far below it.",
        "Turn the direction: with few features, some directions are served worse than others.",
    ),
    code="""
import numpy as np
from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier

X, k = np.random.default_rng(0).normal(size=(40, 3)), Gaussian(1.5)
maps = {"iid": [], "design": []}
for kind in maps:
    for D in 2 ** np.arange(3, 11):
        phi = RandomFourier(k, int(D), frequencies=kind, random_state=0).fit(X)
        maps[kind].append((int(D), phi, phi.certify(X, n_pairs=4000, random_state=0).bound))
""",
    data=_fourier,
    slips=("frequency", "cosine", "bochner", "distance"),
)


def distortions(F: Array, X: Array) -> Array:
    """|phi(x) - phi(z)|^2 / |x - z|^2 - 1 of all pairs."""
    i, j = np.triu_indices(len(X), 1)
    return ((F[i] - F[j]) ** 2).sum(1) / ((X[i] - X[j]) ** 2).sum(1) - 1


PROJECTION = Page(
    slug="projection",
    title="Random projections keep distances",
    claim="A matrix of m × d normals, over √m, keeps the length of any fixed vector within the bounds of Theorem 1, "
    "whatever d is. A sparse matrix of ± signs does so too, unless vectors have few entries that collide.",
    look=(
        "Four times as many dimensions halve the spread of the distortions.",
        "On dense points one entry a column is as good as a Gaussian matrix, at a fraction of the cost.",
        "On points with two entries each, one entry a column fails for pairs that collide; more entries mend it.",
    ),
    code="""
import numpy as np
from mercer.lifts import GaussianProjection, SparseProjection

rng = np.random.default_rng(0)
points = {"dense": rng.normal(size=(25, 600)), "spikes": np.zeros((25, 600))}
points["spikes"][np.arange(25), rng.permutation(600)[:25]] = points["spikes"][:, 0] = 1
maps = {"gaussian": lambda m: GaussianProjection(m, random_state=1),
        "one": lambda m: SparseProjection(m, s=1, random_state=1),
        "eight": lambda m: SparseProjection(m, s=8, random_state=1)}
lifted = {(of, name, m): make(m).fit_transform(X)
          for of, X in points.items() for name, make in maps.items() for m in (16, 32, 64, 128, 256, 512)}
""",
    data=lambda n: {
        "off": {
            "/".join(map(str, key)): np.round(distortions(F, n["points"][key[0]]), 6)
            for key, F in n["lifted"].items()
        }
    },
    slips=("theorem", "sparse"),
)

PAGES = (ALGEBRA, TAYLOR, FOURIER, PROJECTION)
