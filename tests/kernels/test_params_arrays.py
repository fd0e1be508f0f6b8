"""Arrays of kernels are values: they compare, hash, print shortly, cannot be changed, and survive
copies, clones and files."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from mercer import KernelRidge
from mercer.kernels import Linear
from mercer.kernels.params import FrozenArray
from mercer.store import decode, encode

A = np.array([[2.0, 0.5], [0.5, 1.0]])


def test_equal_arrays_are_equal_values():
    a, b = FrozenArray(A), FrozenArray(A.tolist())
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, FrozenArray(2 * A)}) == 2
    assert FrozenArray([0.0]) == FrozenArray([-0.0])
    assert hash(FrozenArray([0.0])) == hash(FrozenArray([-0.0]))
    assert a != FrozenArray(A.ravel())
    assert a != "A"


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda v: pickle.loads(pickle.dumps(v)),
        lambda v: decode(*encode(v)),
    ],
)
def test_copies_are_equal_and_as_frozen(again):
    a = again(FrozenArray(A))
    assert a == FrozenArray(A)
    assert not a.values.flags.writeable


def test_equal_arrays_are_one_in_memory():
    a, b = FrozenArray(A), FrozenArray(A.tolist())
    assert a.values is b.values
    assert decode(*encode(a)).values is a.values
    assert FrozenArray(A.ravel()).values is not a.values


def test_it_is_a_copy():
    given = A.copy()
    a = FrozenArray(given)
    given[0, 0] = 7
    assert a == FrozenArray(A)
    with pytest.raises(ValueError, match="read-only"):
        a.values[0, 0] = 3


@pytest.mark.parametrize("wrong", [3.0, np.nan, [np.inf], [[[1.0]]]])
def test_others_are_refused(wrong):
    with pytest.raises(ValueError, match="vector or a matrix of finite numbers"):
        FrozenArray(wrong)


def test_a_kernel_with_a_matrix_is_a_value():
    k = Linear(metric=A)
    assert (
        k
        == Linear(metric=A.tolist())
        == clone(k)
        == pickle.loads(pickle.dumps(k))
        == decode(*encode(k))
    )
    assert hash(k) == hash(clone(k))
    assert k != Linear(metric=2 * A)
    assert k != Linear()
    assert repr(k) == "Linear(metric=[[2.0, 0.5], [0.5, 1.0]])"
    assert len(repr(Linear(metric=np.eye(784)))) < 50
    model = clone(KernelRidge(k).set_params(kernel__metric=np.eye(2)))
    assert model.kernel == Linear(metric=np.eye(2))
    np.testing.assert_array_equal(Linear(metric=A)(A), A @ A @ A.T)


def test_a_file_that_spells_it_by_tuples_is_read():
    rows = {"tuple": [{"tuple": [2.0, 0.5]}, {"tuple": [0.5, 1.0]}]}
    assert decode({"value": ["kernels.Linear", {"metric": rows}]}, []) == Linear(metric=A)
