"""Damaged, foreign and hostile files: one sentence (ValueError) or OSError, never anything else,
and no more memory than the file's."""

import json
import os
import struct
import tracemalloc
import zipfile
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.kernels import Gaussian
from mercer.store import encode, load
from mercer.store.arrays import to_bytes
from mercer.store.files import HEAD, MAGIC, Parts
from mercer.store.registry import ROOMS, modules
from mercer.store.values import KINDS
from tests.store.market import MODELS, fitted

SENTENCE = r"^[^\n]* cannot be loaded: [^\n]+\.$"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.mercer"


@pytest.fixture(scope="module")
def small():
    """The bytes of a small file."""
    tree, arrays = encode((Gaussian(2.0), np.arange(2.0)))
    return file_of(tree, arrays)


def file_of(tree, arrays=(), **about):
    text = json.dumps({"mercer": "0", "kind": "x", "root": tree, **about}).encode()
    return with_sum(text, to_bytes(list(arrays)))


def with_sum(text, payload):
    parts = Parts(text, payload)
    return parts.head() + text + payload


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=SENTENCE):
        load(path)


def only_refused(path, data):
    """Loads, or is refused in a sentence; anything else fails."""
    path.write_bytes(data)
    try:
        load(path)
    except ValueError as e:
        assert "cannot be loaded: " in str(e)  # noqa: PT017


def test_cut_short_at_any_byte(path, small):
    for n in range(len(small)):
        refused(path, small[:n])
    refused(path, small + b"\0")


def test_any_bit_flipped(path, small):
    """All bits of the head, one of every byte behind it."""
    head = 8 * HEAD.size
    for bit in [*range(head), *range(head, 8 * len(small), 9)]:
        data = bytearray(small)
        data[bit // 8] ^= 1 << bit % 8
        refused(path, data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello\n",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"PK\x03\x04" + bytes(100),
        b"\x80\x04\x95",
        bytes(500),
        MAGIC,
        b"{}" * 99,
    ],
    ids=["empty", "text", "png", "zip", "pickle", "zeros", "magic", "json"],
)
def test_foreign_files(path, data):
    refused(path, data)


