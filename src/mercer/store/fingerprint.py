"""A name for what an object holds: the same in every process, before and after saving, and for no other contents."""
from __future__ import annotations

import hashlib
import json
from typing import Any

import joblib
import numpy as np

from mercer.store.arrays import Array
from mercer.store.tree import Writer


def fingerprint(obj: Any) -> str:
    """A hash of the contents of a model, kernel or map; a user's own functions and classes count as joblib hashes them.

    >>> from mercer.kernels import Gaussian
    >>> fingerprint(Gaussian(2.0)) == fingerprint(Gaussian(2)) != fingerprint(Gaussian(3.0))
    True
    """
    tree = Hashing(type(obj).__name__).put(obj)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


class Hashing(Writer):
    """A tree with hashes where files have arrays: which arrays are one in memory does not matter."""

    def check(self, obj: Any) -> None:
        """Whatever it holds has a name."""

    def array(self, a: Array) -> list[Any]:
        return [a.dtype.str, list(a.shape), hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()]

    def function(self, f: Any) -> Any:
        try:
            return super().function(f)
        except ValueError:
            return str(joblib.hash(f))

    def foreign(self, obj: Any) -> Any:
        return {"foreign": str(joblib.hash(obj))}
