"""Documents of any kind as parts of one UTF-8 buffer with offsets, without a copy where UTF-8 is at
hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.listed import refuse_lazy

BATCH_BYTES = 1 << 24  # of text from a generator at a time
BATCH_ROWS = 1 << 10  # items taken from an array at a time
MOST_BYTES = 1 << 30  # of one document


@dataclass(frozen=True, eq=False)
class Part:
    """Some documents, still as they came: a list, or UTF-8 and where each document begins and the
    last one ends."""

    first: int  # the row of the first one
    items: Sequence[Any] = ()
    text: Array | None = None
    offsets: Array | None = None

    @property
    def n_rows(self) -> int:
        return len(self.items) if self.offsets is None else len(self.offsets) - 1

    def cut(self, step: int) -> Iterator[Part]:
        """Parts of about `step` bytes of it, by the sizes of documents alone."""
        sizes = (
            np.fromiter(map(len, self.items), np.int64, len(self.items))
            if self.offsets is None
            else np.diff(self.offsets)
        )
        self._fits(sizes)
        ends = np.flatnonzero(np.diff(np.cumsum(sizes + 1) // step)) + 1
        for a, b in pairwise([0, *ends.tolist(), len(sizes)]):
            if b > a:
                offsets = None if self.offsets is None else self.offsets[a : b + 1]
                yield Part(self.first + a, self.items[a:b], self.text, offsets)

    def utf8(self) -> tuple[Array, Array]:
        """The bytes of the documents, side by side, and their offsets."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        encoded = [item if isinstance(item, bytes) else _encoded(item) for item in self.items]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self._fits(sizes)  # a character may be four bytes
        np.cumsum(sizes, out=offsets[1:])
        return np.frombuffer(b"".join(encoded), np.uint8), offsets

    def _fits(self, sizes: Array) -> None:
        """Refuse documents beyond what loops count in 32 bits."""
        if len(sizes) and int(sizes.max()) > MOST_BYTES:
            raise ValueError(
                f"document {self.first + int(sizes.argmax())} has {int(sizes.max())} bytes, more than {MOST_BYTES}; cut it into several."
            )

    def refused(self, i: int) -> str:
        """What is wrong with a document that is not UTF-8."""
        row = self.first + i
        if self.items and isinstance(self.items[i], str):
            return (
                f"document {row} has half a surrogate pair, which no UTF-8 can hold; "
                "decode it anew, or encode with errors='replace' and decode."
            )
        return f"document {row} is not UTF-8; decode it with its own encoding, such as .decode('latin-1')."


def _encoded(item: str) -> bytes:
    try:
        return item.encode()
    except UnicodeEncodeError:
        return item.encode("utf-8", "surrogatepass")  # no UTF-8, which is seen later


def batches(texts: Any, part_bytes: int = 1 << 18, name: str = "documents") -> Iterator[list[Part]]:
    """The documents in parts of about so many bytes, in lists of those that are in memory together.

    A part of Arrow text, of pandas, polars or pyarrow, is its own buffer. A document may be a str,
    or bytes of UTF-8; nothing else is one, and a missing one is refused, since no text and an empty
    text are not the same.

    >>> [part.n_rows for batch in batches(["a", "bc"]) for part in batch]
    [2]
    >>> list(batches("a text"))
    Traceback (most recent call last):
    ValueError: documents must be a list of texts, but is one str; give [text].
    """
    look(texts, name)
    columns = _arrow(texts)
    of = _of_items(_items(texts), name) if columns is None else _of_arrow(columns, name)
    return (list(chain.from_iterable(part.cut(part_bytes) for part in parts)) for parts in of)


def look(texts: Any, name: str = "documents") -> None:
    """Refuse what is no column of documents; the documents are not looked at."""
    if isinstance(texts, str | bytes):
        raise ValueError(
            f"{name} must be a list of texts, but is one {type(texts).__name__}; give [text]."
        )
    refuse_lazy(texts, name)
    if hasattr(texts, "columns") or len(getattr(texts, "shape", (0,))) != 1:
        raise ValueError(
            f"{name} must be one column of texts, but is {type(texts).__name__} of shape {getattr(texts, 'shape', None)}; "
            "choose the column, such as frame['text'] or X[:, 0]."
        )
    if not isinstance(texts, Iterable) and not hasattr(texts, "__arrow_c_stream__"):
        raise ValueError(
            f"{name} must be a list of texts, but is {type(texts).__name__}; give a list, an array, a column or a generator."
        )


