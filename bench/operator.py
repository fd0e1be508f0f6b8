"""K @ v without K, against scikit-learn's Gram matrix times v; the pullback against the operator's own
product; and tiles of distances in the 1-norm against SciPy's."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as TheirMatern
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from bench.harness import Case
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.operators import KernelOperator
from mercer.ops.absolute import absdist


def near(tol):
    """A check that two vectors agree to `tol` of the larger one's size."""

    def check(ours, peer):
        error = np.abs(ours - peer).max() / np.abs(peer).max()
        return None if error <= tol else f"results differ by {error:.1e}, more than {tol:.0e}"

    return check


def rows(n, d, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def gaussian(n, d, dtype, target, *, rectangular=False):
    X, v = rows(n, d, dtype), rows(n, 1, dtype, seed=1)[:, 0]
    Z = rows(n, d, dtype, seed=2) if rectangular else None
    b = float(np.sqrt(d))
    K = KernelOperator(Gaussian(b), X, Z)
    shape = "other rows" if rectangular else "same rows"
    return Case(
        f"Gaussian K @ v, {n:,} x {n:,}, d={d}, {np.dtype(dtype)}, {shape}",
        ours=lambda: K @ v,
        peer=lambda: rbf_kernel(X, Z, gamma=1 / (2 * b * b)) @ v,
        check=near(1e-4 if dtype == np.float32 else 1e-10),
        target=target,
        repeats=3,
    )


def expression(n, d, dtype):
    X, v = rows(n, d, dtype), rows(n, 1, dtype, seed=1)[:, 0]
    K = KernelOperator(0.5 * Gaussian(4.0) + Linear() * Polynomial(2) + Matern(4.0, nu=1.5), X)
    matern = TheirMatern(4.0, nu=1.5)

    def peer():
        G = rbf_kernel(X, gamma=1 / 32)
        G *= 0.5
        G += linear_kernel(X) * polynomial_kernel(X, degree=2, gamma=1)
        G += matern(X)
        return G @ v

    name = f"0.5*Gaussian + Linear*Polynomial(2) + Matern(1.5), {n:,}, d={d}, {np.dtype(dtype)}"
    return Case(
        name,
        ours=lambda: K @ v,
        peer=peer,
        check=near(1e-4 if dtype == np.float32 else 1e-9),
        target=5.0,
        repeats=2,
    )


def pullback(n, d, k, name):
    X, u, v = rows(n, d, np.float64), *rows(2, n, np.float64, seed=1)
    K, step = KernelOperator(k, X), 1e-6

    def check(ours, peer):
        for i, (path, value) in enumerate(k.parameters().items()):
            up, down = (
                u @ (KernelOperator(k.clone().set_params(**{path: t}), X) @ v)
                for t in (value + step, value - step)
            )
            if not np.isclose(
                ours[i], (up - down) / (2 * step), rtol=1e-4, atol=1e-4 * np.abs(ours).max()
            ):
                return f"the derivative by {path} is {ours[i]:.6g}, finite differences give {(up - down) / (2 * step):.6g}"
        return None

    title = f"pullback of {len(k.parameters())} parameters, {name}, {n:,}, d={d} (peer: the operator's own @)"
    return Case(
        title,
        ours=lambda: K.pullback(u, v),
        peer=lambda: K @ v,
        check=check,
        target=0.25,
        repeats=3,
    )


def absolute(seed, dtype, share, target):
    """A tile of distances in the 1-norm, of a shape drawn by the seed; a share of the columns are
    indicators of which one in twelve is set."""
    rng = np.random.default_rng(seed)
    n, m, d = (
        int(v) for v in (rng.integers(128, 513), rng.integers(256, 1025), rng.integers(4, 121))
    )
    bits = round(share * d)
    X, Z = (rng.normal(size=(k, d)) for k in (n, m))
    for A in (X, Z):
        A[:, :bits] = rng.random((len(A), bits)) < 1 / 12
    X, Z, b = X.astype(dtype), Z.astype(dtype), rng.uniform(0.5, 2, d)
    return Case(
        f"1-norm distances, {n} x {m}, d={d}, {bits} of them indicators, {np.dtype(dtype)} (peer: SciPy)",
        ours=lambda: absdist(X, Z, b),
        peer=lambda: cdist(X / b, Z / b, "cityblock"),
        check=near(1e-5 if dtype == np.float32 else 1e-12),
        target=target,
        repeats=15,
    )


def laplace(n, d, dtype, target):
    X, v = rows(n, d, dtype), rows(n, 1, dtype, seed=1)[:, 0]
    K = KernelOperator(Laplace(float(d), norm=1, exponent=0.7), X)
    return Case(
        f"Laplace in the 1-norm, exponent .7, K @ v, {n:,} x {n:,}, d={d}, {np.dtype(dtype)}",
        ours=lambda: K @ v,
        peer=lambda: np.exp(-((cdist(X, X, "cityblock") / d) ** 0.7)) @ v,
        check=near(1e-4 if dtype == np.float32 else 1e-10),
        target=target,
        repeats=3,
    )


def cases():
    yield gaussian(20_000, 16, np.float32, 8.0)
    yield gaussian(20_000, 16, np.float64, 4.0)
    yield gaussian(12_000, 40, np.float32, 8.0, rectangular=True)
    yield gaussian(12_000, 5, np.float64, 4.0, rectangular=True)
    yield expression(20_000, 16, np.float64)
    yield expression(10_000, 16, np.float32)
    yield pullback(6_000, 16, 0.5 * Gaussian(4.0) + 2.0 * Matern(3.0), "two terms")
    yield pullback(
        6_000,
        8,
        0.5 * Gaussian(3.0) + Linear() * Polynomial(2) + Matern(3.0),
        "the expression above",
    )
    yield pullback(6_000, 3, 0.5 * Matern((2.0, 3.0, 4.0)), "one bandwidth a column")
    for seed in range(4):
        yield absolute(seed, np.float32, 0.0, 3.0)
        yield absolute(seed, np.float64, 0.0, 2.0)
    for seed in (4, 6):
        yield absolute(seed, np.float32, 0.8, 8.0)
        yield absolute(seed, np.float64, 0.8, 5.0)
    yield laplace(5_000, 16, np.float32, 3.0)
    yield laplace(5_000, 16, np.float64, 2.0)
