"""Objects of known classes: values by their fields through the constructor, estimators and maps by
their attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from inspect import Parameter, getattr_static, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer.invariants import check, declared, lists_places
from mercer.store.old_names import OLD
from mercer.store.registry import field_names, find, name_of

if TYPE_CHECKING:
    from mercer.store.tree import Reader, Writer

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
HEADS: dict[str, Any] = {
    "int": Integral,
    "float": Real,
    "str": str,
    "bool": (bool, np.bool_),
    "tuple": (tuple, list),
    "list": (list, tuple),
    "dict": dict,
    "None": type(None),
    "Array": (np.ndarray, sp.sparray, sp.spmatrix),
}


def pack(obj: Any, w: Writer) -> Any:
    """The node of an object."""
    cls = type(obj)
    try:
        name = name_of(cls)
    except KeyError:
        return (
            {"function": w.function(obj)}
            if callable(obj) and hasattr(obj, "__name__")
            else w.foreign(obj)
        )
    w.check(obj)
    if _has_state(cls):
        return {"state": [name, w.at("state", obj.state())]}
    names = field_names(cls)
    if names is not None:
        return {"value": [name, _nodes({n: getattr(obj, n) for n in names}, cls, w)]}
    number = w.seen(obj)
    return (
        {"object": [name, _nodes(_attributes(obj), cls, w)]} if number is None else {"ref": number}
    )


def unpack(kind: Any, body: Any, r: Reader) -> Any:
    """The object of a node."""
    if kind == "ref":
        return r.ref(body)
    if kind not in ("state", "value", "object"):
        raise ValueError(
            f"the tree holds a node of kind {kind!r:.60}, which this version of Mercer does not know; update it."
        )
    cls, given = _class(body[0]), body[1]
    if kind == "state" and _has_state(cls):
        return r.made(_checked(cls.from_state(r.get(given)), cls))
    names = field_names(cls)
    if (
        type(given) is dict
        and not _has_state(cls)
        and kind == ("object" if names is None else "value")
    ):
        upgrade = _upgrade(cls, body[0] in OLD or _of_before(cls, names, given), r)
        return r.made(
            _object(cls, given, r, upgrade)
            if names is None
            else _value(cls, names, given, r, upgrade)
        )
    raise ValueError(f"the tree makes {cls.__name__} in a way that this class is not made.")


def look(obj: Any) -> None:
    """Refuse an object whose fields are not what its class says, or hold places of which it does
    not say any range."""
    cls: Any = type(obj)
    if cls.__module__.partition(".")[0] in ("mercer", "sklearn"):
        said = declared(cls).keys() | _parameters(cls).keys()
        for name in field_names(cls) or vars(obj):
            if name not in said and lists_places(getattr(obj, name)):
                raise ValueError(
                    f"{cls.__name__}.{name} holds whole numbers of no declared range; say one in its `must`."
                )
    check(obj)


def _class(name: Any) -> type[Any]:
    try:
        return find(name)
    except KeyError:
        raise ValueError(
            f"the file names {name!r:.80}, which is no class that files may hold here; "
            "update Mercer, install its extras, or register the class if it is yours."
        ) from None


def _has_state(cls: type[Any]) -> bool:
    return hasattr(cls, "from_state") and hasattr(cls, "state")


def _checked(obj: Any, cls: type[Any]) -> Any:
    if type(obj) is not cls:
        raise ValueError(f"the state of {cls.__name__} gave something else.")
    return obj


def _of_before(cls: type[Any], names: list[str] | None, given: dict[str, Any]) -> bool:
    """Whether there are fields that the class has no more, or attributes that nothing can be set
    to any more."""
    return any(not _may_be_set(cls, n) if names is None else n not in names for n in given)


def _upgrade(cls: type[Any], old: bool, r: Reader) -> Upgrade:
    """What turns the fields of an old file, one with a name or with fields of before, into those
    that the class has now."""
    upgraded: Upgrade | None = getattr(cls, "_upgraded", None) if old else None
    if upgraded is None:
        return lambda values: values

    def upgrade(values: dict[str, Any]) -> dict[str, Any]:
        try:
            new = upgraded(values)
        except (KeyError, AttributeError, TypeError, IndexError, OverflowError) as e:
            named = (
                e.args[0]
                if isinstance(e, KeyError)
                else e.name
                if isinstance(e, AttributeError)
                else None
            )
            lacks = f"lacks {named}" if isinstance(named, str) else "does not hold what that had"
            raise ValueError(
                f"the file is of an older layout of {cls.__name__} and {lacks}; fit again."
            ) from e
        for value in new.values():
            _look_inside(value, r)
        return new

    return upgrade


def _look_inside(value: Any, r: Reader) -> None:
    """Values that an upgrade made are looked at like those of the file."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        for part in value:
            _look_inside(part, r)
    elif (
        type(value).__module__.startswith("mercer.")
        and (names := field_names(type(value))) is not None
    ):
        r.made(value)
        for name in names:
            _look_inside(getattr(value, name), r)


