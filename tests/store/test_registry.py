"""Only known names are found, and every class has one."""
import pytest

from mercer.kernels import Gaussian
from mercer.store import register
from mercer.store.registry import FUNCTIONS, OTHERS, VALUES, _ours, find, find_function, function_name, modules, name_of

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