def _arrow(texts: Any) -> list[Any] | None:
    """The chunks of Arrow text, where they are that and pyarrow is there to read them."""
    if not (hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")):
        return None
    if str(getattr(texts, "dtype", "")) == "object":  # of pandas, which would guess types
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.chunked_array(texts)
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _of_arrow(chunks: list[Any], name: str) -> Iterator[list[Part]]:
    row = 0
    for chunk in chunks:
        text, offsets = _buffers(chunk, row, name)
        if offsets[0] < 0 or offsets[-1] > len(text) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(
                f"the Arrow text of rows {row} and on has offsets outside its bytes; make it anew."
            )
        yield [Part(row, text=text, offsets=offsets)]
        row += len(chunk)


def _buffers(chunk: Any, row: int, name: str) -> tuple[Array, Array]:
    """The text of a chunk and its offsets: its own, but for views and dictionaries, which are
    written out."""
    import pyarrow as pa

    if not len(chunk):
        return np.frombuffer(b"", np.uint8), np.zeros(1, np.int64)
    chunk = _plain(chunk)
    if chunk.null_count:
        bad = row + int(np.flatnonzero(np.asarray(chunk.is_null()))[0])
        raise ValueError(_said(name, bad, "missing"))
    small = pa.types.is_string(chunk.type) or pa.types.is_binary(chunk.type)
    if not small and not (
        pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type)
    ):
        raise ValueError(_said(name, row, f"of type {chunk.type}"))
    _, offsets, data = chunk.buffers()
    places = np.frombuffer(offsets, np.int32 if small else np.int64)
    text = np.frombuffer(b"" if data is None else data, np.uint8)
    return text, places[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)


def _plain(chunk: Any) -> Any:
    """A chunk with one text for every row: dictionaries and runs are written out, in which a text
    may be missing too, and views are side by side."""
    import pyarrow as pa
    from pyarrow.compute import run_end_decode

    if pa.types.is_run_end_encoded(chunk.type):
        chunk = run_end_decode(chunk)
    if pa.types.is_dictionary(chunk.type):
        levels = _side_by_side(chunk.dictionary)
        chunk = pa.DictionaryArray.from_arrays(chunk.indices, levels).dictionary_decode()
    return _side_by_side(chunk)


def _side_by_side(chunk: Any) -> Any:
    """Text that lies side by side, where it is a view."""
    import pyarrow as pa

    if pa.types.is_string_view(chunk.type):
        return chunk.cast(pa.large_string())
    return chunk.cast(pa.large_binary()) if pa.types.is_binary_view(chunk.type) else chunk


def _items(texts: Any) -> Iterator[list[Any]]:
    """The documents in lists, each of one batch."""
    if isinstance(texts, np.ndarray):
        slices = (texts[i : i + BATCH_ROWS].tolist() for i in range(0, len(texts), BATCH_ROWS))
        return _gathered(chain.from_iterable(slices))
    return iter([list(texts)]) if isinstance(texts, list | tuple) else _gathered(iter(texts))


def _gathered(texts: Iterator[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += 64 + (len(text) if isinstance(text, str | bytes) else 0)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _of_items(lists: Iterator[list[Any]], name: str) -> Iterator[list[Part]]:
    row = 0
    for items in lists:
        _check(items, row, name)
        yield [Part(row, items)]
        row += len(items)


def _check(items: Sequence[Any], row: int, name: str) -> None:
    if all(issubclass(kind, str | bytes) for kind in set(map(type, items))):
        return
    bad = next(i for i, item in enumerate(items) if not isinstance(item, str | bytes))
    raise ValueError(_said(name, row + bad, f"{items[bad]!r:.40} ({type(items[bad]).__name__})"))


def _said(name: str, row: int, what: str) -> str:
    return f"{name} must be texts, but document {row} is {what}; drop such rows, or give '' where nothing was written."
