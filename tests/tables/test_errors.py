"""Names that are suggested, and flags."""

import pytest

from mercer.tables.errors import nearest


def test_only_close_names_are_suggested():
    assert nearest("progresion", ["progression", "age"]) == '; did you mean "progression"?'
    assert nearest("Lenght", ["length", "width"]) == '; did you mean "length"?'
    for name, names in (
        ("y", ["x", "z"]),
        ("price", ["size", "slice of life"]),
        ("target", ["garden", "tax"]),
    ):
        assert nearest(name, names).startswith("; the names are")


@pytest.mark.parametrize(
    "names", [["a;b"], ["a|b", "c"], ["a\tb"], ["a b c"]], ids=["semicolon", "bar", "tab", "spaces"]
)
def test_names_that_hold_delimiters_call_for_flags(names):
    assert "--delimiter" in nearest("y", names)
    assert "--delimiter" not in nearest("y", ["net price", "rooms"])
