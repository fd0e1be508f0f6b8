"""Files of before in which one part was changed are refused in a sentence, with what to do, where
they could not answer."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian
from mercer.lifts import Nystrom
from mercer.store import decode, encode
from mercer.store.arrays import from_bytes
from mercer.store.files import parse, read
from tests.store.fuzz import at, nodes, put

FOLDER = Path(__file__).parent / "old"
HUGE, NONE = {"int": hex(10**400)}, {"tuple": []}
CHANGES = {
    "a scale beyond all floats": (
        "gp",
        "scale",
        HUGE,
        "scale should be a floating-point number, but is the integer",
    ),
    "a scale with more digits than a float": (
        "gp",
        "scale",
        {"int": hex(2**70)},
        "scale should be a floating-point number",
    ),
    "the same over features": (
        "gp/gp-passes",
        "scale",
        HUGE,
        "scale should be a floating-point number, but is the integer",
    ),
    "a bandwidth beyond all floats": ("gp", "bandwidth", HUGE, "bandwidth must be a number > 0"),
    "one of frequencies": (
        "gp/gp-passes",
        "bandwidth",
        HUGE,
        r"bandwidth (must be a number > 0|should be a floating-point number)",
    ),
    "no column": ("gp/gp-passes", "columns", NONE, "columns has 0 parts, not 1 or more"),
    "a rule that is a dict": (
        "gp/gp-passes",
        "frequencies",
        {"dict": []},
        r"frequencies should be ('auto'|str)",
    ),
    "a path that is a list": ("pca-features", "path", [], "path should be a tuple, but is list"),
    "no rounds": ("svc", "n_iter_", None, "older layout of KernelSVC and lacks n_iter_; fit again"),
    "no units": (
        "gp",
        "_units",
        None,
        "older layout of GaussianProcessRegressor and lacks _units; fit again",
    ),
    "units of none": (
        "gp",
        "_units",
        3,
        "older layout of GaussianProcessRegressor and does not hold what that had; fit again",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_parts_are_refused(name):
    file, part, value, said = CHANGES[name]
    parts = read(FOLDER / f"{file}.mercer")
    tree, arrays = parse(parts.tree)["root"], from_bytes(parts.payload)
    places = [p for p in nodes(tree) if p and p[-1] == part]
    assert places
    for place in places:
        changed = deepcopy(tree)
        if value is None:
            del at(changed, place[:-1])[part]
        else:
            changed = put(changed, place, deepcopy(value))
        with pytest.raises(ValueError, match=said):
            decode(changed, list(arrays))


def test_a_noise_that_is_no_float():
    m = mercer.GaussianProcessRegressor(Gaussian(), noise=0).fit([[0.0], [1.0]], [0.0, 1.0])
    tree, arrays = encode(m)
    (place,) = [p for p in nodes(tree) if p and p[-3:] == ("outputs", "value", 1)]
    assert decode(tree, list(arrays)).noise_ == 0.0
    at(tree, place)["noise"] = 0
    with pytest.raises(ValueError, match="noise should be a floating-point number"):
        decode(tree, list(arrays))


@pytest.mark.parametrize("wrong", ["x", {"tuple": []}, 3])
def test_the_kernel_of_a_map_is_one(wrong):
    tree, arrays = encode(Nystrom(Gaussian(), 3, random_state=0).fit(np.eye(4)))
    name, given = tree["object"]
    with pytest.raises(ValueError, match=r"Nystrom\.kernel_ "):
        decode({"object": [name, {**given, "kernel_": wrong}]}, arrays)