def _value(
    cls: type[Any], names: list[str], given: dict[str, Any], r: Reader, upgrade: Upgrade
) -> Any:
    values = upgrade({name: r.get(node) for name, node in given.items()})
    if not values.keys() <= set(names):
        raise ValueError(f"{cls.__name__} has no field {min(values.keys() - set(names))!r:.60}.")
    _check_types(values, cls)
    return cls(**values)


def _object(cls: type[Any], given: dict[str, Any], r: Reader, upgrade: Upgrade) -> Any:
    obj: Any = object.__new__(cls)
    r.objects.append(obj)  # before its attributes, which may refer to it
    values = upgrade({name: r.get(node) for name, node in given.items()})
    for name in values:
        if not _may_be_set(cls, name):
            raise ValueError(f"{cls.__name__} has no attribute {name!r:.60} to set.")
    _check_types(values, cls)
    state = _defaults(cls) | values
    if cls.__module__.startswith("mercer.") and hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
    else:
        obj.__dict__.update(state)
    return obj


def _may_be_set(cls: type[Any], name: str) -> bool:
    """Whether a name is one of an attribute, not of a method or property; those that keep what they
    found are attributes."""
    of_class = getattr_static(cls, name, None)
    return (
        name.isidentifier()
        and not name.startswith("__")
        and (isinstance(of_class, cached_property) or not hasattr(of_class, "__get__"))
    )


def _attributes(obj: Any) -> dict[str, Any]:
    """What pickle would take, less the versions of others."""
    state = obj.__getstate__() or {}
    return {name: value for name, value in state.items() if name != "_sklearn_version"}


def _defaults(cls: Any) -> dict[str, Any]:
    """Parameters that an older file does not have."""
    return {
        name: p.default for name, p in _parameters(cls).items() if p.default is not Parameter.empty
    }


@lru_cache(maxsize=512)
def _parameters(cls: Any) -> Mapping[str, Parameter]:
    """What a user tells an estimator or a map: only `fit` reads it, and looks at it first."""
    return (
        signature(cls.__init__).parameters
        if issubclass(cls, BaseEstimator) and cls.__init__ is not object.__init__
        else {}
    )


def _nodes(values: dict[str, Any], cls: type[Any], w: Writer) -> dict[str, Any]:
    _check_types(values, cls)
    return {name: w.at(name, values[name]) for name in sorted(values)}


def _check_types(values: dict[str, Any], cls: type[Any]) -> None:
    """Refuse values that are plainly not what the class says they are."""
    for name, says in _annotations(cls).items():
        if name in values and not _fits(values[name], says):
            raise ValueError(
                f"{cls.__name__}.{name} should be {getattr(says, '__name__', says)}, but is {type(values[name]).__name__}."
            )


def _annotations(cls: type[Any]) -> dict[str, Any]:
    return {
        name: says
        for c in reversed(cls.__mro__)
        for name, says in vars(c).get("__annotations__", {}).items()
    }


def _fits(value: Any, says: Any) -> bool:
    """Whether a value is of the type that an annotation spells; one that is not understood allows
    anything.

    >>> _fits(2, "float | None"), _fits("2", "float | None"), _fits("2", "Measure")
    (True, False, True)
    """
    text = says.__name__ if isinstance(says, type) else str(says)
    heads = [part.partition("[")[0] for part in text.split(" | ")]
    return not all(h in HEADS for h in heads) or any(isinstance(value, HEADS[h]) for h in heads)
