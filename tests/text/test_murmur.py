"""MurmurHash3 of many names: the bits of scikit-learn and of the plain reference, for any bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils import murmurhash3_32

from mercer.ops.threads import limit
from mercer.text.murmur import columns_of, murmur3, packed, reference, signs_of


def of_bytes(names):
    offsets = np.cumsum([0, *map(len, names)]).astype(np.int64)
    return np.frombuffer(b"".join(names), np.uint8), offsets


@given(st.lists(st.binary(max_size=40)), st.integers(0, 2**32 - 1))
def test_is_that_of_scikit_learn_and_the_reference(names, seed):
    found = murmur3(*of_bytes(names), seed)
    assert found.dtype == np.int32
    assert found.tolist() == [murmurhash3_32(name, seed) for name in names]
    assert found.tolist() == [reference(name, seed) for name in names]


@pytest.mark.parametrize(
    "names",
    [["", "\0", "\0\0\0\0", "a\0b", "=", "é", "𝄞", "hé=llo"], [], ["x" * k for k in range(70)]],
    ids=["odd", "none", "lengths"],
)
def test_strings_go_in_as_utf_8(names):
    assert murmur3(*packed(names)).tolist() == [murmurhash3_32(name) for name in names]


def test_threads_change_nothing():
    names = [f"{i % 7919} {i}" for i in range(70_000)]
    one, two = [], []
    for n, out in ((1, one), (3, two)):
        with limit(n):
            out.append(murmur3(*packed(names), 7))
    np.testing.assert_array_equal(one[0], two[0])
    picks = [0, 32767, 32768, 69_999]
    assert one[0][picks].tolist() == [murmurhash3_32(names[i], 7) for i in picks]


@pytest.mark.parametrize("n_features", [1, 2, 3, 1_000_003, 2**20, 2**31 - 1])
def test_columns_are_those_of_feature_hashers(n_features):
    names = [f"name {i}" for i in range(300)]
    F = FeatureHasher(n_features).transform([{name: 1.0} for name in names]).tocoo()
    hashes = murmur3(*packed(names))
    np.testing.assert_array_equal(
        columns_of(hashes, n_features), F.coords[1] if hasattr(F, "coords") else F.col
    )
    np.testing.assert_array_equal(signs_of(hashes), F.data)


@pytest.mark.parametrize("n", [1, 2, 5, 1_000_003, 2**31 - 1])
def test_the_least_of_all_hashes_has_scikit_learn_s_column(n):
    """abs(-2**31) is no int32; their formula for it is not the usual one."""
    least = np.array([-(2**31)], np.int32)
    assert columns_of(least, n).tolist() == [(2**31 - 1 - (n - 1)) % n]
    assert signs_of(least).tolist() == [-1]


def test_readonly_and_strided_bytes_are_read():
    buffer, offsets = of_bytes([b"ab", b"cde"])
    assert not buffer.flags.writeable
    apart = np.repeat(buffer, 2)[::2]
    np.testing.assert_array_equal(murmur3(apart, offsets), murmur3(buffer, offsets))


@pytest.mark.parametrize(
    ("buffer", "offsets", "sentence"),
    [
        (np.zeros(3, np.int8), np.array([0, 3]), "no vector of uint8"),
        (np.zeros((1, 3), np.uint8), np.array([0, 3]), "no vector of uint8"),
        (np.zeros(3, np.uint8), np.array([0, 3], np.int32), "no vector of int64"),
        (np.zeros(3, np.uint8), np.array([0, 4]), "from 0 to their 3 bytes"),
        (np.zeros(3, np.uint8), np.array([1, 3]), "from 0 to their 3 bytes"),
        (np.zeros(3, np.uint8), np.zeros(0, np.int64), "from 0 to their 3 bytes"),
        (np.zeros(3, np.uint8), np.array([0, 9, 3]), "descend"),
        (np.zeros(3, np.uint8), np.array([0, -1, 3]), "descend"),
    ],
)
def test_what_the_loop_may_not_read_is_refused(buffer, offsets, sentence):
    with pytest.raises(ValueError, match=sentence):
        murmur3(buffer, offsets)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_have_32_bits(seed):
    with pytest.raises(ValueError, match="seed must be"):
        murmur3(*packed(["a"]), seed)


@pytest.mark.parametrize("n", [0, -1, 2**31])
def test_columns_have_31_bits(n):
    with pytest.raises(ValueError, match=r"n_features must be from 1 to 2\*\*31 - 1"):
        columns_of(np.zeros(1, np.int32), n)


def test_lone_surrogates_are_refused():
    with pytest.raises(ValueError, match="is no UTF-8"):
        packed(["a", "\ud800"])
