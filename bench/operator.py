"""K @ v without K, against scikit-learn's Gram matrix times v; and the pullback against the
operator's own product."""

import numpy as np
from sklearn.gaussian_process.kernels import Matern as TheirMatern
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from bench.harness import Case
from mercer.kernels import Gaussian, Linear, Matern, Polynomial
from mercer.operators import KernelOperator


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
