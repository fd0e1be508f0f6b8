"""Where estimators compute: `device` as users give it, checked without loading torch before it is
asked for."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from mercer.tensors import place_of_rows

DEVICES = "'cpu', 'cuda', 'cuda:0' and the like, or 'auto'"


def missing() -> str | None:
    """Why there is no GPU to compute on, in words; None where there is one.

    >>> missing() is None or missing().endswith(".")
    True
    """
    absent = [name for name in ("torch", "triton") if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} cannot be imported; install mercer[gpu]."
    if interpreted() or import_module("torch").cuda.is_available():
        return None
    return "torch sees no CUDA device."


def interpreted() -> bool:
    """Whether Triton's interpreter stands in for a GPU, as in tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def device_of(asked: str) -> str | None:
    """The torch device of GPU kernels, or None: the CPU's own code.

    >>> device_of("cpu") is None
    True
    >>> device_of("tpu")
    Traceback (most recent call last):
        ...
    ValueError: device must be 'cpu', 'cuda', 'cuda:0' and the like, or 'auto', got 'tpu'.
    """
    kind = asked.partition(":")[0] if isinstance(asked, str) else None
    if kind not in ("cpu", "cuda", "auto"):
        raise ValueError(f"device must be {DEVICES}, got {asked!r}.")
    if (here := place_of_rows()) is not None:
        return _beside_rows(asked, here)
    if kind == "cpu":
        return None
    why = missing()
    if why is not None and kind == "auto":
        return None
    if why is not None:
        raise ValueError(f"device={asked!r} is not there: {why.removesuffix('.')}, or use 'cpu'.")
    if interpreted():
        return "cpu"
    return "cuda" if kind == "auto" else _numbered(asked)


def checked_device(asked: str) -> str:
    """The same, as it was given; ValueError where it is not there.

    >>> checked_device("auto")
    'auto'
    """
    device_of(asked)
    return asked


def _beside_rows(asked: str, here: str) -> str:
    """That of rows on a GPU, whatever was asked for that does not contradict it."""
    if (why := missing()) is not None:
        raise ValueError(f"X lies on {here}, but {why.removesuffix('.')}, or give X.cpu().")
    if ":" in asked and not asked.startswith("cpu") and asked != here and not interpreted():
        raise ValueError(f"X lies on {here}, and device={asked!r}; move X there, or use 'auto'.")
    return here


def device_there(asked: str) -> str | None:
    """The same of a device that a model was fitted on, and None where it is not there now.

    >>> device_there("cpu") is None
    True
    """
    if place_of_rows() is not None:
        return device_of(asked)
    return None if asked == "cpu" or missing() is not None else device_of(asked)


def told(asked: str) -> str:
    """How plans name the GPU that was taken.

    >>> told("cuda:1")
    'on the GPU (cuda:1)'
    """
    if (here := place_of_rows()) is not None:
        return f"on the GPU ({here}, where X lies)"
    return f"on the GPU ({'cuda, which is there' if asked == 'auto' else asked})"


def without(asked: str) -> str:
    """How plans say that device="auto" found no GPU, behind what they say; "" where none was looked
    for, or one is there.

    >>> without("cpu")
    ''
    """
    looked = asked == "auto" and place_of_rows() is None
    why = missing() if looked else None
    return "" if why is None else f"; on the CPU, as there is no GPU ({why.removesuffix('.')})"


def free_bytes(device: str) -> float:
    """Memory of a torch device that is not taken; Triton's interpreter has what a small one has."""
    if device == "cpu":
        return 8e9
    return float(import_module("torch").cuda.mem_get_info(device)[0])


def _numbered(asked: str) -> str:
    """A CUDA device, whose number is one that torch sees."""
    number, count = asked.partition(":")[2], import_module("torch").cuda.device_count()
    if asked != "cuda" and not (number.isdecimal() and int(number) < count):
        there = "'cuda:0'" if count == 1 else f"'cuda:0' to 'cuda:{count - 1}'"
        raise ValueError(f"device={asked!r} is not there: torch sees {there}; use one of these.")
    return asked
