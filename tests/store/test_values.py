"""The tree gives back what was put in: exactly, and of the same types."""

import io
import json
import math
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer.kernels import Gaussian, Kernel
from mercer.store import decode, encode, register, tree
from mercer.store.arrays import from_bytes, to_bytes
from mercer.store.files import parse

FLOATS = st.floats(allow_nan=True, allow_infinity=True)
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
LEAVES = (
    KEYS
    | FLOATS
    | st.complex_numbers()
    | st.binary()
    | st.builds(slice, st.none() | st.integers(), st.integers())
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(KEYS, inner)
        | st.tuples(inner, inner)
        | st.frozensets(KEYS)
    ),
    max_leaves=12,
)
DTYPES = st.sampled_from(
    [
        "f8",
        "f4",
        "f2",
        "i8",
        "i4",
        "i2",
        "i1",
        "u8",
        "u4",
        "u2",
        "u1",
        "?",
        "c16",
        "c8",
        "M8[ns]",
        "m8[D]",
        "U3",
        "S2",
        ">f8",
    ]
)
SCALARS = [
    np.float32(0.1),
    np.int8(-3),
    np.bool_(True),
    np.str_("é"),
    np.uint64(2**64 - 1),
    np.datetime64("2020-01-01"),
    np.complex64(1j),
]
OTHERS = [
    np.dtype("f4"),
    np.dtype("U7"),
    np.float64,
    float,
    range(2, 9, 3),
    {1, 2},
    -0.0,
    math.inf,
    2**200,
    "\ud800 \x00 é",
]
ODD = {
    "structured": np.zeros(1, [("a", "f8")]),
    "scalar": np.longdouble(1),
    "array": np.zeros(2, np.longdouble),
}


def through(v):
    """By way of the bytes of a file."""
    node, arrays = encode(v)
    text = json.dumps({"mercer": "", "kind": "", "root": node}, allow_nan=False).encode("ascii")
    return decode(parse(text)["root"], from_bytes(to_bytes(arrays)))


def same(a, b):
    """Equal, of one type, to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return (
            a.dtype.newbyteorder("=") == b.dtype
            and a.shape == b.shape
            and a.astype(b.dtype).tobytes() == b.tobytes()
        )
    return a == b


@given(VALUES)
def test_values_come_back(v):
    assert same(through(v), v)


@given(hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays_come_back(a):
    back = through(a)
    assert same(a, back)
    back[...] = back  # is writable, and alone in memory
    assert not np.shares_memory(a, back)


@pytest.mark.parametrize(
    "a",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24.0).reshape(4, 6)[::2, ::-3],
        np.broadcast_to(2.0, (3, 2)),
        np.array(["größe", None, 3, ("a", 1.5)], dtype=object),
        np.empty((0, 3), object),
        np.array([["a", "bcd"]]),
        np.zeros((0, 2), "U4"),
    ],
    ids=["fortran", "strided", "broadcast", "objects", "no objects", "text", "no text"],
)
def test_unusual_arrays_come_back(a):
    back = through(a)
    assert back.dtype == a.dtype
    assert back.shape == a.shape
    assert back.tolist() == a.tolist()
    assert back.flags.f_contiguous == a.flags.f_contiguous or not a.flags.c_contiguous


@pytest.mark.parametrize("v", SCALARS, ids=repr)
def test_numpy_scalars_come_back(v):
    assert same(through(v), v)


@pytest.mark.parametrize("v", OTHERS, ids=repr)
def test_other_values_come_back(v):
    assert same(through(v), v)


@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_matrix", "csc_array"])
def test_sparse_matrices_come_back(form):
    A = getattr(sp, form)(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], np.float32))
    back = through(A)
    assert type(back) is type(A)
    assert back.dtype == A.dtype
    assert np.array_equal(back.toarray(), A.toarray())


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_go_on(name):
    rng = np.random.Generator(getattr(np.random, name)(7))
    rng.integers(0, 2, 5, dtype=np.uint32)
    back = through(rng)
    assert np.array_equal(
        back.integers(0, 100, 9, dtype=np.uint32), rng.integers(0, 100, 9, dtype=np.uint32)
    )
    assert np.array_equal(back.normal(size=5), rng.normal(size=5))


def test_an_array_met_twice_is_one_array_again():
    a = np.arange(5.0)
    x, y = through((a, a))
    assert np.shares_memory(x, y)
    p, q = through((a, a.copy()))
    assert not np.shares_memory(p, q)


@pytest.mark.parametrize("room", [0, 100, 10_000])
def test_as_much_as_is_written_once_can_be_read(monkeypatch, room):
    """An array is written again where reading it many times over could be an attack."""
    monkeypatch.setattr(tree, "MAX_REPEATED_BYTES", room)
    given = [np.arange(5.0)] * 4 + [np.arange(3)] * 2
    assert [a.tolist() for a in through(given)] == [a.tolist() for a in given]
    assert len(encode(given)[1]) == {0: 6, 100: 4, 10_000: 2}[room]


def test_what_files_cannot_hold_is_refused_with_the_place():
    with pytest.raises(ValueError, match=r"dict\.\['a'\].* is a _io\.BytesIO"):
        encode({"a": [io.BytesIO()]})
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nests more than 100 levels"):
        encode(loop)


@pytest.mark.parametrize("name", ODD)
def test_numbers_that_differ_between_machines_are_refused(name):
    with pytest.raises(ValueError, match="dtype"):
        encode(ODD[name])


def test_as_deep_as_is_written_can_be_read():
    deep = [0]  # text alone would be flat, see test_nested
    for _ in range(tree.MAX_LEVELS - 1):
        deep = [deep]
    assert through(deep) == deep
    with pytest.raises(ValueError, match="levels deep"):
        encode([[deep]])


def test_a_class_of_a_user_must_be_registered():
    class Mine(Kernel):
        def on(self, p):
            return p.dot

    with pytest.raises(ValueError, match="Mine, which is not a class of Mercer"):
        encode(Mine())


@register
@dataclass
class Pair:
    """A class of a user's."""

    a: float
    b: Kernel


@register
class Two(NamedTuple):
    """A tuple of a user's."""

    a: float
    b: np.ndarray


@register
class Counter:
    """One that says its own state."""

    def __init__(self, n):
        self.n = n

    def state(self):
        return {"n": self.n}

    @classmethod
    def from_state(cls, state):
        return cls(state["n"])


def test_registered_classes_come_back():
    assert through(Pair(1.0, Gaussian(3.0))) == Pair(1.0, Gaussian(3.0))
    assert through([Counter(7)])[0].n == 7
    back = through(Two(1.0, np.arange(3)))
    assert type(back) is Two
    assert back.b.tolist() == [0, 1, 2]


def test_values_of_the_wrong_type_are_refused():
    node, arrays = encode(Pair(1.0, Gaussian(3.0)))
    node["value"][1]["a"] = "text"
    with pytest.raises(ValueError, match=r"Pair\.a should be float, but is str"):
        decode(node, arrays)
