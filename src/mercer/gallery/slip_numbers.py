"""Numbers that show each slip of the notes: a sentence, and two curves, of the note and of what is
right."""

from __future__ import annotations

import math

import numpy as np

from mercer.gallery.page import Shown
from mercer.inputs import Array
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.lifts import (
    Ball,
    GaussianProjection,
    Monomials,
    Parabolic,
    RandomFourier,
    SparseProjection,
    Taylor,
    ball_to_halfspace,
)
from mercer.models import GaussianProcessRegressor, KernelSVC, Perceptron


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _lowest(K: Array) -> float:
    return float(np.linalg.eigvalsh(K)[0])


def ball() -> Shown:
    X, c, radii = _rng().uniform(-2, 2, size=(400, 2)), np.array([0.5, 0.3]), np.linspace(0, 2, 21)
    F = Parabolic().fit_transform(X)
    right, note = [], []
    for r in radii:
        half, truth = ball_to_halfspace(c, r), Ball((0.5, 0.3), r).contains(X)
        right.append(np.mean((F @ np.array(half.normal) >= half.offset) == truth))
        note.append(np.mean((F @ np.r_[-2 * c, 1] - (c @ c - r * r) > 0) == truth))
    sentence = (
        f"of 400 points the note's rule puts {note[11]:.0%} on "
        "the right side of a ball of radius 1.1, the other 100%"
    )
    return Shown(sentence, radii, note, right, "radius", "share of points on the right side")


def frequency() -> Shown:
    r, zero = np.linspace(0, 3, 31)[:, None], np.zeros((1, 1))
    note = _estimate(RandomFourier(Gaussian(1.0), 20_000, random_state=0), r, zero)
    right = _estimate(RandomFourier(Gaussian(1 / math.sqrt(2)), 20_000, random_state=0), r, zero)
    sentence = (
        f"at r = s the kernel is {math.exp(-1):.4f}; 10,000 frequencies of "
        f"N(0, 1/s²) give {note[10]:.4f}, of N(0, 2/s²) {right[10]:.4f}"
    )
    return Shown(sentence, r[:, 0], note, right, "r / s", "estimate of exp(-r²/s²)")


def _estimate(phi: RandomFourier, X: Array, Z: Array) -> Array:
    return np.asarray(phi.fit(X).transform(X) @ phi.transform(Z).T)[:, 0]


def cosine() -> Shown:
    r, zero = np.linspace(0, 3, 31)[:, None], np.zeros((1, 1))
    right = _estimate(RandomFourier(Gaussian(1.0), 20_000, form="shift", random_state=0), r, zero)
    sentence = (
        "at r = 0 the kernel is 1; 20,000 features with 1/√D "
        f"give {right[0] / 2:.3f}, with √(2/D) {right[0]:.3f}"
    )
    return Shown(sentence, r[:, 0], right / 2, right, "r", "estimate of the Gaussian")


def sinc() -> Shown:
    lows = []
    for d in range(1, 7):
        X = 3 * np.random.default_rng(d).normal(size=(200, d))
        r = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
        lows.append(_lowest(np.sinc(r / math.pi)))
    sentence = (
        f"smallest eigenvalue on 200 points: {lows[2]:.1e} in d = 3, "
        f"{lows[3]:.1f} in d = 4; with sin(-r/s) the diagonal itself is -1"
    )
    return Shown(sentence, np.arange(1, 7), lows, np.zeros(6), "d", "smallest eigenvalue")


def distance() -> Shown:
    r = np.geomspace(1e-3, 1, 13)
    errors = {k: _distance_error(k, r) for k in (Laplace(), Gaussian())}
    rough, smooth = errors[Laplace()], errors[Gaussian()]
    sentence = (
        f"512 frequencies: the distance under Laplace is off by {rough[-1]:.2f} at r = 1 and by "
        f"{rough[0]:.2f} at r = 0.001, under the Gaussian by {smooth[-1]:.2f} and {smooth[0]:.2f}"
    )
    return Shown(sentence, r, rough, smooth, "r", "relative error, root mean square")


