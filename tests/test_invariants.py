"""Every class says what its fields must be, and is held to it: by constructors, by the loops' own
doors, and by files."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.automl.machines import Machine
from mercer.invariants import (
    Broken,
    By,
    Each,
    Either,
    Elsewhere,
    Floats,
    Ints,
    Is,
    Labels,
    Said,
    Samples,
    Whole,
    check,
    declared,
    lists_places,
)
from mercer.lifts import Monomials
from mercer.models.cells import CellTree
from mercer.ops.fastfood import Fastfood
from mercer.ops.measures import Normal
from mercer.ops.monomials import Program, expand, plan
from mercer.ops.monomials_csr import expand_csr
from mercer.ops.philox import Stream
from mercer.ops.projections import Hashed
from mercer.ops.sketches import CountSketch, _by_transform
from mercer.store import decode, encode, save
from mercer.store.registry import _registered, field_names, find, modules, name_of, unsaid
from tests.store.market import MODELS, fitted

MODULES = modules("mercer")  # which register theirs when they are imported
CLASSES = {n: c for n, c in _registered.items() if c.__module__.startswith("mercer.")}
SAID = {
    "Basis.functions_",
    "Callable.f",
    "Items.values",
    "OfRows.f",
    "Plan.settings",
    "Warped.f",
    "Weighted.f",
}


# what is declared
def parts(spec):
    """A spec and those inside it."""
    yield spec
    inner = {
        Either: lambda: spec.specs,
        Each: lambda: spec.of,
        By: lambda: (spec.key, spec.of),
    }.get(type(spec), tuple)
    for s in inner():
        yield from parts(s)


@pytest.mark.parametrize("name", CLASSES)
def test_no_class_that_files_may_name_leaves_an_array_unsaid(name):
    cls = CLASSES[name]
    assert unsaid(cls) == []
    assert find(name_of(cls)) is cls
    for field, spec in declared(cls).items():
        for s in parts(spec):
            assert not isinstance(s, Said) or f"{cls.__name__}.{field}" in SAID, (
                "anything goes only where nothing is used as a place"
            )
            assert not isinstance(s, Ints) or s.below is not None


def test_a_value_with_arrays_that_says_nothing_is_not_found():
    """Solvers' own values hold places, too; none of them is of a model, and none can be had from a
    file."""
    left = [
        c
        for m in MODULES
        for c in vars(m).values()
        if isinstance(c, type) and c.__module__ == m.__name__ and c is not Elsewhere
    ]
    silent = [c for c in left if field_names(c) is not None and unsaid(c)]
    assert len(silent) > 20
    for c in silent:
        with pytest.raises(KeyError):
            name_of(c)


def test_an_attribute_with_places_must_be_declared(tmp_path):
    m = Monomials(2).fit(np.ones((2, 2)))
    m.where_ = np.arange(3)
    with pytest.raises(
        ValueError, match=r"Monomials\.where_ holds whole numbers of no declared range"
    ):
        save(m, tmp_path / "m")


@pytest.mark.parametrize("name", MODELS)
def test_no_place_outside_its_range_comes_in(name):
    """Every array of whole numbers in every file: any entry far out, and one too far, is
    refused."""
    tree, arrays = encode(fitted(name))
    text = json.dumps(tree)
    for i, a in enumerate(arrays):
        if a.dtype not in (np.int64, np.int32) or not a.size:
            continue
        for at in {0, a.size // 2, a.size - 1}:
            for value in (-(10**6), 2**31 - 1 if a.dtype == np.int32 else 2**62):
                bad = a.copy()
                bad.flat[at] = value
                with pytest.raises(ValueError):  # noqa: PT011 - each class has its own sentence
                    decode(json.loads(text), [*arrays[:i], bad, *arrays[i + 1 :]])


# constructors
BINS, SIGNS = np.array([0, 3, 1]), np.ones(3)
TREE = dict(axes=np.ones((3, 2)), cuts=np.zeros(3), children=np.array([[1, 2], [-1, -2], [-3, -4]]))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: CountSketch(np.array([0, 10**9, 1]), SIGNS, 4),
            "CountSketch.bins holds 1000000000, which is not from 0 to 3",
        ),
        (lambda: CountSketch(np.array([0, -40, 1]), SIGNS, 4), "CountSketch.bins holds -40"),
        (
            lambda: CountSketch(BINS, SIGNS[:2], 4),
            r"CountSketch.signs has shape \(2,\), which is not \(3,\)",
        ),
        (
            lambda: CountSketch(BINS.astype(float), SIGNS, 4),
            "CountSketch.bins should be an array of whole numbers",
        ),
        (
            lambda: CountSketch(BINS.astype(np.int8), SIGNS, 4),
            "CountSketch.bins should be an array of whole numbers",
        ),
        (
            lambda: CountSketch(BINS, SIGNS * np.nan, 4),
            "CountSketch.signs holds numbers that are not finite",
        ),
        (lambda: CountSketch(BINS, SIGNS, 4.0), "CountSketch.D should be a whole number"),
        (lambda: Hashed(7, 2, True, Stream(0)), "does not divide"),
        (lambda: Hashed(0, 0, True, Stream(0)), "Hashed.m is 0"),
        (lambda: Program(*_moved("first")), "has tables that are not those of its caps"),
        (lambda: Program(*_moved("parent")), "has tables that are not those of its caps"),
        (lambda: Program(*_moved("caps")), "Program"),
        (lambda: Program(*_moved("skip")), "Program.skip is 3"),
        (
            lambda: CellTree(**TREE | {"children": np.array([[1, 2], [0, -2], [-3, -4]])}),
            "lead back",
        ),
        (
            lambda: CellTree(**TREE | {"children": np.array([[1, 2], [-1, -2], [-2, -4]])}),
            "branches that meet",
        ),
        (
            lambda: CellTree(**TREE | {"children": np.array([[1, 2], [-1, -9], [-3, -4]])}),
            "nowhere",
        ),
        (lambda: CellTree(**TREE | {"cuts": np.zeros(2)}), "Tree.cuts has shape"),
    ],
)
def test_a_value_that_would_lead_a_loop_astray_cannot_be_made(make, says):
    with pytest.raises(Broken, match=says) as e:
        make()
    assert "\n" not in str(e.value)


def _moved(field):
    p = plan(3, 2)
    given = {name: getattr(p, name) for name in ("caps", "first", "parent", "skip", "ordered")}
    given[field] = 3 if field == "skip" else given[field] + 1
    return given.values()


def test_a_tree_deeper_than_the_stack_sorts_rows(monkeypatch):
    n = 5000
    chain = np.array([[-1 - i, i + 1] for i in range(n - 1)] + [[-n, -n - 1]])
    tree = CellTree(np.ones((n, 1)), np.arange(n) + 0.5, chain)
    assert tree.cell(np.array([[0.0], [7.0], [n + 5.0]])).tolist() == [0, 7, n]
    with pytest.raises(ValueError, match="columns, 1 expected"):
        tree.cell(np.zeros((2, 2)))


def test_a_machine_has_a_model_for_every_cell():
    tree = CellTree(np.ones((1, 2)), np.zeros(1), np.array([[-1, -2]]))
    with pytest.raises(Broken, match=r"Machine\.models has 0 parts, not 2"):
        check(Machine(tree, (), 0, 5))


# the doors of loops
X = np.ones((4, 3))


@pytest.mark.parametrize(
    "enter",
    [
        lambda: expand(plan(3, 2), X[:, :2]),
        lambda: expand(plan(3, 2), X, np.ones(9)),
        lambda: expand(plan(3, 2), X, out=np.empty((4, 9))),
        lambda: expand_csr(plan(3, 2), sp.csr_array(np.ones((4, 4)))),
        lambda: expand_csr(plan(3, 2), sp.csr_array(X), np.ones(9)),
        lambda: _by_transform(CountSketch(BINS, SIGNS, 4), np.dtype(float))(np.ones((2, 4))),
        lambda: Hashed(6, 2, True, Stream(0)).add(X, 0, np.zeros((4, 5))),
        lambda: Hashed(6, 2, True, Stream(0)).add(X, 0, np.zeros((3, 6))),
        lambda: Hashed(6, 2, True, Stream(0)).add_csr(sp.csr_array(X), np.zeros((4, 4))),
        lambda: Hashed(6, 2, True, Stream(0)).inner(sp.csr_array(X), np.zeros(5)),
        lambda: Fastfood(Normal(), 3, 8, Stream(0)).project(np.ones((2, 4)), np.empty((2, 8))),
        lambda: Fastfood(Normal(), 3, 8, Stream(0)).project(X, np.empty((4, 7))),
        lambda: _tile(3, 2),
    ],
)
def test_a_loop_is_not_entered_with_arrays_of_other_sizes(enter):
    with pytest.raises(ValueError, match=r"; [^\n]+\.$"):
        enter()


def _tile(d, e):
    from mercer.inputs import Table
    from mercer.pairs.side import Side
    from mercer.pairs.tile import Tile

    return Tile(Side(Table(np.ones((2, d)))), Side(Table(np.ones((2, e)))))


# the language
class Toy:
    must = dict(
        a=Ints("n", below="m", distinct=True),
        b=Floats("n + 1", "m") | None,
        m=Whole(1),
        c=Each(Floats("m"), size="k"),
        d=By(Whole(0, "m"), Floats("k")),
        e=Is("CountSketch", D="m"),
        f=Labels("k"),
        g=Samples("n", None),
    )

    def __init__(self, **fields):
        vars(self).update(fields)


GOOD = dict(
    a=np.array([2, 0]),
    b=np.ones((3, 4)),
    m=4,
    c=[np.ones(4)] * 2,
    d={3: np.ones(2)},
    e=CountSketch(BINS, SIGNS, 4),
    f=np.array(["x", "y"]),
    g=sp.csr_array(np.ones((2, 5))),
)


def test_what_is_just_so_passes():
    check(Toy(**GOOD))
    check(Toy(**GOOD | {"b": None, "g": ["an item", "another"]}))
    check(Toy())


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": np.array([2, 2])},
        {"a": np.array([2, 4])},
        {"a": np.array([[2, 0]])},
        {"a": [2, 0]},
        {"b": np.ones((2, 4))},
        {"b": "b"},
        {"b": np.full((3, 4), np.inf)},
        {"m": 0},
        {"m": True},
        {"m": None},
        {"c": [np.ones(4), np.ones(3)]},
        {"c": np.ones((2, 4))},
        {"d": {4: np.ones(2)}},
        {"d": {3: np.ones(3)}},
        {"d": []},
        {"e": CountSketch(BINS, SIGNS, 5)},
        {"e": Stream(0)},
        {"f": np.array(["x"])},
        {"g": sp.csr_array(np.ones((3, 5)))},
        {"g": np.full((2, 5), np.nan)},
        {"g": ["an item"]},
        {"g": sp.csc_array(np.ones((2, 5)))},
    ],
    ids=str,
)
def test_what_is_not_is_named(wrong):
    with pytest.raises(Broken, match=r"^Toy\.\w .+\.$"):
        check(Toy(**GOOD | wrong))


def test_places_are_found_wherever_they_are():
    assert all(
        map(
            lists_places,
            ([1], (1,), {1: "a"}, [np.arange(2)], np.arange(2), {"a": [np.arange(2)]}, {3}),
        )
    )
    assert not any(
        map(
            lists_places,
            (1, 1.5, "a", [1.5], np.ones(2), np.array(["a"]), {"a": 1}, None, np.array(3), [True]),
        )
    )
