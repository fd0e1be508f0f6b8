"""Random Fourier features and monomials against scikit-learn's: kernel error at equal size, and
time."""

import os
from functools import cache

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import PolynomialFeatures

from bench.harness import Case, Measure
from bench.operator import rows
from mercer.kernels import Gaussian
from mercer.lifts import Monomials, RandomFourier


@cache
def gram_errors(d, D, seeds):
    """Mean squared kernel errors of ours and RBFSampler's over seeds, and how far our mean over
    seeds is from the kernel."""
    X = np.random.default_rng(1).normal(size=(300, d))
    b = float(np.sqrt(d))
    K, off = Gaussian(b)(X), ~np.eye(300, dtype=bool)
    ours, peer = ([], [])
    for seed in range(seeds):
        F = RandomFourier(Gaussian(b), D, random_state=seed).fit_transform(X)
        G = RBFSampler(gamma=1 / (2 * d), n_components=D, random_state=seed).fit_transform(X)
        ours.append((F @ F.T - K)[off])
        peer.append((G @ G.T - K)[off])
    ours = np.array(ours)
    bias = np.abs(ours.mean(0)).mean() / (
        np.abs(ours).mean() * np.sqrt(1 / seeds)
    )  # about 1 where there is none
    return float(np.mean(ours**2)), float(np.mean(np.square(peer))), float(bias)


def error(d, D, target):
    ours, peer, bias = gram_errors(d, D, 20)
    verdict = (
        None
        if bias < 1.3
        else f"the mean over seeds is off by {bias:.2f} times what chance explains"
    )
    return Measure(
        f"squared kernel error, d={d}, D={D}, 20 seeds", ours, peer, target, quality=verdict
    )


def transform(n, d, D, dtype, target):
    X, b = rows(n, d, dtype), float(np.sqrt(d))
    phi = RandomFourier(Gaussian(b), D, random_state=0).fit(X)
    peer = RBFSampler(gamma=1 / (2 * b * b), n_components=D, random_state=0).fit(X)
    K = Gaussian(b)(X[:400])

    def check(ours, theirs):
        mine, other = (float(np.mean(np.square(F[:400] @ F[:400].T - K))) for F in (ours, theirs))
        return None if mine <= other else f"kernel error {mine:.2e} is larger than {other:.2e}"

    name = f"RandomFourier transform, n={n:,}, d={d}, D={D:,}, {np.dtype(dtype)}"
    return Case(name, lambda: phi.transform(X), lambda: peer.transform(X), check, target)


def same(ours, peer):
    if sp.issparse(ours):
        return None if abs(ours - peer).max() <= 1e-5 * abs(peer).max() else "the features differ"
    return None if np.allclose(ours, peer, rtol=1e-4, atol=1e-6) else "the features differ"


def monomials(X, degree, target, name, repeats=3):
    ours, peer = Monomials(degree).fit(X), PolynomialFeatures(degree).fit(X)
    warmup = (lambda: ours.transform(X)) if repeats == 1 else None  # where the peer takes minutes
    return Case(
        name,
        lambda: ours.transform(X),
        lambda: peer.transform(X),
        same,
        target,
        repeats=repeats,
        warmup=warmup,
    )


def sparse(n, d, density, seed=0):
    return sp.random_array(
        (n, d), density=density, random_state=np.random.default_rng(seed), format="csr"
    )


def cases():
    yield from (error(d, 1024, target) for d, target in ((4, 33.0), (8, 8.0), (16, 4.0), (64, 5.0)))
    yield from (error(d, 512, target) for d, target in ((6, 8.0), (32, 4.0)))
    yield transform(20_000, 64, 4096, np.float32, 1.5)
    yield transform(20_000, 64, 4096, np.float64, 4.0)
    yield transform(30_000, 20, 1000, np.float32, 1.5)
    yield transform(30_000, 20, 1000, np.float64, 4.0)
    yield monomials(rows(20_000, 30, np.float64), 3, 3.0, "Monomials(3), 20,000 x 30, float64")
    yield monomials(rows(20_000, 10, np.float32), 4, 3.0, "Monomials(4), 20,000 x 10, float32")
    yield monomials(sparse(20_000, 1_000, 0.02), 2, 1.5, "CSR Monomials(2), 20,000 x 1,000 at 2 %")
    yield monomials(
        sparse(2_000, 25, 0.1), 4, 20.0, "CSR Monomials(4), 2,000 x 25 at 10 %", repeats=1
    )
    if os.environ.get("MERCER_BENCH_LONG"):  # the peer takes more than ten minutes
        yield monomials(
            sparse(2_000, 60, 0.1), 4, 20.0, "CSR Monomials(4), 2,000 x 60 at 10 %", repeats=1
        )