def test_a_zip_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a", bytes(1_000_000))
    with pytest.raises(ValueError, match="was not written by Mercer"):
        load(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(
        IsADirectoryError, match=rf"^{tmp_path} is a folder; give the path of a file"
    ):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"^{tmp_path}/none does not exist; give the path"):
        load(tmp_path / "none")
    with pytest.raises(ValueError, match="cannot be loaded"):
        load("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        load(tmp_path / "pipe")


def test_a_newer_format_says_what_to_do(path):
    data = file_of(None)
    path.write_bytes(data[:8] + struct.pack("<I", 2) + data[12:])
    with pytest.raises(
        ValueError, match="its format is 2, and this Mercer reads up to 1; update Mercer"
    ):
        load(path)


@pytest.mark.parametrize(
    "field",
    [(2**63, 0), (0, 2**63), (2**64 - 1, 2**64 - 1), (1 << 27, 0)],
    ids=["tree", "arrays", "both", "large"],
)
def test_claims_of_size_allocate_nothing(path, field):
    head = HEAD.pack(MAGIC, 1, 0, *field, bytes(32))
    path.write_bytes(head + bytes(100))
    assert_little_memory(path, 1 << 20)


def assert_little_memory(path, most):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="cannot be loaded"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


HOSTILE = {
    "unknown class": {"object": ["os.system", {}]},
    "path": {"object": ["../../etc/passwd", {}]},
    "module": {"object": ["lifts.fourier", {}]},
    "imported name": {"object": ["lifts.BaseEstimator", {}]},
    "another package": {"object": ["subprocess.Popen", {"args": "ls"}]},
    "class of tests": {"object": ["testing.Lift", {}]},
    "dunder": {"object": ["lifts.Monomials", {"__class__": 1}]},
    "method": {"object": ["lifts.Monomials", {"transform": 1}]},
    "class method": {"object": ["estimators.KernelRidge", {"__init_subclass__": 1}]},
    "property": {"object": ["lifts.RandomFourier", {"n_frequencies_": 1}]},
    "attribute of another type": {"object": ["lifts.Monomials", {"n_features_in_": "3"}]},
    "no name": {"object": ["lifts.Monomials", {"a b": 1}]},
    "value as object": {"object": ["kernels.Gaussian", {"bandwidth": 1.0}]},
    "object as value": {"value": ["lifts.Monomials", {"degree": 1}]},
    "wrong parameter": {"value": ["kernels.Gaussian", {"bandwidth": "wide"}]},
    "negative parameter": {"value": ["kernels.Gaussian", {"bandwidth": -1.0}]},
    "unknown parameter": {"value": ["kernels.Gaussian", {"width": 1.0}]},
    "wrong type": {"value": ["plan.Plan", {"way": 1, "why": "x"}]},
    "sum of numbers": {"value": ["kernels.Sum", {"terms": {"tuple": [1, 2]}}]},
    "itself": {"value": ["kernels.Scale", {"factor": 1.0, "kernel": {"ref": 0}}]},
    "function": {"function": "os.system"},
    "method of nothing": {"method": ["_map", 3]},
    "method of another name": {"method": ["fit", {"object": ["lifts.Monomials", {}]}]},
    "two kinds": {"tuple": [], "set": []},
    "no kind": {},
    "unhashable key": {"dict": [[[], 1]]},
    "key twice": {"dict": [[1, 1], [1, 2]]},
    "text as list": {"tuple": "ab"},
    "array out of range": {"array": [0, "C"]},
    "ref out of range": {"ref": 0},
    "negative ref": {"ref": -1},
    "dtype": {"dtype": "O8,f8"},
    "huge scalar": {"scalar": ["<U99999999", "00"]},
    "letter beyond": {"scalar": ["<U1", "ffffffff"]},
    "generator": {
        "generator": {
            "dict": [["legacy", False], ["bit_generator", "system"], ["state", {"dict": []}]]
        }
    },
    "long range": {"range": [0, 10**12, 1]},
    "sparse": {"sparse": ["csr_matrix", [2, 2], 1, 2, 3]},
    "objects": {"objects": [[3], [1]]},
    "huge objects": {"objects": [[10**12], [1]]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees(name, path):
    path.write_bytes(file_of(HOSTILE[name]))
    assert_little_memory(path, 32 << 20)


def test_a_generator_that_would_read_beyond_its_memory(path):
    tree, arrays = encode(np.random.Generator(np.random.MT19937(0)))
    state = dict(tree["generator"]["dict"])["state"]["dict"]
    next(pair for pair in state if pair[0] == "pos")[1] = 10**6
    refused(path, file_of(tree, arrays))


def test_deep_nesting(path):
    for deep in (
        "[" * 100_000 + "]" * 100_000,
        '{"tuple":[' * 5000 + "]}" * 5000,
        "[" * 150 + "]" * 150,
    ):
        refused(
            path, with_sum(b'{"mercer":"","kind":"","root":' + deep.encode() + b"}", to_bytes([]))
        )


@pytest.mark.parametrize(
    "text",
    [
        b'{"mercer":"","kind":"","root":1,"root":2}',
        b"[]",
        b"{}",
        b"",
        b"\xff",
        b'{"mercer":"","kind":"","root":NaN}',
    ],
    ids=["key twice", "list", "nothing in it", "nothing", "no text", "nan"],
)
def test_trees_that_are_not_of_a_model(text, path):
    refused(path, with_sum(text, to_bytes([])))


@pytest.mark.parametrize(
    "digits", [b"1e999", b"1" * 5000, b"1" * 30], ids=["infinite", "endless", "long"]
)
def test_numbers_that_are_never_written(digits, path):
    refused(path, with_sum(b'{"mercer":"","kind":"","root":' + digits + b"}", to_bytes([])))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 90)
        + b'{"0":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8]}}'.ljust(90)
        + bytes(8),
        struct.pack("<Q", 70)
        + b'{"../0":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}'.ljust(70)
        + bytes(8),
        struct.pack("<Q", 70)
        + b'{"0":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}'.ljust(70)
        + b"\2",
        struct.pack("<Q", 70)
        + b'{"0":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'.ljust(70)
        + bytes(2),
    ],
    ids=["none", "long head", "long array", "hostile name", "truth of 2", "unknown type"],
)
def test_hostile_payloads(payload, path):
    refused(path, with_sum(b'{"mercer":"","kind":"","root":{"array":[0,"C"]}}', payload))


