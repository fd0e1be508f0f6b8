"""Landmarks, structured frequencies, sketches and projections against scikit-learn's."""

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from bench import data
from bench.harness import Case, Measure, Quality
from bench.operator import rows
from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import GaussianProjection, Nystrom, RandomFourier, SparseProjection, TensorSketch


def dense(F):
    return np.asarray(F.toarray() if sp.issparse(F) else F, dtype=np.float64)


def pair_errors(F, X, k, n=1500):
    """Mean and largest absolute kernel error over the pairs of some rows."""
    at = np.random.default_rng(1).choice(X.shape[0], n, replace=False)
    E = np.abs(dense(F[at]) @ dense(F[at]).T - k(np.asarray(X[at], np.float64)))
    return E.mean(), E.max()


def landmarks(name, X, bandwidth, dtype, choice, m=500):
    X, k = X.astype(dtype), Gaussian(bandwidth)
    ours = [Nystrom(k, m, landmarks=choice, random_state=s).fit(X) for s in range(3)]
    peer = [
        Nystroem(gamma=1 / (2 * bandwidth**2), n_components=m, random_state=s).fit(X)
        for s in range(3)
    ]
    (mean, most), (their_mean, their_most) = (
        map(float, np.mean([pair_errors(phi.transform(X), X, k) for phi in side], axis=0))
        for side in (ours, peer)
    )
    title = f"Nystrom {m} by {choice}, {name}, bandwidth {bandwidth:.3g}, {np.dtype(dtype)}"
    yield Measure(f"{title}: mean kernel error", mean, their_mean, 2.0)
    yield Measure(f"{title}: largest kernel error", most, their_most, 2.0)
    quality = Quality("mean kernel error", mean, their_mean, higher_is_better=False)
    yield Case(
        f"{title}: transform",
        lambda: ours[0].transform(X),
        lambda: peer[0].transform(X),
        lambda a, b: quality,
        2.0,
        repeats=3,
    )


def structured(n, d, D, dtype=np.float32):
    """At equal error: rows of a Fastfood block are dependent, so that ours needs 5/3 as many
    features."""
    X, b = rows(n, d, dtype), float(np.sqrt(d))
    ours = RandomFourier(Gaussian(b), D * 5 // 6 * 2, frequencies="structured", random_state=0).fit(
        X
    )
    peer = RBFSampler(gamma=1 / (2 * b * b), n_components=D, random_state=0).fit(X)

    def check(F, G):
        mine, other = (pair_errors(A, X, Gaussian(b), 400)[0] for A in (F, G))
        return (
            None
            if mine <= 1.03 * other
            else f"mean kernel error {mine:.2e} is larger than {other:.2e}"
        )

    name = f"structured at equal error, n={n:,}, d={d:,}, D={D:,}, {np.dtype(dtype)}"
    return Case(name, lambda: ours.transform(X), lambda: peer.transform(X), check, 8.0, repeats=3)


def sketch(n, d, D, degree):
    X = rows(n, d, np.float64) / np.sqrt(d)
    k = Polynomial(degree, bias=1.0)
    ours = [TensorSketch(degree, D, random_state=s).fit(X) for s in range(8)]
    peer = [
        PolynomialCountSketch(degree=degree, coef0=1, n_components=D, random_state=s).fit(X)
        for s in range(8)
    ]

    def check(F, G):
        mine, other = (
            np.mean([pair_errors(phi.transform(X), X, k, 300)[0] for phi in side])
            for side in (ours, peer)
        )
        return (
            None
            if mine <= 1.1 * other
            else f"mean kernel error {mine:.2e} is larger than {other:.2e}"
        )

    name = f"TensorSketch, degree {degree}, n={n:,}, d={d}, D={D:,}"
    return Case(
        name, lambda: ours[0].transform(X), lambda: peer[0].transform(X), check, 4.0, repeats=3
    )


def sparse_rows(n, d, per_row):
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(d, size=(n, per_row)), axis=1).astype(np.int32)
    A = sp.csr_matrix(
        (
            rng.normal(size=n * per_row) / np.sqrt(per_row),
            indices.ravel(),
            np.arange(n + 1) * per_row,
        ),
        shape=(n, d),
    )
    A.sum_duplicates()
    return A


def no_larger_error(X):
    K = dense(X[:800] @ X[:800].T)

    def check(F, G):
        mine, other = (
            float(np.sqrt(np.mean(np.square(dense(A[:800] @ A[:800].T) - K)))) for A in (F, G)
        )
        return None if mine <= 1.05 * other else f"rms error {mine:.3e} is larger than {other:.3e}"

    return check


def sparse_projection(n, d, per_row, m):
    X = sparse_rows(n, d, per_row)
    make = lambda: SparseProjection(m, s=4, random_state=0)
    peer = lambda: SparseRandomProjection(m, random_state=0)
    ours, theirs = make().fit(X), peer().fit(X)
    title = f"SparseProjection(s=4), {n:,} x {d:,}, {per_row} a row, to {m:,}"
    check = no_larger_error(X)
    yield Case(
        f"{title}: fit and transform",
        lambda: make().fit_transform(X),
        lambda: peer().fit_transform(X),
        check,
        3.0,
    )
    yield Case(
        f"{title}: transform", lambda: ours.transform(X), lambda: theirs.transform(X), check, 3.0
    )


def gaussian_projection(n, d, m, dtype=np.float32):
    X = rows(n, d, dtype)
    make = lambda: GaussianProjection(m, random_state=0)
    peer = lambda: GaussianRandomProjection(m, random_state=0)
    theirs = peer().fit(X)
    ours = make().fit(X)
    title = f"GaussianProjection, {n:,} x {d:,} to {m:,}, {np.dtype(dtype)}"
    check = no_larger_error(X)
    yield Case(
        f"{title}: fit and transform",
        lambda: make().fit_transform(X),
        lambda: peer().fit_transform(X),
        check,
        1.0,
        repeats=3,
    )
    yield Case(
        f"{title}: transform",
        lambda: ours.transform(X),
        lambda: theirs.transform(X),
        check,
        1.0,
        repeats=3,
    )


def tables():
    """(name, rows); the bandwidth is that of scikit-learn's default, gamma = 1/d."""
    yield "a9a", dense(data.libsvm("a9a.xz")[0])
    yield "letter", dense(data.libsvm("letter.scale.xz")[0])
    yield "kin40k", data.uci_cv("kin40k").standardized().X


def cases():
    for name, X in tables():
        for dtype in (np.float32, np.float64):
            for choice in ("rpcholesky", "kmeans"):
                yield from landmarks(name, X, float(np.sqrt(X.shape[1] / 2)), dtype, choice)
    yield structured(2_000, 1024, 16_384)
    yield structured(4_000, 600, 8_192, np.float64)
    yield sketch(20_000, 64, 2048, 3)
    yield sketch(20_000, 20, 1000, 2)
    yield from sparse_projection(50_000, 200_000, 40, 1024)
    yield from gaussian_projection(20_000, 5_000, 1024)
