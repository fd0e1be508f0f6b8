"""Only known names are found, every stored class has one of its own, and files of before are read
by the names of before."""

import re
from pathlib import Path

import pytest

import mercer
from mercer.kernels import Gaussian
from mercer.store import decode, encode, register
from mercer.store.old_names import OLD
from mercer.store.registry import (
    FUNCTIONS,
    ROOMS,
    _registered,
    field_names,
    find,
    find_function,
    function_name,
    modules,
    name_of,
    unsaid,
)

MODULES = modules("mercer")
CLASSES = {name: c for name, c in _registered.items() if name.partition(".")[0] in ROOMS}


def test_every_class_is_found_by_its_name():
    assert len(CLASSES) > 100
    assert [find(name) for name in CLASSES] == list(CLASSES.values())
    assert [name_of(c) for c in CLASSES.values()] == list(CLASSES)


def test_every_estimator_and_map_that_users_see_has_a_name():
    public = [
        getattr(m, n)
        for m in (mercer, mercer.lifts, mercer.kernels, mercer.methods)
        for n in getattr(m, "__all__", ())
    ]
    models = [
        c for c in public if isinstance(c, type) and hasattr(c, "fit") and c.__name__ != "Lift"
    ]
    assert len(models) > 40
    assert {c.__name__ for c in models if c not in CLASSES.values()} == set()


def test_names_are_written_down_and_say_nothing_of_modules():
    """A class can move: its name is in its decorator, and the room where it is looked for in one
    table."""
    text = "\n".join(Path(m.__file__).read_text() for m in MODULES)
    said = set(re.findall(r'^@register\("([a-z_]+\.\w+)"\)$', text, re.M))
    assert said == set(CLASSES)
    for name, cls in CLASSES.items():
        room = ROOMS[name.partition(".")[0]]
        assert (
            cls in {c for m in modules(room) for c in vars(m).values() if isinstance(c, type)}
            or "learners" in cls.__module__
        ), name


def test_a_class_that_is_not_registered_is_refused():
    class Own(Gaussian):
        pass

    with pytest.raises(KeyError):
        name_of(Own)
    with pytest.raises(ValueError, match="register"):
        encode(Own())


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r"names of kernels, .* are those of Mercer"):
        register("kernels.Mine")(type("Mine", (), {"__module__": "mine"}))
    register("mine.A")(type("A", (), {"__module__": "mine"}))
    with pytest.raises(ValueError, match=r"is the name of mine\.A in files already"):
        register("mine.A")(type("B", (), {"__module__": "mine"}))


@pytest.mark.parametrize("old", OLD)
def test_names_of_before_lead_to_names_of_now(old):
    assert OLD[old] not in OLD
    assert old not in CLASSES
    assert find(old) is CLASSES[OLD[old]]


def test_a_tree_with_a_name_of_before_is_read_by_what_upgrades_it():
    tree, arrays = encode(mercer.kernels.Gaussian(2.0))
    assert tree["value"][0] == "kernels.Gaussian"
    old, new = "plain.Old", "kernels.Gaussian"
    OLD[old] = new
    Gaussian._upgraded = staticmethod(lambda values: {"bandwidth": values["width"]})
    try:
        assert decode({"value": [old, {"width": 3.0}]}, arrays) == Gaussian(3.0)
        assert decode({"value": [new, {"width": 3.0}]}, arrays) == Gaussian(
            3.0
        )  # fields of before tell an old file too
        assert decode({"value": [new, {"bandwidth": 3.0}]}, arrays) == Gaussian(3.0)
    finally:
        del OLD[old], Gaussian._upgraded
    with pytest.raises(ValueError, match="no field 'width'"):
        decode({"value": [new, {"width": 3.0}]}, arrays)


@pytest.mark.parametrize("package", ROOMS)
def test_nothing_of_another_package_is_found(package):
    for name in ("BaseEstimator", "np", "Any", "clone", "os", "system", "__name__", "load", "save"):
        with pytest.raises(KeyError):
            find(f"{package}.{name}")


@pytest.mark.parametrize(
    "name",
    [
        None,
        3,
        [],
        "",
        "os.system",
        "builtins.eval",
        "mercer.lifts.Monomials",
        "cli.main",
        "sklearn.Pipeline",
    ],
)
def test_other_names_are_not_found(name):
    with pytest.raises(KeyError):
        find(name)


def test_a_class_of_a_user_never_hides_one_of_ours():
    theirs = register(type("Gaussian", (), {"__module__": "kernels"}))
    assert find("kernels.Gaussian") is Gaussian
    assert find(name_of(theirs)) is theirs


def test_functions_are_found_by_their_names():
    assert [function_name(find_function(name)) for name in FUNCTIONS] == list(FUNCTIONS)


def test_a_class_that_says_what_its_fields_must_be_says_it_of_all_its_arrays():
    """One that was left out takes the class from all files, and with it every model that holds
    one."""
    every = {
        c
        for m in MODULES
        for c in vars(m).values()
        if isinstance(c, type) and isinstance(vars(c).get("must"), dict)
    }
    values = [c for c in every if field_names(c) is not None]
    assert len(values) > 40
    assert {c.__name__: unsaid(c) for c in values if unsaid(c)} == {}
