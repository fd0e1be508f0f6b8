"""Trees that nest deeper than a stack, in files."""

import pytest

from mercer.store import nested
from mercer.store.tree import decode, encode


def chain(levels, of=tuple):
    out = "leaf"
    for i in range(levels):
        out = of((str(i), out, of(())))
    return out


@pytest.mark.parametrize("of", [tuple, list])
def test_flat_and_back(of):
    node, arrays = encode([chain(20_000, of), "beside", ("S",)])
    assert list(node) == ["nested"]
    found = decode(node, arrays)
    assert nested.pack(found) == node["nested"]
    assert type(found[0]) is of


def test_what_is_not_deep_stays_as_it_was():
    assert encode([chain(9), "S"])[0][0] == {"tuple": ["8", *encode(chain(8))[:1], {"tuple": []}]}


@pytest.mark.parametrize("body", [
    [], [1], [-2], [2, "a"], ["a", "b"], [1, 2.0], [True, "a"], [None], {"a": 1}, "ab", [1, ["a"]], [10**30, "a"],
])  # fmt: skip
def test_what_is_no_nested_value_is_refused(body):
    with pytest.raises(ValueError, match="the tree"):
        decode({"nested": body}, [])


def test_what_holds_itself_and_what_holds_numbers_is_not_flat():
    own = ["S"]
    own.append(own)
    with pytest.raises(ValueError, match="or holds itself"):
        encode(own)
    number = 1.5
    for _ in range(150):
        number = (number,)
    with pytest.raises(ValueError, match="more than 100 levels"):
        encode(number)
