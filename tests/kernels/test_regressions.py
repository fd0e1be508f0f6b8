"""What once went wrong, each with the smallest case that showed it."""
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge

from mercer import RKHSFunction, check_psd
from mercer.inputs import table
from mercer.kernels import ArcCosine, Callable, Cauchy, Gaussian, Kernel, Laplace, Linear, Matern, Periodic
from mercer.operators import KernelOperator
from mercer.pairs import Side
from tests.market import rows

rng = np.random.default_rng(0)
CLUSTERS = np.repeat([[1.0], [-1.0]], 20, axis=0)


@pytest.mark.parametrize("size", [10.0, 1e2, 1e4])
@pytest.mark.parametrize("k", [Gaussian(), Cauchy(), Laplace(), Matern()], ids=repr)
def test_sparse_float32_keeps_its_digits(k, size):
    A = sp.csr_array((CLUSTERS * size + rng.normal(size=(40, 3))).astype(np.float32))
    assert np.abs(k(A) - k(A.astype(np.float64))).max() < 1e-4


@pytest.mark.parametrize(("small", "large", "at"), [(1e-3, 2e4, 1e4), (1e-12, 1e4, 1e4)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_far_distance_is_not_reused_for_another_bandwidth(small, large, at, dtype):
    X = np.array([[-at, at], [at, at]], dtype)
    expected = Gaussian(large)(X)[0, 1]
    assert (Gaussian(small) + Gaussian(large))(X)[0, 1] == pytest.approx(expected, rel=1e-4)
    assert (Gaussian(large) + Gaussian(small))(X)[0, 1] == pytest.approx(expected, rel=1e-4)


class Inverse(Kernel):
    width: float = 1.0

    def on(self, p):
        return (1 + p.sqdist(self.width)) ** -1


class Root(Kernel):
    def on(self, p):
        return (1 + p.sqdist(1.0)) ** -0.5


def test_powers_are_traced_or_refused():
    X = table(rows(5))
    np.testing.assert_allclose(Inverse().source().evaluate(Side(X), Side(X)), Inverse()(X))
    with pytest.raises(NotImplementedError, match=r"a power -0\.5 has no GPU source"):
        Root().source()


def test_whole_numbers_as_floats_and_floats_as_whole_numbers():
    assert Laplace(norm=1.0).parameters() == {"bandwidth": 1.0}
    assert ArcCosine(1.0).parameters() == {}
    assert Inverse(2).parameters() == {"width": 2.0}


def test_a_subclass_with_its_own_formula_inherits_no_proof():
    class Wrong(Gaussian):
        def on(self, p):
            return -p.dot

    class Renamed(Gaussian):
        pass

    assert Wrong().proof().holds is None
    assert (Wrong() + Linear()).proof().holds is None
    assert Renamed().proof().holds is True


@pytest.mark.parametrize("k", [Linear(), Gaussian(), ArcCosine(2)], ids=repr)
def test_no_counterexample_in_float32(k):
    assert check_psd(k, rng.normal(size=(100, 3)).astype(np.float32), trials=3) is None


def test_functions_may_be_checked_as_they_are():
    assert check_psd(lambda X, Z: np.tanh(X @ Z.T), rows(30)).eigenvalue < 0


def test_arc_cosine_of_parallel_rows_in_float32():
    X = rng.normal(size=(50, 6)).astype(np.float32)
    Z = np.vstack([X, 2 * X])
    assert np.abs(ArcCosine(0)(Z, Z.copy()) - ArcCosine(0)(Z.astype(float), Z.astype(float))).max() < 1e-5


@pytest.mark.parametrize("kind", [Gaussian, Cauchy, Matern])
def test_gradients_keep_their_digits_at_offsets(kind):
    X, G = CLUSTERS * 1e7 + rng.normal(size=(40, 2)), rng.normal(size=(40, 40))
    near = X - CLUSTERS * 1e7 + CLUSTERS * 50  # the same clusters, apart enough that pairs across them count for nothing
    moved, plain = (kind((1.0, 2.0)).gradient(A, G) for A in (np.round(X * 64) / 64, np.round(near * 64) / 64))
    np.testing.assert_allclose(moved, plain, rtol=0.02, atol=0.05)


def test_periodic_gradients_in_float32():
    X, G = (CLUSTERS * 1e3 + rng.normal(size=(40, 1))).astype(np.float32), np.ones((40, 40))
    k = Periodic(1.0, period=3.0)
    np.testing.assert_allclose(k.gradient(X, G), k.gradient(X.astype(float), G), rtol=1e-3)


@pytest.mark.parametrize("k", [Gaussian(1e-50), Laplace(1e-50), Matern(1e-50), Laplace(1e-50, norm=1)], ids=repr)
def test_bandwidths_below_float32(k):
    np.testing.assert_array_equal(k(np.array([[0, 1], [0, 2]], np.float32)), np.eye(2))


def test_distances_in_float32_have_digits():
    X = (1e4 + rng.normal(size=(5, 3))).astype(np.float32)
    np.testing.assert_allclose(Linear().distance(X), Linear().distance(X.astype(float)), rtol=1e-4)


def test_a_warp_must_keep_the_rows():
    with pytest.raises(ValueError, match="one row for each of 9 rows"):
        Gaussian().warped(lambda X: X.mean(0, keepdims=True))(rows(9))


def test_a_warp_sees_every_row_once():
    seen = []
    X = rng.normal(size=(1500, 2))
    Gaussian().warped(lambda A: (seen.append(len(A)), A)[1])(X)
    assert sum(seen) <= 2 * 1500


def test_scikit_learn_asks_for_whole_matrices_without_a_clone():
    calls = []

    class Counting(Gaussian):
        def on(self, p):
            calls.append(1)
            return super().on(p)

    KernelRidge(kernel=Counting()).fit(rows(40), np.arange(40.0))
    assert len(calls) == 1


def test_a_failed_set_params_changes_nothing():
    k = Gaussian()
    with pytest.raises(ValueError, match="bandwidth must be"):
        k.set_params(bandwidth=-2)
    assert k == Gaussian()
    with pytest.raises(ValueError, match="'bandwidth__0' does not name a part"):
        k.set_params(bandwidth__0=2.0)


@pytest.mark.parametrize("make", [lambda: KernelOperator("rbf", rows(3)), lambda: RKHSFunction("rbf", rows(3), [1, 2, 3])])
def test_names_are_not_kernels(make):
    with pytest.raises(ValueError, match="kernel must be a kernel, got 'rbf'"):
        make()


def test_rkhs_functions_add_up_and_know_their_width():
    f = RKHSFunction(Gaussian(), rows(3), [1.0, 2.0, 3.0])
    assert sum([f, f]).norm() == pytest.approx(2 * f.norm())
    with pytest.raises(ValueError, match="of 3 and of 2 columns"):
        f + RKHSFunction(Gaussian(), rows(4, 2), np.ones(4))
    with pytest.raises(ValueError, match="Z has 3 columns, 2 expected"):
        f(rows(4, 2))


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "holds dates or times"),
        (sp.csr_array(np.zeros((3, 0))), "at least one column"),
        (None, "must be a table of numbers"),
        ("abc", "must be a table of numbers"),
    ],
)
def test_more_bad_input(X, says):
    with pytest.raises(ValueError, match=says):
        Gaussian()(X)


