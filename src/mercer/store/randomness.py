"""Random generators in files: the state of one of NumPy's own, and nothing that the state does not need."""
from __future__ import annotations

from typing import Any

import numpy as np

SOURCES = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
POSITIONS = {"pos": 624, "buffer_pos": 4}  # NumPy reads its memory at these, without a look at them


def state(generator: Any) -> dict[str, Any]:
    """The state as plain values and arrays, and whether the generator is a legacy one."""
    return {"legacy": isinstance(generator, np.random.RandomState), **_state(generator)}


def generator(state: Any) -> Any:
    """The generator of that state.

    >>> rng = np.random.default_rng(0)
    >>> bool(generator(state(rng)).random() == rng.random())
    True
    """
    rest = dict(state)
    legacy, name = rest.pop("legacy"), rest["bit_generator"]
    fresh = _fresh(name, legacy) if name in SOURCES else None
    if fresh is None or not _alike(rest, _state(fresh)):
        raise ValueError(f"the tree holds a random generator {name!r:.60} that NumPy does not have, or a state it never has.")
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
    """Whether a state has the parts of another, of the same types and sizes, and positions that lie within them."""
    if isinstance(model, dict):
        return isinstance(given, dict) and given.keys() == model.keys() and all(_alike(given[k], model[k], k) for k in model)
    if isinstance(model, np.ndarray):
        return isinstance(given, np.ndarray) and given.dtype == model.dtype and given.shape == model.shape
    if name in POSITIONS:
        return type(given) is int and 0 <= given <= POSITIONS[name]
    return type(given) is type(model) and (not isinstance(given, int) or 0 <= given < 1 << 128)