def _distance_error(k: Gaussian | Laplace, r: Array, seeds: int = 20) -> Array:
    X, zero, found = r[:, None], np.zeros((1, 1)), []
    for seed in range(seeds):
        phi = RandomFourier(k, 1024, frequencies="iid", random_state=seed).fit(X)
        apart = np.linalg.norm(phi.transform(X) - phi.transform(zero), axis=1)
        found.append(apart / k.distance(X, zero)[:, 0] - 1)
    return np.sqrt(np.mean(np.square(found), axis=0))


def square() -> Shown:
    x1 = np.linspace(-2, 2, 21)
    X, z = np.column_stack([x1, np.full(21, 0.5)]), np.array([[0.8, -0.3]])
    right = Polynomial(2)(X, z)[:, 0]
    note = right - 2 * x1 * z[0, 0]
    sentence = f"x = (1.0, 0.5), z = (0.8, -0.3): the kernel is {right[15]:.4f}, the note's sum {note[15]:.4f}"
    return Shown(sentence, x1, note, right, "x1", "(1 + x'z)²")


def mistakes() -> Shown:
    rng = _rng()
    X = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])
    y, passes = np.where(X @ [0.3, 1.0, -1.5] > 0, 1, -1), 20  # the offset takes many additions
    note, right = _passes(X, y, passes, once=True), _passes(X, y, passes, once=False)
    model = Perceptron(Linear(), fit_intercept=False, shuffle=False, max_iter=passes).fit(X, y)
    sentence = (
        f"mistakes in the last of {passes} passes over {len(X)} separable rows: "
        f"{note[-1]} with a set, {right[-1]} with a multiset ({model.mistakes_} in all)"
    )
    return Shown(sentence, np.arange(1, passes + 1), note, right, "pass", "mistakes in the pass")


def _passes(X: Array, y: Array, passes: int, *, once: bool) -> list[int]:
    """The mistakes of each pass of a perceptron; with `once` a row is added a single time."""
    w, found, held = np.zeros(X.shape[1]), [0] * passes, set()
    for p in range(passes):
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            if label * (w @ x) <= 0:
                found[p] += 1
                w = w if once and i in held else w + label * x
                held.add(i)
    return found


def finite() -> Shown:
    X, degrees = _rng().uniform(-1, 1, size=(60, 2)), np.arange(1, 8)
    right = [int(np.linalg.matrix_rank(Polynomial(int(p))(X))) for p in degrees]
    sizes = [Monomials(int(p)).fit(X).n_features_out_ for p in degrees]
    sentence = (
        f"rank of the Gram matrix of 60 points in the plane, degree 3: {right[2]} "
        f"= C(5, 3) = {sizes[2]}; with infinitely many features it would be 60"
    )
    return Shown(sentence, degrees, [60] * 7, right, "degree", "rank of the Gram matrix")


def power() -> Shown:
    X, powers = _rng().uniform(-0.7, 0.7, size=(60, 2)), np.linspace(0.25, 4, 16)
    base = 1 + X @ X.T
    right = [_lowest(base**b) / np.trace(base**b) for b in powers]
    sentence = (
        f"smallest eigenvalue over the trace on 60 points: {right[1]:.1e} "
        f"at b = 1/2, {right[3]:.0e} at b = 1, which is rounding"
    )
    return Shown(sentence, powers, right, np.zeros(16), "b", "smallest eigenvalue / trace")


def noise() -> Shown:
    rng, grid = _rng(), np.linspace(0, 1, 61)[:, None]
    X = rng.uniform(0, 1, size=(14, 1))
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=14)
    fits = [
        GaussianProcessRegressor(Matern(0.3, nu=2.5), noise=v, prior_mean=0.0, fixed="all").fit(
            X, y
        )
        for v in (1e-8, 0.09)
    ]
    note, right = (m.predict(grid) for m in fits)
    off = [float(np.sqrt(np.mean((v - np.sin(6 * grid[:, 0])) ** 2))) for v in (note, right)]
    sentence = (
        "root mean squared error to the function behind 14 points with noise 0.3: "
        f"{off[0]:.2f} by the note's formula, {off[1]:.2f} with the noise in it"
    )
    return Shown(sentence, grid[:, 0], note, right, "x", "mean of f")


