"""torch, where it is installed: modules of this room load without it, and `devices` says what is
missing before any of them is used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

torch: Any = import_module("torch") if find_spec("torch") else None
Tensor = Any  # torch.Tensor
