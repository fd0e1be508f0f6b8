"""Every kernel, named or random, keeps the contract that ships in mercer.testing."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from sklearn.base import clone

import mercer.kernels as mk
from mercer.kernels import Kernel
from mercer.testing import check_kernel
from tests.market import KERNELS, LEAVES, TREES, rows, trees

SCOPE = vars(mk) | {"inf": np.inf}


@pytest.mark.parametrize("name", KERNELS)
def test_named_kernels(name):
    check_kernel(KERNELS[name], rows())


@given(trees)
def test_random_trees(k):
    check_kernel(k, rows(7))


@pytest.mark.parametrize("k", [*LEAVES.values(), *TREES.values()], ids=repr)
def test_repr_evaluates_back(k):
    assert eval(repr(k), SCOPE) == k


@given(trees)
def test_random_trees_round_trip(k):
    assert eval(repr(k), SCOPE) == k
    assert pickle.loads(pickle.dumps(k)) == k
    assert clone(k) == k
    assert hash(clone(k)) == hash(k)


@given(trees)
def test_psd_on_duplicates_and_zeros(k):
    K = k(rows(12, seed=3))
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1, np.trace(K))


class Half(Kernel):
    """A user's own kernel of five lines."""

    bandwidth: float = 1.0

    def on(self, p):
        return 1 / (1 + p.dist(self.bandwidth))


def test_a_kernel_of_ones_own():
    check_kernel(Half(0.4))
    check_kernel((Half(0.4) + 1) * Half(2.0))
    assert repr(Half(0.4)) == "Half(bandwidth=0.4)"


class Wrong(Kernel):
    by: float = 1.0

    def on(self, p):
        return -self.by * p.dot


class Crooked(Kernel):
    by: float = 1.0

    def on(self, p):
        return p.rows.dot * self.by + p.dot


class Flat(Kernel):
    """It hides from derivatives by the rows what it computes of them."""

    def on(self, p):
        return 1 / (1 + getattr(p.sqdist(), "v", p.sqdist()))


@pytest.mark.parametrize(
    ("k", "law"),
    [
        (Wrong(), "positive semidefinite"),
        (Crooked(), "transpose"),
        (Flat(), "input_gradient equals finite differences"),
    ],
)
def test_the_contract_can_fail(k, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(k)


def test_what_is_no_kernel_is_named():
    with pytest.raises(ValueError, match=r"check_kernel takes a kernel, .* got 3"):
        check_kernel(3)
