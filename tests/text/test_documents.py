"""Documents come in any shape; what is no text is refused with its row."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mercer.text import documents
from mercer.text.documents import MOST_BYTES, Part, batches
from mercer.text.ngrams import NGrams

TEXTS = ["The cat", "", "saß im Garten", "中文 \x00 Σας", "the cat"]
SHAPES = {
    "list": list,
    "tuple": tuple,
    "generator": lambda t: (x for x in t),
    "dict values": lambda t: dict(enumerate(t)).values(),
    "object": lambda t: np.array(t, object),
    "U": lambda t: np.array([x.replace("\x00", " ") for x in t]),
    "StringDType": lambda t: np.array(t, np.dtypes.StringDType()),
    "bytes": lambda t: [x.encode() for x in t],
    "np.str_": lambda t: [np.str_(x) for x in t],
    "arrow": lambda t: pa.array(t),
    "arrow large": lambda t: pa.array(t, pa.large_string()),
    "arrow view": lambda t: pa.array(t, pa.string_view()),
    "arrow binary": lambda t: pa.array([x.encode() for x in t], pa.binary()),
    "arrow large binary": lambda t: pa.array([x.encode() for x in t], pa.large_binary()),
    "arrow dictionary": lambda t: pa.array(t).dictionary_encode(),
    "arrow binary view": lambda t: pa.array([x.encode() for x in t], pa.binary_view()),
    "arrow dictionary of views": lambda t: pa.DictionaryArray.from_arrays(
        pa.array(range(len(t)), pa.uint8()), pa.array(t, pa.string_view())
    ),
    "arrow sliced dictionary of views": lambda t: pa.DictionaryArray.from_arrays(
        pa.array(range(len(t) + 1), pa.uint32()), pa.array(["a", *t], pa.string_view())
    ).slice(1),
    "arrow runs": lambda t: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(t) + 1), pa.int32()), pa.array(t, pa.string())
    ),
    "arrow chunked": lambda t: pa.chunked_array([t[:2], [], t[2:]], pa.string()),
    "arrow chunked dictionary": lambda t: pa.chunked_array(
        [pa.array(t[:2]).dictionary_encode(), pa.array(t[2:]).dictionary_encode()]
    ),
    "arrow sliced": lambda t: pa.array(["before", *t, "behind"]).slice(1, len(t)),
    "arrow sliced view": lambda t: pa.array(["a", *t, "b"], pa.string_view()).slice(1, len(t)),
    "arrow sliced chunks": lambda t: pa.chunked_array([["a", *t[:3]], [*t[3:], "b"]]).slice(
        1, len(t)
    ),
    "pandas str": lambda t: pd.Series(t),
    "pandas object": lambda t: pd.Series(t, dtype=object),
    "pandas string": lambda t: pd.Series(t, dtype="string"),
    "pandas python string": lambda t: pd.Series(t, dtype=pd.StringDtype("python")),
    "pandas arrow": lambda t: pd.Series(t, dtype=pd.ArrowDtype(pa.string())),
    "pandas categories": lambda t: pd.Series(t, dtype="category"),
    "pandas sliced": lambda t: pd.Series(["a", *t])[1:],
    "pandas index": lambda t: pd.Index(t),
}


class Column:
    """A column of another library, which Arrow can read."""

    def __init__(self, chunked):
        self.chunked, self.shape = chunked, (len(chunked),)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.chunked.__arrow_c_stream__(requested_schema)


SHAPES["another library"] = lambda t: Column(pa.chunked_array([t[:1], t[1:]], pa.string_view()))


def read(texts, part_bytes=1 << 18):
    """The documents as they are read."""
    out = []
    for batch in batches(texts, part_bytes):
        for part in batch:
            text, offsets = part.utf8()
            assert part.first == len(out)
            assert part.n_rows == len(offsets) - 1
            out += [bytes(text[a:b]) for a, b in pairwise(offsets)]
    return out


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("part_bytes", [1, 12, 1 << 18])
def test_every_shape_gives_the_same_documents(shape, part_bytes):
    texts = [x.replace("\x00", " ") for x in TEXTS] if shape == "U" else TEXTS
    assert read(SHAPES[shape](texts), part_bytes) == [x.encode() for x in texts]


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_no_documents(shape):
    if "chunked dictionary" in shape or "chunks" in shape:
        pytest.skip("such a column cannot be empty")
    assert read(SHAPES[shape]([])) == []
    assert NGrams(n_features=8).transform(SHAPES[shape]([])).shape == (0, 8)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_arrow_text_is_not_copied(kind):
    column = pa.array([f"document {i}" for i in range(1000)], kind)
    (batch,) = batches(column, 1000)
    assert len(batch) > 5
    assert all(part.utf8()[0].ctypes.data == column.buffers()[2].address for part in batch)


def test_a_generator_is_taken_batch_by_batch():
    taken = []

    def stream():
        for i in range(40):
            taken.append(i)
            yield "x" * (1 << 20)

    found = batches(stream())
    rows = sum(part.n_rows for part in next(found))
    assert rows == len(taken) == 16
    assert rows + sum(part.n_rows for batch in found for part in batch) == 40


@pytest.mark.parametrize("bad", [None, np.nan, pd.NA, 3, 2.5, ["a"], {"a": 1}])
@pytest.mark.parametrize("shape", ["list", "generator", "object", "pandas object"])
def test_what_is_no_text_is_refused_with_its_row(bad, shape):
    texts = ["a", "b", bad, "c"]
    column = np.empty(4, object)
    column[:] = texts
    given = {"object": column, "pandas object": pd.Series(column, dtype=object)}
    texts = given.get(shape, SHAPES[shape](texts) if shape not in given else None)
    with pytest.raises(ValueError, match=r"documents must be texts, but document 2 is .*; drop such rows, or give ''"):  # fmt: skip
        NGrams().transform(texts)


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["a", "b", None]),
        pa.chunked_array([["a"], ["b", None]]),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["a", None])),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 0, 1]), pa.array(["a", None], pa.string_view())
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), pa.array(["a"], pa.string_view())),
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["a", None])),
        pd.Series(["a", "b", None]),
        pd.Series(["a", "b", None], dtype="string"),
        np.array(["a", "b", None], np.dtypes.StringDType(na_object=None)),
    ],
)
def test_missing_documents_are_refused_with_their_row(texts):
    with pytest.raises(ValueError, match="document 2 is"):
        NGrams().transform(texts)


@pytest.mark.parametrize("texts", [pa.array([1, 2]), np.array([1.0]), pd.Series([True])])
def test_columns_of_numbers_are_refused(texts):
    with pytest.raises(ValueError, match="document 0 is"):
        NGrams().transform(texts)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("one text", r"is one str; give \[text\]"),
        (b"one text", r"is one bytes; give \[text\]"),
        (np.array("a"), "must be one column of texts"),
        (np.array([["a"], ["b"]]), r"choose the column, such as frame\['text'\] or X\[:, 0\]"),
        (pd.DataFrame({"text": ["a"]}), r"choose the column"),
        (pa.table({"text": ["a"]}), r"choose the column"),
        (5, "is int; give a list"),
        (None, "is NoneType; give a list"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(texts, said):
    for call in (NGrams().transform, NGrams().fit, NGrams(vocabulary="learn").fit):
        with pytest.raises(ValueError, match=said):
            call(texts)


@pytest.mark.parametrize(
    "bad", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xf8\x88\x80\x80\x80"]
)  # fmt: skip
def test_bytes_that_are_not_utf8_are_refused_with_their_row(bad):
    with pytest.raises(UnicodeDecodeError):
        bad.decode()
    texts = ["é"] * 100 + [bad, "é", bad]
    for given in (texts, pa.array(texts, pa.binary())):
        with pytest.raises(ValueError, match="document 100 is not UTF-8; decode it"):
            NGrams().transform(given)


def test_half_a_surrogate_pair_is_refused_with_its_row():
    with pytest.raises(ValueError, match="document 1 has half a surrogate pair"):
        NGrams().transform(["a", "bc\ud800"])


def test_the_first_of_several_bad_documents_is_named():
    texts = [b"ok" * 100_000, b"\xff" * 200_000, b"\xff" * 10, "\ud800"]
    for _ in range(5):
        with pytest.raises(ValueError, match="document 1 is not UTF-8"):
            NGrams().transform(texts)


def test_documents_beyond_what_loops_count_are_refused():
    class Huge(str):
        def __len__(self):
            return MOST_BYTES + 1

    with pytest.raises(ValueError, match=r"document 1 has .* cut it into several"):
        list(batches(["a", Huge("b")]))


def test_bytes_count_and_not_characters(monkeypatch):
    monkeypatch.setattr(documents, "MOST_BYTES", 10)
    assert NGrams().transform(["a" * 10]).nnz == 1
    with pytest.raises(ValueError, match="document 1 has 12 bytes, more than 10"):
        NGrams().transform(["a", "中" * 4])


def test_offsets_outside_their_bytes_are_refused():
    offsets = pa.py_buffer(np.array([0, 5, 3, 9], np.int32).tobytes())
    bad = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcdefghi"))
    with pytest.raises(ValueError, match="offsets outside its bytes"):
        list(batches(bad))


def test_parts_hold_what_they_were_cut_from():
    part = Part(7, ["a", "bb", "", "cccc"])
    assert [(p.first, list(p.items)) for p in part.cut(3)] == [(7, ["a"]), (8, ["bb"]), (9, [""]), (10, ["cccc"])]  # fmt: skip