def test_gradient_checks_its_weights():
    with pytest.raises(ValueError, match=r"G must be numbers of shape \(4, 4\)"):
        Gaussian().gradient(rows(4), np.ones(4))


def test_columns_in_another_order_are_put_in_order():
    import pandas as pd

    frame = pd.DataFrame(rows(5), columns=list("abc"))
    np.testing.assert_allclose(Gaussian((1.0, 2.0, 3.0))(frame, frame[["c", "a", "b"]]), Gaussian((1.0, 2.0, 3.0))(rows(5), rows(5)))


def test_operators_serve_scipys_solvers():
    from scipy.sparse.linalg import aslinearoperator

    K = KernelOperator(Gaussian(), rows(30), rows(20, seed=1))
    A, full = aslinearoperator(K), Gaussian()(rows(30), rows(20, seed=1))
    np.testing.assert_allclose(A @ np.ones(20), full.sum(1))
    np.testing.assert_allclose(A.rmatvec(np.ones(30)), full.sum(0))
    np.testing.assert_allclose(np.ones((2, 30)) @ K, np.ones((2, 30)) @ full)
    assert K.block([]).shape == (0, 20)


def test_sparse_near_pairs_stay_sparse():
    A = sp.random_array((300, 100_000), density=1e-4, rng=np.random.default_rng(0)).tocsr()
    B = sp.vstack([A, A * 1.0001]).tocsr()
    full = Matern()(B)
    assert np.isfinite(full).all()
    assert full[0, 300] > 0.99


def test_wide_rows_take_small_tiles():
    K = KernelOperator(Gaussian(100.0), rng.normal(size=(400, 10_000)))
    assert K._step(256) == 32
    np.testing.assert_allclose(K @ np.ones(400), Gaussian(100.0)(K.X).sum(1), rtol=1e-10)


def test_a_function_of_pairs_is_called_on_lists_too():
    k = Callable(lambda A, B: np.array([[float(a == b) for b in B] for a in A])).normalized()
    np.testing.assert_array_equal(k(["a", "b"]), np.eye(2))
