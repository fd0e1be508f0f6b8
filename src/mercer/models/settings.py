"""Settings of estimators: their types, and checks, of which each returns the value, or says in one
sentence what it must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import get_tags

from mercer import methods
from mercer.inputs import Array
from mercer.kernels import Kernel
from mercer.kernels.defaults import KernelToBe
from mercer.kernels.named import Gamma as Gamma
from mercer.lifts import Lift
from mercer.lifts.base import Seed as Seed  # of maps and of models alike
from mercer.methods import Method

# None: one that is scaled to the rows; others become a kernel when there are rows
KernelSetting: TypeAlias = Kernel | KernelToBe | str | None
FittedKernel: TypeAlias = Kernel | str  # text: "precomputed"
FittedLift: TypeAlias = Lift | TransformerMixin
LiftSetting: TypeAlias = FittedLift | None
Via: TypeAlias = Method | str
MemoryLimit: TypeAlias = float | str | None  # of bytes


def positive(value: object, name: str) -> float:
    """A number > 0.

    >>> positive(2, "alpha")
    2.0
    """
    if (found := number(value)) is not None and found > 0:
        return found
    raise ValueError(f"{name} must be a number > 0, got {value!r}.")


def number(value: object) -> float | None:
    """A finite number; None where it is none, or larger than any float.

    >>> number(2), number("2"), number(10**400), number(float("nan"))
    (2.0, None, None, None)
    """
    try:
        found = (
            float(value) if isinstance(value, int | float | np.integer | np.floating) else math.nan
        )
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: object, name: str) -> int:
    """An integer >= 1."""
    if isinstance(value, int | np.integer) and value >= 1:
        return int(value)
    raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")


def checked_flag(value: object, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def shown(value: Any) -> Any:
    """A setting as a message can show it: long ones by their type alone.

    >>> shown([1, 2]), shown(np.ones(99))
    ([1, 2], 'a value of type ndarray')
    """
    text = repr(value)
    return (
        value if len(text) <= 60 and "\n" not in text else f"a value of type {type(value).__name__}"
    )


def way_of(
    via: Via, kernel: KernelSetting, lift: LiftSetting, allowed: Sequence[str] = methods.WAYS
) -> tuple[str, Method]:
    """What `via` says, beside a kernel or a lift: a lift leaves no choice of a map, and so of no
    way."""
    found = methods.resolve(via, allowed)
    if lift is not None and kernel is not None:
        raise ValueError("give a kernel or a lift, not both.")
    if lift is not None and not (isinstance(via, str) and via in ("auto", "features")):
        told = "a lift is the feature map itself, so via must be 'auto' or 'features' beside it"
        raise ValueError(f"{told}, got {via!r}; give a kernel instead of a lift.")
    return found


def checked_lift(lift: LiftSetting) -> FittedLift:
    """A feature map, or a transformer that serves as one."""
    if not isinstance(lift, type) and all(
        hasattr(lift, name) for name in ("fit", "transform", "get_params")
    ):
        return lift
    raise ValueError(
        f"lift must be a map of mercer.lifts, or a transformer with fit and transform, got {shown(lift)!r}."
    )


def takes_text(lift: LiftSetting) -> bool:
    """Whether a lift reads texts instead of numbers.

    >>> from mercer.lifts import Identity, NGrams
    >>> takes_text(NGrams()), takes_text(Identity()), takes_text(None)
    (True, False, False)
    """
    if lift is None or not hasattr(lift, "__sklearn_tags__") or isinstance(lift, type):
        return False
    tags = get_tags(lift).input_tags
    return bool(tags.string) and not bool(tags.two_d_array)


def two_or_more(classes: Array, *, streamed: bool = False) -> Array:
    """The classes of y, which must be two at least; of a stream they may be told beforehand."""
    if len(classes) < 2:
        more = ", or classes= in partial_fit" if streamed else ""
        raise ValueError(
            f"y has one class only, {_listed(classes)}; give rows of two classes or more{more}."
        )
    return classes


def check_same_classes(given: Any, classes: Array) -> None:
    """Classes given again in mid-stream must be those of its first batch."""
    if given is not None and not np.array_equal(np.unique(given), classes):
        raise ValueError(
            f"classes differ from those of the first partial_fit, {_listed(classes)}; give the same, or none."
        )


def coded(y: Array, classes: Array) -> Array:
    """-1 and 1 for two classes, else positions.

    >>> coded(np.array(["b", "a"]), np.array(["a", "b"]))
    array([ 1, -1])
    """
    new = np.setdiff1d(y, classes)
    if len(new):
        raise ValueError(
            f"y has classes that the model does not know, {_listed(new)}; give all in the first partial_fit."
        )
    at = np.searchsorted(classes, y)
    return np.asarray(2 * at - 1 if len(classes) == 2 else at)


def _listed(classes: Array) -> str:
    return ", ".join(repr(c) for c in classes[:5].tolist()) + (" ..." if len(classes) > 5 else "")


def of_largest(scores: Array, classes: Array) -> Array:
    """The class of every row: that of the largest score, or by the sign of the only one.

    >>> of_largest(np.array([-1.0, 2.0]), np.array(["no", "yes"])).tolist()
    ['no', 'yes']
    """
    return classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def class_weights(given: Any, classes: Array, codes: Array, w: Array) -> Array:
    """The factor of every class: 1, those of a dict, or for "balanced" such that all classes weigh
    the same."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return w.sum() / (len(classes) * np.bincount(codes, w))
    if not isinstance(given, dict) or not all(
        isinstance(v, int | float | np.number) and 0 < v < np.inf for v in given.values()
    ):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of weights > 0 by class, got {given!r}."
        )
    unknown, without = set(given) - set(classes.tolist()), set(classes.tolist()) - set(given)
    if unknown and without:  # a fold may lack a class, but a name that none has is a slip
        listed = ", ".join(sorted(map(repr, unknown))[:5])
        raise ValueError(
            f"class_weight names {listed}, which y does not have; give weights of classes of y only."
        )
    return np.array([float(given.get(c, 1.0)) for c in classes.tolist()])


def penalty(alpha: object, outputs: int) -> Array:
    """A penalty >= 0, or one for each output."""
    a = _numbers(alpha)
    if (
        a is None
        or a.ndim > 1
        or (a.ndim and len(a) != outputs)
        or not (np.isfinite(a) & (a >= 0)).all()
    ):
        raise ValueError(
            f"alpha must be a number >= 0, or one for each of {outputs} outputs, got {alpha!r}."
        )
    return a


def grid(values: object, name: str) -> Array:
    """One or more numbers >= 0."""
    a = _numbers(values)
    if a is None or a.ndim > 1 or not a.size or not (np.isfinite(a) & (a >= 0)).all():
        raise ValueError(f"{name} must be numbers >= 0, got {values!r}.")
    return np.atleast_1d(a)


def _numbers(value: object) -> Array | None:
    """None for what is no number, such as text that spells one."""
    try:
        found = np.asarray(value)
        return None if found.dtype.kind in "US" else found.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        return None
