"""Kernel values: those of a kernel over its points, and of a matrix that was given, are the same."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Items, Table
from mercer.invariants import Broken, check
from mercer.kernels import Callable, Gaussian
from mercer.models.gp.sources import BLOCK_ROWS, GivenPoints, KernelPoints, found_in

K = Gaussian(1.3)
RNG = np.random.default_rng(0)
ROWS = {
    "plain": RNG.normal(size=(20, 3)),
    "copies": np.repeat(RNG.normal(size=(5, 2)), 4, axis=0),
    "far away": 1e6 + RNG.normal(size=(20, 2)),
    "one row": RNG.normal(size=(1, 4)),
    "wide": RNG.normal(size=(3, 40)),
}


def gathered(points, Z, scale):
    return np.concatenate([values for _, values in points.cross(Z, scale)])


@pytest.mark.parametrize("m", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 9 * BLOCK_ROWS])
@pytest.mark.parametrize("name", ROWS)
def test_a_given_matrix_tells_what_its_kernel_tells(name, m):
    X = ROWS[name]
    Z = X[np.arange(m) % len(X)] + 0.1
    points, given = KernelPoints(K, Table(X)), GivenPoints(K(X))
    assert len(points) == len(given) == given.reads == len(X)
    wanted = 2.5 * K(Z, X)
    np.testing.assert_allclose(gathered(points, Table(Z), 2.5), wanted, atol=1e-8)
    np.testing.assert_array_equal(gathered(given, Table(K(Z, X)), 2.5), wanted)
    np.testing.assert_array_equal(points.matrix(), given.matrix())
    np.testing.assert_array_equal(points.prior(points.X, 2.5), given.prior(given.X, 2.5))


def test_the_matrix_is_not_that_which_was_given():
    given = GivenPoints(K(ROWS["plain"]))
    given.matrix()[:] = 0
    assert given.K[0, 0] == 1


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed", "items"])
def test_rows_are_joined_kept_and_found(kind):
    dense, more = np.round(ROWS["plain"]), np.round(RNG.normal(size=(4, 3)))
    if kind == "items":
        kernel, A, B = (
            Callable(lambda a, b: float(a == b)),
            Items(list("abcabc")),
            Items(["x", "a"]),
        )
    else:
        kernel = K
        A = sp.csr_array(dense) if kind == "sparse" else dense
        B = more if kind == "dense" else sp.csr_array(more)
    X, Z = Table(A), Table(B)
    points = KernelPoints(kernel, X).joined(Z)
    assert len(points) == len(X) + len(Z)
    last = np.arange(len(X), len(points))
    seen = np.arange(len(points), dtype=float)[:, None]
    np.testing.assert_array_equal(found_in(points, seen, Z, seen[last]), last)
    kept = points.kept(np.arange(len(X)))
    for i in range(len(X)):
        assert kept.equal(X, i)[i]
    with pytest.raises(ValueError, match="row 0 of X was not taken in"):
        found_in(points, seen, Z, seen[last] + 0.5)


def test_a_matrix_that_is_not_square_is_none():
    with pytest.raises(Broken, match="GivenPoints"):
        check(GivenPoints(np.ones((3, 2))))