def test_one_array_cannot_be_had_many_times_over(path):
    k, points, weights = {"value": ["kernels.Linear", {}]}, {"array": [0, "F"]}, {"array": [1, "C"]}
    again = {
        "value": ["kernels.RKHSFunction", {"kernel": k, "points": points, "weights": weights}]
    }  # copies its points
    path.write_bytes(
        file_of([again] * 1000, [np.ones((300, 300)), np.ones(300)])
    )  # would be 720 MB
    assert_little_memory(path, 150 << 20)


# fuzzed, with the right checksum
NAMES = sorted(
    {
        f"{p}.{n}"
        for p in ROOMS
        for m in modules(ROOMS[p])
        for n, c in vars(m).items()
        if isinstance(c, type)
    }
)
ATOMS = st.sampled_from(
    [None, True, 0, -1, 1e308, 2**62, "", "_map", "<f8", "F", [], {}, [[]], "lifts.Nystrom"]
)
BODIES = st.recursive(
    ATOMS | st.integers(-3, 9) | st.floats() | st.text(max_size=3),
    lambda b: st.lists(b, max_size=3),
    max_leaves=4,
)
NODES = (
    BODIES
    | st.builds(
        lambda k, b: {k: b}, st.sampled_from([*KINDS, "ref", "value", "object", "state"]), BODIES
    )
    | st.builds(
        lambda k, n, f: {k: [n, f]},
        st.sampled_from(["value", "object"]),
        st.sampled_from(NAMES),
        st.just({}),
    )
    | st.builds(lambda i, o: {"array": [i, o]}, st.integers(0, 3), st.sampled_from("CF"))
)
SMALL = [name for name in MODELS if name.startswith(("lift", "plain"))]


def spots(node):
    """Every place of a tree."""
    inside = (
        enumerate(node)
        if isinstance(node, list)
        else node.items()
        if isinstance(node, dict)
        else ()
    )
    for key, value in inside:
        yield node, key
        yield from spots(value)


@settings(max_examples=10 * settings().max_examples)
@given(st.data())
def test_changed_trees_are_refused_or_load(tmp_path_factory, data):
    tree, arrays = encode([fitted(data.draw(st.sampled_from(SMALL)))])
    tree = deepcopy(tree)
    for _ in range(data.draw(st.integers(1, 3))):
        where, key = data.draw(st.sampled_from(list(spots(tree))))
        where[key] = deepcopy(
            data.draw(NODES)
        )  # lists of atoms are shared: one could come to hold itself
    only_refused(tmp_path_factory.mktemp("f") / "m", file_of(tree, arrays))


@settings(max_examples=10 * settings().max_examples)
@given(st.data())
def test_changed_bytes_with_the_right_sum_are_refused_or_load(tmp_path_factory, data):
    tree, arrays = encode(fitted(data.draw(st.sampled_from(SMALL))))
    text, payload = (
        bytearray(json.dumps({"mercer": "", "kind": "", "root": tree}).encode()),
        bytearray(to_bytes(arrays)),
    )
    for _ in range(data.draw(st.integers(1, 4))):
        part = data.draw(st.sampled_from([text, payload]))
        at = data.draw(st.integers(0, min(len(part), 400) - 1))
        part[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"9", b"[", b"]", b'"', b"0,"])
        )
    only_refused(tmp_path_factory.mktemp("f") / "m", with_sum(bytes(text), bytes(payload)))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, data):
    refused(tmp_path_factory.mktemp("f") / "m", data)
