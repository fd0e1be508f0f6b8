"""Arrays in files: their numbers as safetensors, their order and kind beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

Array = NDArray[Any]
DTYPES = {
    "F64": "f8",
    "F32": "f4",
    "F16": "f2",
    "I64": "i8",
    "I32": "i4",
    "I16": "i2",
    "I8": "i1",
    "U64": "u8",
    "U32": "u4",
    "U16": "u2",
    "U8": "u1",
    "BOOL": "?",
}
WORDS = {
    "c": "f",
    "m": "i",
    "M": "i",
    "U": "u",
    "S": "u",
}  # kinds that safetensors lacks, as numbers that it has
LAST_LETTER = 0x10FFFF


def to_bytes(arrays: list[Array]) -> bytes:
    """The arrays as one safetensors payload."""
    return save({str(i): a for i, a in enumerate(arrays)})


def from_bytes(payload: bytes) -> list[Array]:
    """The arrays of a payload; each has memory of its own, and no more than the payload holds."""
    parts = safetensors.deserialize(payload)  # type: ignore[no-untyped-call]
    found = {name: _array(v["dtype"], v["shape"], v["data"]) for name, v in parts}
    return [found[str(i)] for i in range(len(found))]


def _array(dtype: str, shape: list[int], data: bytearray) -> Array:
    kind = np.dtype(DTYPES[dtype])
    if math.prod(shape) * kind.itemsize != len(data):
        raise ValueError("an array's shape is not that of its numbers.")
    out: Array = np.ndarray(tuple(shape), kind, buffer=data if data else bytearray(16))
    if dtype == "BOOL" and (out.view(np.uint8) > 1).any():
        raise ValueError("an array of truth values holds other ones.")
    return out


def plain(a: Array) -> tuple[Array, list[Any]]:
    """The array as contiguous numbers that safetensors has, and what makes it `a` again: order and
    dtype.

    >>> plain(np.array(["ab", "c"]))
    (array([[97, 98],
           [99,  0]], dtype=uint32), ['C', '<U2'])
    """
    order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    a = np.asarray(a.T if order == "F" else a, order="C")
    a = a.astype(a.dtype.newbyteorder("<"), copy=False)
    return (a, [order]) if a.dtype.str[1:] in _NUMBERS else (_words(a), [order, a.dtype.str])


_NUMBERS = {np.dtype(d).str[1:] for d in DTYPES.values()}


def _words(a: Array) -> Array:
    kind, size = a.dtype.kind, a.dtype.itemsize
    if kind not in WORDS or a.dtype.str[1:] in ("c32", "m8", "M8"):
        raise ValueError(
            f"an array of dtype {a.dtype} cannot be saved; use float64, integers, truth values or text."
        )
    each = {"c": size // 2, "U": 4, "S": 1}.get(kind, size)
    flat = np.frombuffer(a.tobytes(), f"<{WORDS[kind]}{each}")
    return flat.reshape(a.shape if kind in "mM" else (*a.shape, size // each))


def restored(a: Array, order: str, dtype: str | None = None) -> Array:
    """The array of which `plain` gave these."""
    if dtype is not None:
        a = _unworded(a, checked_dtype(dtype))
    return a.T if order == "F" else a


def _unworded(a: Array, dtype: np.dtype[Any]) -> Array:
    each = a.dtype.itemsize * (1 if dtype.kind in "mM" else a.shape[-1])
    if WORDS.get(dtype.kind) != a.dtype.kind or each != dtype.itemsize:
        raise ValueError(f"an array of {dtype} is stored as {a.dtype}.")
    if dtype.kind == "U" and a.size and a.max() > LAST_LETTER:
        raise ValueError("an array of text holds numbers that are no letters.")
    shape = a.shape if dtype.kind in "mM" else a.shape[:-1]
    return np.ndarray(
        shape, dtype, buffer=a if a.size else bytearray(16)
    )  # the same memory, so that no file can ask for more


def checked_dtype(text: Any) -> np.dtype[Any]:
    """A dtype of numbers, truth values, times, text or objects; never a structured one.

    >>> checked_dtype("<f8")
    dtype('float64')
    """
    dtype = (
        np.dtype(text)
        if isinstance(text, str) and len(text) < 32 and "," not in text
        else np.dtype("V1")
    )
    if dtype.kind not in "?buficmMUSO" or dtype.str != text or dtype.str[1:] in ("f16", "c32"):
        raise ValueError(f"{text!r:.60} is no dtype that a file may hold.")
    return dtype
