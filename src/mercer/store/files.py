"""The file: a head of fixed size with a checksum of all the rest, then the tree as JSON, then the
arrays as safetensors."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mercer.store import arrays
from mercer.store.commit import beside, naming, settle
from mercer.store.tree import decode, encode

MAGIC = b"MERCER\x1a\n"
VERSION = 1
HEAD = struct.Struct(
    "<8sIIQQ32s"
)  # magic, version, zero, bytes of the tree, bytes of the arrays, SHA-256 of all but itself
MAX_TREE_BYTES = 1 << 28  # bytes of JSON; Python's objects take some twenty times as much

_REMEDY = "give the path of a file that Mercer wrote"
_SUM = re.compile("[0-9a-fA-F]{64}")

File = str | os.PathLike[str]


class Parts(NamedTuple):
    """What a file holds behind its head."""

    tree: bytes
    payload: bytes
    version: int = VERSION

    @property
    def size(self) -> int:
        return HEAD.size + len(self.tree) + len(self.payload)

    def digest(self) -> bytes:
        """SHA-256 of the whole file but the digest itself."""
        return self._sum(bytes(32)).digest()

    def sha256(self) -> str:
        """SHA-256 of the whole file, as `sha256sum` prints it."""
        return self._sum(self.digest()).hexdigest()

    def pieces(self) -> list[bytes]:
        """The bytes of the file."""
        return [self.head(), self.tree, self.payload]

    def head(self) -> bytes:
        """The head for these parts."""
        return self._head(self.digest())

    def _head(self, digest: bytes) -> bytes:
        return HEAD.pack(MAGIC, self.version, 0, len(self.tree), len(self.payload), digest)

    def _sum(self, digest: bytes) -> Any:
        out = hashlib.sha256(self._head(digest))
        out.update(self.tree)
        out.update(self.payload)
        return out


def id_of(sha256: str) -> str:
    """A short name for a model: the head of the sum of its file, by which a report says to
    which model it belongs.

    >>> id_of("ab" * 32)
    'abababababababab'
    """
    return sha256[:16]


def save(obj: Any, path: File, *, kind: str = "estimator", overwrite: bool = True) -> None:
    """Write an estimator, a feature map, a kernel, or plain values that hold such, to one file.

    The file appears whole or not at all: a failed or interrupted write leaves what was there.
    Code never travels: an object that holds a Python function of yours is refused (ValueError).
    Training rows travel where they are the model: support vectors, landmarks, the rows of exact
    ridge regressions, Gaussian processes and smoothers, and the labels and column names. A
    model over features (`via="features"`, or a `lift`) holds none.

    Parameters
    ----------
    obj : object
        Anything made of Mercer's classes, numbers, text, arrays, CSR matrices, lists, tuples
        and dicts.
    path : str or path
        Where to write.
    kind : str, default="estimator"
        A word for what it is, kept in the file.
    overwrite : bool, default=True
        Whether a file that is there may be replaced; else FileExistsError.

    Examples
    --------
    >>> import tempfile, mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(mercer.kernels.Gaussian(2.0), f"{folder}/k.mercer", kind="kernel")
    ...     load(f"{folder}/k.mercer")
    Gaussian(bandwidth=2.0)
    """
    with naming(path):
        _check_target(Path(path), overwrite=overwrite)  # as it was given
        write(Path(os.path.realpath(path)), packed(obj, kind), overwrite=overwrite)


def packed(obj: Any, kind: str = "estimator") -> Parts:
    """The file of an object, not yet written."""
    tree, found = encode(obj)
    about = {
        "mercer": importlib.import_module("mercer").__version__,
        "kind": str(kind),
        "root": tree,
    }
    parts = Parts(
        json.dumps(about, separators=(",", ":"), allow_nan=False).encode("ascii"),
        arrays.to_bytes(found),
    )
    if len(parts.tree) > MAX_TREE_BYTES:
        raise ValueError(
            f"{type(obj).__name__} cannot be saved: it holds over {MAX_TREE_BYTES >> 20} MB of text and lists; use arrays."
        )
    return parts


def load(path: File, sha256: str | None = None) -> Any:
    """What `save` wrote, read again.

    ValueError for a damaged or foreign file, OSError where it cannot be read, never anything
    else.

    Loading runs no code of the file and takes memory of the order of its size. Every array is
    held to what its class declares (`mercer.invariants`), so that no file leads a compiled loop
    out of bounds. What the numbers say is another matter: the predictions of a model are as
    trustworthy as those who made it.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote.
    sha256 : str, default=None
        The sum that the file must have, as `sha256sum` or `mercer check` print it; ValueError
        where it has another.

    Examples
    --------
    >>> import tempfile, numpy as np, mercer
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> m = mercer.KernelRidge(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     m.save(f"{folder}/m.mercer")
    ...     again = load(f"{folder}/m.mercer")
    >>> np.array_equal(again.predict(X), m.predict(X))
    True
    """
    if sha256 is not None and not (isinstance(sha256, str) and _SUM.fullmatch(sha256)):
        raise ValueError(f"sha256 must be the 64 hexadecimal digits of a sum, got {sha256!r:.80}.")
    with told(path):
        parts = read(path)
        if sha256 is not None and (found := parts.sha256()) != sha256.lower():
            raise ValueError(
                f"its sha256 is {found}, not {sha256.lower()}; get the file that was meant."
            )
        return decode(parse(parts.tree)["root"], arrays.from_bytes(parts.payload))


@contextmanager
def told(path: File) -> Iterator[None]:
    """Whatever goes wrong with the contents of a file as a sentence that names it."""
    name = os.fspath(path)
    try:
        yield
    except FileNotFoundError as e:
        raise FileNotFoundError(f"{name!s:.300} does not exist; {_REMEDY}.") from e
    except IsADirectoryError as e:
        raise IsADirectoryError(f"{name!s:.300} is a folder; {_REMEDY}.") from e
    except OSError:
        raise
    except MemoryError as e:
        raise ValueError(f"{name!s:.300} cannot be loaded: it does not fit into memory.") from e
    # ours, or of a parser on bytes that have the right checksum but were never written by `save`
    except Exception as e:
        raise ValueError(f"{name!s:.300} cannot be loaded: {_sentence(e)}") from e


def _sentence(e: Exception) -> str:
    """What went wrong, in one line that ends with a full stop."""
    text = " ".join(str(e).split())[:300].rstrip(".")
    return f"{text if isinstance(e, ValueError) else f'its contents are not those of a model ({type(e).__name__}: {text})'}."


def write(path: Path, parts: Parts, *, overwrite: bool = True) -> None:
    """Write beside the target, then move there in one step."""
    _check_target(path, overwrite=overwrite)
    part = beside(path)
    try:
        with open(part, "xb") as f:
            for piece in parts.pieces():
                f.write(piece)
            f.flush()
            os.fsync(f.fileno())
        if path.exists():
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        _place(part, path, overwrite=overwrite)
        settle(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _check_target(path: Path, *, overwrite: bool) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: the folder {path.parent} does not exist; make it first."
        )
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} is there already; give another path, or overwrite=True.")


def _place(part: Path, path: Path, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            return os.link(part, path)  # fails where a file has come up meanwhile
        except FileExistsError:
            raise
        except OSError:
            pass  # a file system without links
    return os.replace(part, path)


def read(path: File) -> Parts:
    """The parts of a file, once its head, sizes and checksum agree; nothing is allocated on the
    word of the file alone.
    """
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
        raise ValueError("it is not a regular file.")
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        version, n, m, digest = _head(f.read(HEAD.size), size)
        parts = Parts(f.read(n), f.read(m), version)
    if len(parts.payload) != m or parts.digest() != digest:
        raise ValueError("it is damaged, as its checksum does not match; copy or save it again.")
    return parts


def _head(head: bytes, size: int) -> tuple[int, int, int, bytes]:
    if not head:
        raise ValueError("it is empty.")
    if head[: len(MAGIC)] != MAGIC[: len(head)]:
        raise ValueError("it was not written by Mercer.")
    if len(head) < HEAD.size:
        raise ValueError("it is cut short; copy or save it again.")
    _, version, zero, n, m, digest = HEAD.unpack(head)
    if version > VERSION:
        raise ValueError(
            f"its format is {version}, and this Mercer reads up to {VERSION}; update Mercer."
        )
    if version < 1 or zero or n > MAX_TREE_BYTES:
        raise ValueError("its head is damaged; copy or save it again.")
    if HEAD.size + n + m != size:
        raise ValueError(
            f"it has {size:,} bytes instead of {HEAD.size + n + m:,}, so it is damaged; copy or save it again."
        )
    return version, n, m, digest


def parse(tree: bytes) -> dict[str, Any]:
    """The JSON of a tree; ValueError where a key occurs twice or a number is none of JSON's."""
    try:
        about = json.loads(tree.decode("ascii"), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"its tree cannot be read ({e!s:.200}).") from e
    if not isinstance(about, dict) or not {"mercer", "kind", "root"} <= about.keys():
        raise ValueError("its tree is not that of a model.")
    return about


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key occurs twice in its tree.")
    return out


def _refuse(name: str) -> Any:
    raise ValueError(f"its tree holds {name}, which is not JSON.")


class Saved:
    """An object that can be saved; `mercer.load` gives it back.

    Examples
    --------
    >>> import os, tempfile
    >>> from mercer import KernelRidge
    >>> path = os.path.join(tempfile.mkdtemp(), "m.mercer")
    >>> KernelRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).save(path)
    >>> load(path)
    KernelRidge()
    """

    def save(self, path: File) -> None:
        """Write this object to a file, whole or not at all; see `mercer.store.save`."""
        save(self, path)
