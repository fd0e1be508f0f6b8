"""Tensors on a GPU as rows: where they lie is where estimators compute, and answers go back there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from inspect import isfunction
from typing import Any

import numpy as np

TYPES = ("torch.float32", "torch.float64", "torch.float16", "torch.bool")
WHOLE = ("torch.int", "torch.uint")

_place: ContextVar[str | None] = ContextVar("mercer_place_of_rows", default=None)


def place_of(X: Any) -> str | None:
    """The device of a tensor on a GPU; None of all else. Where Triton's interpreter stands in for a
    GPU, tensors of the CPU are such.

    >>> place_of(np.eye(2)) is None
    True
    """
    if getattr(X, "is_cuda", False) is True:
        return str(getattr(X, "device", "cuda"))
    stands_in = os.environ.get("TRITON_INTERPRET") == "1" and type(X).__module__ == "torch"
    return str(X.device) if stands_in else None


def checked(X: Any, name: str = "X") -> Any:
    """A tensor without gradients, of numbers that kernels read."""
    if getattr(X, "requires_grad", False) is True:
        raise ValueError(
            f"{name} asks for gradients, which would not come back; give {name}.detach()."
        )
    kind = str(getattr(X, "dtype", TYPES[0]))
    if kind.startswith("torch.") and kind not in TYPES and not kind.startswith(WHOLE):
        raise ValueError(f"{name} has dtype {kind}; give {name}.float() or {name}.double().")
    return X


def common_place(*given: Any) -> str | None:
    """Where all tensors on a GPU lie; None where there are none.

    >>> common_place(np.eye(2), None) is None
    True
    """
    places = sorted({place for X in given if (place := place_of(X)) is not None})
    if len(places) > 1:
        raise ValueError(f"tensors lie on {' and '.join(places)}; move them to one device.")
    return places[0] if places else None


@contextmanager
def beside(*given: Any) -> Iterator[str | None]:
    """Inside, estimators compute where these lie, if they lie on a GPU; that device."""
    place = common_place(*given)
    if place is None:
        yield None
        return
    token = _place.set(place)
    try:
        yield place
    finally:
        _place.reset(token)


def place_of_rows() -> str | None:
    """The GPU on which the rows of this call lie; None where they do not."""
    return _place.get()


def to_host(X: Any) -> Any:
    """A tensor on a GPU as an array; all else as it is."""
    return X if place_of(X) is None else checked(X).detach().cpu().numpy()


def answered(model: Any, method: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What a method answers: computed where the rows lie, and as a tensor there, where the model
    knows of devices and rows are tensors on a GPU."""
    if not hasattr(model, "device"):
        return method(model, *given, **options)
    with beside(*given, *options.values()) as place:
        if place is None:
            return method(model, *given, **options)
        there = {name: to_host(value) for name, value in options.items()}
        return _sent(method(model, *map(to_host, given), **there), place)


def take_tensors(cls: type[Any], *names: str) -> None:
    """Let methods of a class, its own or inherited, be `answered`."""
    for name in names:
        method = getattr(cls, name, None)
        if isfunction(method) and not hasattr(method, "takes_tensors"):
            setattr(cls, name, _taking(method))


def _taking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *given: Any, **options: Any) -> Any:
        return answered(self, method, *given, **options)

    call.takes_tensors = True  # type: ignore[attr-defined]
    return call


def _sent(out: Any, place: str) -> Any:
    """Arrays of numbers as tensors; labels that are none, and all else, as they are."""
    if type(out) is tuple:
        return tuple(_sent(part, place) for part in out)
    if not isinstance(out, np.ndarray) or out.dtype.kind not in "fiub":
        return out
    return import_module("torch").from_numpy(np.ascontiguousarray(out)).to(place)
