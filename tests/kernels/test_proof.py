import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer import check_psd
from mercer.kernels import Callable, Gaussian, Kernel, Linear, Sinc, exp
from mercer.kernels.proof import register
from tests.market import KERNELS, WITH_FUNCTIONS, rows


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_of_ours_has_a_proof(name):
    proof = KERNELS[name].proof(d=3)
    assert proof.holds is (None if name == "callable" else True)
    assert str(proof).splitlines()[0].startswith(repr(KERNELS[name]))


def test_a_proof_may_depend_on_the_dimension():
    k = Sinc() + Linear()
    assert k.proof(d=3).holds is True
    assert k.proof().holds is None
    assert k.proof().condition == "d <= 3"
    assert k.proof(d=4).holds is None
    assert Sinc().proof(d=4).holds is False
    assert (2 * Sinc()).proof(d=4).holds is False
    assert Sinc().on_columns([0, 5]).proof(d=9).holds is True
    assert "Sinc() is not decided (if d <= 3)" in str(k.proof())


def test_a_proof_reads_as_a_derivation():
    assert str((2 * exp(Linear())).proof()).splitlines() == [
        "2.0 * exp(Linear()) is a kernel: a kernel scaled by c >= 0 is a kernel",
        "  exp(Linear()) is a kernel: exp is a power series with coefficients 1/n! >= 0",
        "    Linear() is a kernel: x'z is the inner product of the features x",
    ]


def test_a_callable_is_not_decided():
    assert Callable(lambda X, Z: X @ Z.T).proof().holds is None
    assert (Callable(lambda X, Z: X @ Z.T) + Gaussian()).proof().holds is None


def test_a_kernel_of_ones_own_can_be_proved():
    class Own(Kernel):
        def on(self, p):
            return p.dot

    assert Own().proof().holds is None
    register(Own, "it is x'z")
    assert Own().proof().holds is True


NOT_KERNELS = {
    "sinc, d=4": (lambda X, Z: np.sinc(cdist(X, Z) / np.pi), 4),
    "root of 1 + x'z": (lambda X, Z: (1 + X @ Z.T) ** 0.5, 3),
    "tanh": (lambda X, Z: np.tanh(X @ Z.T), 3),
    "periodic in the Euclidean distance": (lambda X, Z: ExpSineSquared()(X, Z), 2),
    "distance": (cdist, 2),
}


@pytest.mark.parametrize("name", NOT_KERNELS)
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_counterexamples_are_found(name, scale):
    f, d = NOT_KERNELS[name]
    found = check_psd(Callable(f), scale * np.random.default_rng(1).normal(size=(60, d)))
    assert found.eigenvalue < 0
    v, K = found.vector, f(found.points, found.points)
    assert v @ K @ v == pytest.approx(found.eigenvalue, rel=1e-4)
    assert np.linalg.norm(v) == pytest.approx(1)
    assert "not positive semidefinite" in str(found)


@pytest.mark.parametrize("name", KERNELS)
def test_no_counterexample_for_kernels_of_ours(name):
    assert check_psd(KERNELS[name], rows(30) * 3 + 1, trials=6) is None


def test_an_asymmetric_function_is_refused():
    with pytest.raises(ValueError, match="not symmetric"):
        check_psd(Callable(lambda X, Z: X[:, :1] + 0 * Z[:, 0]), rows(10))


def test_a_function_that_is_never_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        check_psd(Callable(lambda X, Z: np.full((len(X), len(Z)), np.nan)), rows(10))


def test_with_functions_are_named():
    assert WITH_FUNCTIONS["weighted"].proof().premises[0].holds is True


def test_a_subclass_with_its_own_formula_inherits_no_proof():
    class Wrong(Gaussian):
        def on(self, p):
            return -p.dot

    class Renamed(Gaussian):
        pass

    assert Wrong().proof().holds is None
    assert (Wrong() + Linear()).proof().holds is None
    assert Renamed().proof().holds is True