def dimension() -> Shown:
    counts = np.array([5, 10, 20, 40, 60, 80])
    ranks = [int(np.linalg.matrix_rank(Laplace()(np.linspace(0, 8, n)[:, None]))) for n in counts]
    sentence = (
        f"the Gram matrix of Laplace on {counts[-1]} points has rank {ranks[-1]}, "
        "on n points rank n: no finite D holds them all (the line is D = 30)"
    )
    return Shown(
        sentence, counts, np.minimum(counts, 30), ranks, "points", "rank of the Gram matrix"
    )


def taylor() -> Shown:
    x = np.linspace(-2, 2, 41)
    phi = Taylor(Gaussian(), degree=20).fit(np.zeros((1, 1)))
    F, z = phi.transform(x[:, None]), phi.transform([[1.0]])
    weights = 1 / np.sqrt([float(math.factorial(j)) for j in range(21)])
    right, note = (F @ z.T)[:, 0], ((F * weights) @ (z * weights).T)[:, 0]
    sentence = f"k(1, 1) = {right[30]:.4f} with 1/√(j!), {note[30]:.4f} with 1/j!; right is 1"
    return Shown(sentence, x, note, right, "x", "k(x, 1)")


def dual() -> Shown:
    shifts, accuracies = np.linspace(0, 4, 9), []
    for shift in shifts:
        rng = np.random.default_rng(1)
        y = np.repeat([-1, 1], 40)
        X = rng.normal(size=(80, 2)) + 1.5 * y[:, None] * [1, 0] + [shift, 0]
        fits = (KernelSVC(Linear(), fit_intercept=b).fit(X, y).score(X, y) for b in (False, True))
        accuracies.append(tuple(fits))
    note, right = np.transpose(accuracies)
    sentence = f"two classes moved by 4 from the origin: {note[-1]:.0%} right without a bias, {right[-1]:.0%} with one"
    return Shown(sentence, shifts, note, right, "shift of both classes", "accuracy")


def sparse(m: int = 64, d: int = 400) -> Shown:
    X, sizes = _rng().normal(size=(50, d)), np.array([1, 2, 4, 8, 16])
    right, note = [], []
    for s in sizes:
        F = SparseProjection(m, s=int(s), random_state=0).fit_transform(X)
        right.append(np.mean((F**2).sum(1) / (X**2).sum(1)))
        note.append(np.mean((_as_in_the_note(X, m, int(s)) ** 2).sum(1) / (X**2).sum(1)))
    sentence = f"mean of |Ax|²/|x|² at s = 8, m = 64: {note[3]:.2f} by the note's loop, {right[3]:.2f} by the right one"
    return Shown(sentence, sizes, note, right, "s", "mean of |Ax|² / |x|²")


def _as_in_the_note(X: Array, m: int, s: int) -> Array:
    rng = np.random.default_rng(1)
    out = np.zeros((len(X), m))
    for i in range(s):
        place = np.minimum(i * s + rng.integers(m // s, size=X.shape[1]), m - 1)
        np.add.at(out.T, place, (X * rng.choice([-1.0, 1.0], size=X.shape[1])).T)
    return out


def theorem() -> Shown:
    v, scales = _rng().normal(size=(1, 300)), np.linspace(0.25, 3, 12)
    unit = v / np.linalg.norm(v)
    phi = GaussianProjection(2000, random_state=0).fit(unit)
    squares = np.array([float(np.sum(phi.transform(c * unit) ** 2)) for c in scales])
    sentence = f"|v| = 3: |Av|² / |v|² = {squares[-1] / 9:.2f}, |Av|² / |v| = {squares[-1] / 3:.2f}"
    return Shown(
        sentence,
        scales,
        squares / scales,
        squares / scales**2,
        "|v|",
        "|Av|² over the note's, and the right side",
    )


def bochner() -> Shown:
    d = np.arange(1, 6)
    right = [_at_zero(int(k)) for k in d]
    note = (2 * math.pi) ** -d.astype(float)
    sentence = (
        f"d = 2, x = z: the mean of the cosines is {right[1]:.4f}, the note's kernel {note[1]:.4f}"
    )
    return Shown(sentence, d, note, right, "d", "value at x = z")


def _at_zero(d: int) -> float:
    F = RandomFourier(Gaussian(), 64, random_state=0).fit_transform(np.ones((1, d)))
    return float((F @ F.T).item())
