"""Random generators in files: the state of one of NumPy's own, and nothing that the state does not need."""
from __future__ import annotations

from typing import Any

import numpy as np

SOURCES = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
POSITIONS = {"pos": 624, "buffer_pos": 4}  # NumPy reads its memory at these, without a look at them


def state(generator: Any) -> dict[str, Any]:
    """The state as plain values and arrays, and whether the generator is a legacy one."""
    legacy = isinstance(generator, np.random.RandomState)
    found = generator.get_state(legacy=False) if legacy else generator.bit_generator.state
    return {"legacy": legacy, **found}


def generator(state: Any) -> Any:
    """The generator of that state.

    >>> rng = np.random.default_rng(0)
    >>> bool(generator(state(rng)).random() == rng.random())
    True
    """
    rest = dict(state)
    legacy, name = rest.pop("legacy"), rest["bit_generator"]
    if name not in SOURCES or not _in_range(rest) or not _in_range(rest["state"]):
        raise ValueError(f"the tree holds a random generator {name!r:.60} that NumPy does not have, or a state it never has.")
    bits = getattr(np.random, name)(0)
    if legacy:
        out = np.random.RandomState(bits)
        out.set_state(rest)
        return out
    bits.state = rest
    return np.random.Generator(bits)


def _in_range(values: dict[str, Any]) -> bool:
    given = {name: values[name] for name in POSITIONS if name in values}
    return all(type(v) is int and 0 <= v <= POSITIONS[name] for name, v in given.items())
