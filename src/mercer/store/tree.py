"""A model as a tree of JSON values and a list of arrays, and back; what is neither plain nor of a
known class is refused.

Plain values are themselves. Anything else is an object with one key, its kind: {"tuple": [...]},
{"array": [0, "C"]}, {"value": [class, fields]}, {"object": [class, attributes]}, {"ref": 3} for
object number 3 again, and so on.
"""

from __future__ import annotations

import math
from typing import Any

from mercer.store import arrays, nested, objects, values
from mercer.store.arrays import Array

MAX_LEVELS = 100  # of nesting: a third of what Python's stack would hold
MAX_REPEATED_BYTES = (
    64 << 20
    # bytes of arrays that may be met again without being written again: what a small file can blow up
    # to
)


def encode(obj: Any) -> tuple[Any, list[Array]]:
    """The tree of an object, and its arrays; ValueError, with the place, where it holds what files
    cannot.

    >>> encode({"a": (1, 2.5)})
    ({'dict': [['a', {'tuple': [1, 2.5]}]]}, [])
    """
    writer = Writer(type(obj).__name__)
    return writer.put(obj), writer.arrays


def decode(tree: Any, arrays: list[Array]) -> Any:
    """The object of a tree; ValueError where the tree is not one that `encode` writes.

    >>> decode({"dict": [["a", {"tuple": [1, 2.5]}]]}, [])
    {'a': (1, 2.5)}
    """
    try:
        return Reader(arrays).whole(tree)
    except ValueError:
        raise
    except (
        Exception
    ) as e:  # whatever the constructors of known classes make of values they were never meant for
        raise ValueError(
            f"the tree does not describe a model ({type(e).__name__}: {e!s:.200})."
        ) from e


class Allowance:
    """Bytes that need not be in the file: the same for those who write and those who read it."""

    def __init__(self) -> None:
        self._left = MAX_REPEATED_BYTES

    def charge(self, size: int) -> bool:
        """Whether so many bytes are left; they are then taken."""
        fits = size <= self._left
        self._left -= size if fits else 0
        return fits


class Writer(Allowance):
    """Takes objects apart, in an order that depends on what they hold only."""

    def __init__(self, of: str) -> None:
        super().__init__()
        self.arrays: list[Array] = []
        self.place: list[str] = [of]
        self._arrays: dict[int, list[Any]] = {}
        self._objects: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is unique while its object lives

    def put(self, v: Any) -> Any:
        """The node of a value."""
        if _is_plain(v):
            return v
        if len(self.place) > MAX_LEVELS:
            raise ValueError(
                f"{self.place[0]} cannot be saved, as it nests more than {MAX_LEVELS} levels deep or holds itself."
            )
        if nested.is_deep(v):
            return {"nested": nested.pack(v)}
        if type(v) is list:
            return [self.at("", item) for item in v]
        kind = values.kind_of(v)
        return {kind: values.KINDS[kind].pack(v, self)} if kind else objects.pack(v, self)

    def at(self, name: str, v: Any) -> Any:
        """The node of a value one level deeper."""
        self.place.append(name)
        node = self.put(v)
        self.place.pop()
        return node

    def array(self, a: Array) -> list[Any]:
        """Where the numbers of an array are; one that is met again is written once, unless that
        saves too much."""
        if id(a) not in self._arrays or not self.charge(a.nbytes):
            numbers, how = arrays.plain(a)
            self._arrays[id(a)] = [len(self.arrays), *how]
            self.arrays.append(numbers)
            self._alive.append(a)
        return self._arrays[id(a)]

    def check(self, obj: Any) -> None:
        """Refuse what could not be read again."""
        objects.look(obj)

    def seen(self, obj: Any) -> int | None:
        """The number of an object that was met before; one that is new gets a number now."""
        if id(obj) in self._objects:
            return self._objects[id(obj)]
        self._objects[id(obj)] = len(self._objects)
        self._alive.append(obj)
        return None

    def function(self, f: Any) -> Any:
        """The name of a function that files may name."""
        return values.named_function(f, self.where())

    def foreign(self, obj: Any) -> Any:
        """What to do with a thing of no known class: refuse it."""
        raise ValueError(
            f"{self.place[0]} cannot be saved: {self.where()} is {_article(type(obj))}, which is not a class of Mercer; "
            "files hold no code, so replace it, or give its class to mercer.store.register."
        )

    def where(self) -> str:
        """The path to the value at hand, such as KernelRidge.lift_.kernel_."""
        return ".".join(filter(None, self.place))


class Reader(Allowance):
    """Puts objects together; takes no more memory than a small multiple of the tree's and the
    arrays'."""

    def __init__(self, arrays: list[Array]) -> None:
        super().__init__()
        self.arrays = arrays
        self.objects: list[Any] = []
        self._made: list[Any] = []
        self._met: set[int] = set()
        self._level = 0

    def whole(self, tree: Any) -> Any:
        """The value of a whole tree, once every object in it is what its class says."""
        out = self.get(tree)
        for obj in self._made:  # not before, as objects may refer to those that hold them
            objects.look(obj)
        return out

    def made(self, obj: Any) -> Any:
        """An object that is to be looked at."""
        self._made.append(obj)
        return obj

    def get(self, node: Any) -> Any:
        """The value of a node."""
        self._level += 1
        if self._level > MAX_LEVELS + 2:
            raise ValueError(f"the tree nests more than {MAX_LEVELS} levels deep.")
        out = self._get(node)
        self._level -= 1
        return out

    def _get(self, node: Any) -> Any:
        if type(node) is list:
            return [self.get(item) for item in node]
        if type(node) is not dict:
            return _plain(node)
        ((kind, body),) = node.items() if len(node) == 1 else [(None, None)]
        if kind in values.KINDS:
            return values.KINDS[kind].unpack(body, self)
        return objects.unpack(kind, body, self)

    def array(self, body: Any) -> Array:
        """The array that a node points to."""
        i, *how = body
        a = self.arrays[_index(i, self.arrays)]
        if i in self._met and not self.charge(a.nbytes):
            raise ValueError("the tree holds large arrays many times over, as no file is written.")
        self._met.add(i)
        return arrays.restored(a, *how)

    def ref(self, i: Any) -> Any:
        """An object that was begun before."""
        return self.objects[_index(i, self.objects)]


def _is_plain(v: Any) -> bool:
    if type(v) is float:
        return math.isfinite(v)
    return v is None or type(v) in (bool, str) or (type(v) is int and abs(v) < 2**63)


def _plain(node: Any) -> Any:
    if _is_plain(node):
        return node
    raise ValueError(f"the tree holds {node!r:.60}, which no file is written with.")


def _index(i: Any, of: list[Any]) -> int:
    if type(i) is int and 0 <= i < len(of):
        return i
    raise ValueError(f"the tree points to number {i!r:.60} of {len(of)}.")


def _article(cls: type[Any]) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
