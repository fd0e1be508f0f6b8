"""Only known names are found, and every class has one."""
import pytest

from mercer.kernels import Gaussian
from mercer.store import register
from mercer.store.registry import (
    FUNCTIONS,
    OTHERS,
    VALUES,
    _ours,
    field_names,
    find,
    find_function,
    function_name,
    modules,
    name_of,
    unsaid,
)

CLASSES = sorted({f"{m.__name__}.{n}": c for p in VALUES for m in modules(p) for n, c in vars(m).items() if _ours(c, m, p)}.items())


def test_every_class_is_found_by_its_name():
    assert len(CLASSES) > 100
    names = [name_of(c) for _, c in CLASSES]
    assert [find(name) for name in names] == [c for _, c in CLASSES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("package", VALUES + OTHERS)
def test_nothing_of_another_package_is_found(package):
    for name in ("BaseEstimator", "np", "Any", "clone", "os", "system", "__name__", "load", "save"):
        with pytest.raises(KeyError):
            find(f"{package}.{name}")


@pytest.mark.parametrize("name", [None, 3, [], "", "os.system", "builtins.eval", "mercer.lifts.Monomials", "cli.main", "sklearn.Pipeline"])
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
    """One that was left out takes the class from all files, and with it every model that holds one."""
    every = {c for p in VALUES + OTHERS for m in modules(p) for c in vars(m).values() if isinstance(c, type) and "must" in vars(c)}
    values = [c for c in every if field_names(c) is not None]
    assert len(values) > 40
    assert {c.__name__: unsaid(c) for c in values if unsaid(c)} == {}
