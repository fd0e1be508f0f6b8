"""Kinds of values beside JSON's own, each with the way into the tree and back."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator

from mercer.store import nested
from mercer.store.arrays import checked_dtype
from mercer.store.registry import METHODS, find_function, function_name

if TYPE_CHECKING:
    from mercer.store.tree import Reader, Writer


BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
POSITIONS = {"pos": 624, "buffer_pos": 4}  # NumPy reads its memory at these, without a look at them


def generator_state(generator: Any) -> dict[str, Any]:
    """The state as plain values and arrays, and whether the generator is a legacy one."""
    return {"legacy": isinstance(generator, np.random.RandomState), **_state(generator)}


def generator(state: Any) -> Any:
    """The generator of that state.

    >>> rng = np.random.default_rng(0)
    >>> bool(generator(generator_state(rng)).random() == rng.random())
    True
    """
    rest = dict(state)
    legacy, name = rest.pop("legacy"), rest["bit_generator"]
    fresh = _fresh(name, legacy) if name in BIT_GENERATORS else None
    if fresh is None or not _alike(rest, _state(fresh)):
        raise ValueError(
            f"the tree holds a random generator {name!r:.60} that NumPy does not have, or a state it never has."
        )
    if legacy:
        fresh.set_state(rest)
    else:
        fresh.bit_generator.state = rest
    return fresh


def _fresh(name: str, legacy: bool) -> Any:
    return (np.random.RandomState if legacy else np.random.Generator)(getattr(np.random, name)(0))


def _state(generator: Any) -> Any:
    legacy = isinstance(generator, np.random.RandomState)
    return generator.get_state(legacy=False) if legacy else generator.bit_generator.state


def _alike(given: Any, model: Any, name: str = "") -> bool:
    """Whether a state has the parts of another, of the same types and sizes, and positions that lie
    within them."""
    if isinstance(model, dict):
        return (
            isinstance(given, dict)
            and given.keys() == model.keys()
            and all(_alike(given[k], model[k], k) for k in model)
        )
    if isinstance(model, np.ndarray):
        return (
            isinstance(given, np.ndarray)
            and given.dtype == model.dtype
            and given.shape == model.shape
        )
    if name in POSITIONS:
        return type(given) is int and 0 <= given <= POSITIONS[name]
    return type(given) is type(model) and (not isinstance(given, int) or 0 <= given < 1 << 128)


TYPES: dict[str, type[Any]] = {t.__name__: t for t in (bool, int, float, str, object)} | {
    f"numpy.{name}": getattr(np, name)
    for name in ("float64", "float32", "float16", "int64", "int32", "uint64", "bool_")
}
SPARSE: dict[str, Any] = {
    c.__name__: c for c in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)
}


class Kind(NamedTuple):
    """How a kind of value becomes the body of a node, and a body the value."""

    pack: Callable[[Any, Writer], Any]
    unpack: Callable[[Any, Reader], Any]


def kind_of(v: Any) -> str | None:
    """The name of the kind; subclasses of Python's own types have none, as they would come back as
    something else."""
    if isinstance(v, np.generic):
        return "scalar"
    if isinstance(v, np.dtype):
        return "dtype"
    if type(v) is np.ndarray and v.dtype == object:
        return "objects"
    return _BY_TYPE.get(type(v))


# numbers and text
def _float(body: Any, _: Reader) -> float:
    value = struct.unpack(">d", bytes.fromhex(body))[0]
    return float(value)


def _scalar(v: Any, _: Writer) -> Any:
    dtype = checked_dtype(v.dtype.newbyteorder("<").str)
    return [dtype.str, np.asarray(v, dtype).tobytes().hex()]


def _of_scalar(body: Any, _: Reader) -> Any:
    dtype, data = checked_dtype(body[0]), bytes.fromhex(body[1])
    if dtype.kind == "O" or len(data) != dtype.itemsize or (dtype.kind == "b" and data > b"\1"):
        raise ValueError(f"{body!r:.60} is no number of {dtype}.")
    return np.ndarray((), dtype, data)[()]


# containers
def _items(body: Any, r: Reader) -> list[Any]:
    if type(body) is not list:
        raise ValueError(f"the tree holds {body!r:.60} where a list should be.")
    return [r.get(item) for item in body]


def _range(v: range, w: Writer) -> Any:
    if not w.charge(64 * len(v)):
        raise ValueError(f"{w.where()} is too long a range to be saved; give a list.")
    return [w.put(v.start), w.put(v.stop), w.put(v.step)]


def _of_range(body: Any, r: Reader) -> range:
    out = range(*_items(body, r))
    if not r.charge(64 * len(out)):
        raise ValueError("the tree holds too long a range.")
    return out


def _sorted(v: Any, w: Writer) -> list[Any]:
    return sorted((w.at("", item) for item in v), key=repr)


def _dict(v: dict[Any, Any], w: Writer) -> Any:
    return [[w.at("", key), w.at(f"[{key!r:.40}]", value)] for key, value in v.items()]


def _of_dict(body: Any, r: Reader) -> dict[Any, Any]:
    out = {r.get(key): r.get(value) for key, value in body}
    if len(out) != len(body):
        raise ValueError("the tree holds a dict with a key twice.")
    return out


def _objects(v: Any, w: Writer) -> Any:
    return [list(v.shape), [w.at("", item) for item in v.ravel().tolist()]]


def _of_objects(body: Any, r: Reader) -> Any:
    shape, items = body
    values = _items(items, r)
    out = np.empty(len(values), object)
    for i, value in enumerate(values):  # at once, NumPy would look into those that are sequences
        out[i] = value
    return out.reshape(shape)


def _sparse(v: Any, w: Writer) -> Any:
    return [
        type(v).__name__,
        list(v.shape),
        *(w.at(part, getattr(v, part)) for part in ("data", "indices", "indptr")),
    ]


def _of_sparse(body: Any, r: Reader) -> Any:
    name, shape, *parts = body
    data, indices, indptr = _items(parts, r)
    out = SPARSE[name]((data, indices, indptr), shape=tuple(shape))
    out.check_format(full_check=True)
    return out


# functions, of which there are only those named here
def named_function(f: Any, where: str) -> str:
    """The name of a function in files; ValueError where it is a user's own."""
    try:
        return function_name(f)
    except KeyError:
        what = f"the Python function {getattr(f, '__name__', type(f).__name__)}"
        top = where.partition(".")[0]
        raise ValueError(
            f"{top} cannot be saved: {where} is {what}, and files hold no code; "
            "use named functions and kernels of Mercer, or pickle the model."
        ) from None


