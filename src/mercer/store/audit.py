"""What a file holds, told without asking the model: sums, versions, classes, arrays; and names for
contents."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import joblib
import numpy as np

from mercer.store import arrays, files
from mercer.store.arrays import Array
from mercer.store.tree import Writer, decode


@dataclass(frozen=True)
class Audit:
    """What `mercer check` shows. `id` is the head of `sha256`, the sum of the whole file; reports
    name it.

    Examples
    --------
    >>> import tempfile, mercer
    >>> path = tempfile.mkdtemp() + "/k.mercer"
    >>> files.save(mercer.kernels.Gaussian(2.0), path, kind="kernel")
    >>> found = audit(path)
    >>> found.sha256.startswith(found.id), found.functions
    (True, ())
    """

    path: str
    kind: str
    id: str
    sha256: str
    bytes: int
    format: int
    written_by: str
    read_by: str
    classes: dict[str, int]
    functions: tuple[str, ...]
    arrays: tuple[dict[str, Any], ...]  # class, field, dtype, shape, bytes

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(path: files.File) -> Audit:
    """Read a file as `load` does, with every check, and say what is in it: ValueError or OSError
    where it cannot be loaded.

    >>> import tempfile, mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files.save(mercer.kernels.Gaussian(2.0), f"{folder}/k.mercer", kind="kernel")
    ...     found = audit(f"{folder}/k.mercer")
    >>> found.kind, found.classes, found.arrays
    ('kernel', {'kernels.Gaussian': 1}, ())
    """
    with files.told(path):
        parts = files.read(path)
        about, found = files.parse(parts.tree), arrays.from_bytes(parts.payload)
        decode(about["root"], found)
    seen = _Seen(found)
    seen.walk(about["root"], "", "")
    digest, version = parts.sha256(), importlib.import_module("mercer").__version__
    kind, by = (str(about[k])[:60] for k in ("kind", "mercer"))
    return Audit(
        os.fspath(path),
        kind,
        files.id_of(digest),
        digest,
        parts.size,
        parts.version,
        by,
        version,
        dict(sorted(seen.classes.items())),
        tuple(sorted(seen.functions)),
        tuple(seen.arrays),
    )


class _Seen:
    """The classes, functions and arrays of a tree."""

    def __init__(self, found: list[arrays.Array]) -> None:
        self.classes: Counter[str] = Counter()
        self.functions: set[str] = set()
        self.arrays: list[dict[str, Any]] = []
        self._found, self._met = found, set[int]()

    def walk(self, node: Any, cls: str, name: str) -> None:
        if isinstance(node, list):
            for item in node:
                self.walk(item, cls, name)
        elif isinstance(node, dict):
            ((kind, body),) = node.items()
            getattr(self, f"_{kind}", self._other)(body, cls, name)

    def _other(self, body: Any, cls: str, name: str) -> None:
        self.walk(body, cls, name)

    def _object(self, body: Any, cls: str, name: str) -> None:
        self.classes[body[0]] += 1
        for field, node in body[1].items():
            self.walk(node, body[0], field)

    _value = _object

    def _state(self, body: Any, cls: str, name: str) -> None:
        self.classes[body[0]] += 1
        self.walk(body[1], body[0], "")

    def _dict(self, body: Any, cls: str, name: str) -> None:
        for key, node in body:
            self.walk(node, cls, f"{name}[{key}]" if name else str(key))

    def _function(self, body: Any, cls: str, name: str) -> None:
        self.functions.add(str(body))

    def _array(self, body: Any, cls: str, name: str) -> None:
        if body[0] not in self._met:
            self._met.add(body[0])
            a = self._found[body[0]]
            dtype = body[2] if len(body) > 2 else a.dtype.name
            self.arrays.append(
                {
                    "class": cls,
                    "field": name,
                    "dtype": dtype,
                    "shape": list(a.shape),
                    "bytes": int(a.nbytes),
                }
            )


def fingerprint(obj: Any) -> str:
    """A hash of the contents of a model, kernel or map; a user's own functions and classes count as
    joblib hashes them.

    >>> from mercer.kernels import Gaussian
    >>> fingerprint(Gaussian(2.0)) == fingerprint(Gaussian(2)) != fingerprint(Gaussian(3.0))
    True
    """
    tree = Hashing(type(obj).__name__).put(obj)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


class Hashing(Writer):
    """A tree with hashes where files have arrays: which arrays are one in memory does not
    matter."""

    def check(self, obj: Any) -> None:
        """Whatever it holds has a name."""

    def array(self, a: Array) -> list[Any]:
        return [
            a.dtype.str,
            list(a.shape),
            hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest(),
        ]

    def function(self, f: Any) -> Any:
        try:
            return super().function(f)
        except ValueError:
            return str(joblib.hash(f))

    def foreign(self, obj: Any) -> Any:
        return {"foreign": str(joblib.hash(obj))}
