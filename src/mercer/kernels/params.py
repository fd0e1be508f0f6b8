"""Kernels as values inside scikit-learn: parameters by name, nested ones by path, changed only by
`set_params`; arrays as values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from mercer.ops.frozen import FrozenArray as FrozenArray


def plain(v: Any) -> Any:
    """Arrays and lists as tuples, NumPy numbers as Python's: so kernels compare, hash and print."""
    if isinstance(v, np.ndarray):
        return plain(v.tolist())
    if isinstance(v, (list, tuple)):
        return tuple(map(plain, v))
    return v.item() if isinstance(v, np.generic) else v


class Params:
    """Named parameters of a dataclass that may hold others of its kind, alone or in tuples.

    A value by convention: only `set_params` changes it, in place, because scikit-learn calls that
    on clones it owns and ignores what comes back. Shared parts are copied on the way down.
    """

    static: ClassVar[
        tuple[str, ...]
    ] = ()  # numbers that choose the formula: not differentiated, not traced
    most: ClassVar[dict[str, float]] = {}  # of continuous parameters that end somewhere

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep`, those of the kernels inside too, as
        `terms__0__bandwidth`."""
        out = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        for key, part in list(_parts(self)) if deep else []:
            out[key] = part
            out |= {f"{key}__{name}": value for name, value in part.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, by the names of `get_params`."""
        new = object.__new__(type(self))  # checked before anything changes
        new.__dict__.update(self.__dict__)
        for path, value in params.items():
            head, _, rest = path.partition("__")
            if head not in {f.name for f in fields(self)}:  # type: ignore[arg-type]
                raise ValueError(
                    f"{path!r} is not a parameter of {type(self).__name__}; it has {', '.join(self.get_params())}."
                )
            setattr(new, head, _replaced(getattr(new, head), rest, value, path))
        new.__post_init__()
        self.__dict__.update(new.__dict__)
        return self

    def clone(self) -> Self:
        """An equal kernel of its own."""
        return type(self)(**{f.name: getattr(self, f.name) for f in fields(self)})  # type: ignore[arg-type]

    def __sklearn_clone__(self) -> Self:
        return self.clone()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _introduce()

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            value = value if str(f.type).startswith("FrozenArray") else plain(value)
            whole = isinstance(value, int) and not isinstance(value, bool)
            real = f.type is float or str(f.type).startswith("float")
            setattr(self, f.name, float(value) if whole and real else value)
        self.check()
        _introduce()

    def check(self) -> None:
        """Refuse wrong parameters, by name."""


_known: list[bool] = []


def _introduce() -> None:
    """Tell scikit-learn that these are kernels: it then asks for whole Gram matrices, else for one
    pair a call."""
    if _known or "sklearn.metrics" not in sys.modules:
        return  # nobody can ask; and importing scikit-learn takes longer than making a kernel
    from sklearn.gaussian_process.kernels import Kernel

    Kernel.register(Params)
    _known.append(True)


def _parts(k: Params) -> Iterator[tuple[str, Params]]:
    for f in fields(k):  # type: ignore[arg-type]
        v = getattr(k, f.name)
        if isinstance(v, Params):
            yield f.name, v
        elif isinstance(v, tuple):
            yield from ((f"{f.name}__{i}", t) for i, t in enumerate(v) if isinstance(t, Params))


def _replaced(old: Any, rest: str, value: Any, path: str) -> Any:
    """`old` with the parameter at `rest`, the end of `path`, set to `value`."""
    if not rest:
        return value
    if isinstance(old, Params):
        return old.clone().set_params(**{rest: value})
    head, _, rest = rest.partition("__")
    if not (isinstance(old, tuple) and head.isdecimal() and int(head) < len(old)):
        raise ValueError(
            f"{path!r} does not name a part of {old!r}; see get_params() for the names there are."
        )
    i = int(head)
    return (*old[:i], _replaced(old[i], rest, value, path), *old[i + 1 :])


def substitute(k: Any, f: Callable[[str, float], Any], path: str = "") -> Any:
    """A copy of the tree with every continuous parameter replaced by f(path, value); nothing is
    validated."""
    if isinstance(k, float):
        return f(path, k)
    if isinstance(k, tuple):
        return tuple(substitute(v, f, f"{path}__{i}") for i, v in enumerate(k))
    if not isinstance(k, Params):
        return k
    copy = object.__new__(type(k))
    for field in fields(k):  # type: ignore[arg-type]
        v, inner = getattr(k, field.name), f"{path}__{field.name}" if path else field.name
        setattr(copy, field.name, v if field.name in k.static else substitute(v, f, inner))
    return copy


def limits(k: Any, path: str = "") -> dict[str, float]:
    """The largest values of the continuous parameters that end somewhere, by path."""
    if isinstance(k, tuple):
        return {p: v for i, t in enumerate(k) for p, v in limits(t, f"{path}__{i}").items()}
    if not isinstance(k, Params):
        return {}
    out: dict[str, float] = {}
    for field in fields(k):  # type: ignore[arg-type]
        inner = f"{path}__{field.name}" if path else field.name
        out |= {inner: k.most[field.name]} if field.name in k.most else {}
        out |= limits(getattr(k, field.name), inner)
    return out