def _method(v: MethodType, w: Writer) -> Any:
    if isinstance(v.__self__, BaseEstimator) and v.__name__ in METHODS:
        return [v.__name__, w.at("", v.__self__)]
    return w.function(v)


def _of_method(body: Any, r: Reader) -> Any:
    name, of = body[0], r.get(body[1])
    if (
        name not in METHODS
        or not isinstance(of, BaseEstimator)
        or not callable(getattr(type(of), name, None))
    ):
        raise ValueError(f"the tree names {name!r:.60}, which is no map.")
    return MethodType(getattr(type(of), name), of)


def _spline(v: BSpline, w: Writer) -> Any:
    return [w.at("t", v.t), w.at("c", v.c), int(v.k), v.extrapolate, int(v.axis)]


def _of_spline(body: Any, r: Reader) -> BSpline:
    t, c, k, extrapolate, axis = _items(body, r)
    return BSpline(t, c, k, extrapolate, axis)


def _type(v: type[Any], w: Writer) -> Any:
    found = next((name for name, t in TYPES.items() if t is v), None)
    return found or w.foreign(v)


KINDS: dict[str, Kind] = {
    "int": Kind(lambda v, _: hex(v), lambda body, _: int(body, 16)),
    "float": Kind(lambda v, _: struct.pack(">d", v).hex(), _float),
    "complex": Kind(
        lambda v, w: [w.put(v.real), w.put(v.imag)], lambda body, r: complex(*_items(body, r))
    ),
    "bytes": Kind(lambda v, _: v.hex(), lambda body, _: bytes.fromhex(body)),
    "scalar": Kind(_scalar, _of_scalar),
    "dtype": Kind(lambda v, _: checked_dtype(v.str).str, lambda body, _: checked_dtype(body)),
    "type": Kind(_type, lambda body, _: TYPES[body]),
    "tuple": Kind(
        lambda v, w: [w.at("", item) for item in v], lambda body, r: tuple(_items(body, r))
    ),
    "nested": Kind(lambda v, _: nested.pack(v), lambda body, _: nested.unpack(body)),
    "set": Kind(_sorted, lambda body, r: set(_items(body, r))),
    "frozenset": Kind(_sorted, lambda body, r: frozenset(_items(body, r))),
    "dict": Kind(_dict, _of_dict),
    "slice": Kind(
        lambda v, w: [w.put(v.start), w.put(v.stop), w.put(v.step)],
        lambda body, r: slice(*_items(body, r)),
    ),
    "range": Kind(_range, _of_range),
    "array": Kind(lambda v, w: w.array(v), lambda body, r: r.array(body)),
    "objects": Kind(_objects, _of_objects),
    "sparse": Kind(_sparse, _of_sparse),
    "function": Kind(lambda v, w: w.function(v), lambda body, _: find_function(body)),
    "method": Kind(_method, _of_method),
    "spline": Kind(_spline, _of_spline),
    "generator": Kind(
        lambda v, w: w.at("state", generator_state(v)), lambda body, r: generator(r.get(body))
    ),
}
_BY_TYPE: dict[type[Any], str] = {
    int: "int",
    float: "float",
    complex: "complex",
    bytes: "bytes",
    type: "type",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    dict: "dict",
    slice: "slice",
    range: "range",
    np.ndarray: "array",
    np.memmap: "array",
    FunctionType: "function",
    np.ufunc: "function",
    BuiltinFunctionType: "function",
    MethodType: "method",
    BSpline: "spline",
    np.random.RandomState: "generator",
    np.random.Generator: "generator",
    **dict.fromkeys(SPARSE.values(), "sparse"),
}
