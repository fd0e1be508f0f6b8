"""SubTree against a list of all fragments; trees of any depth, and what is no tree."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from mercer import GaussianProcessRegressor, check_psd
from mercer.ops.fragments import children_of
from mercer.strings import SubTree
from mercer.strings.brackets import Trees
from mercer.testing import check_kernel

KINDS = "subset", "subtree"


def drawn(rng, depth):
    """A random tree as nested tuples, of few labels, so that productions are shared."""
    label = str(rng.choice(list("ABC")))
    if depth == 0 or rng.random() < 0.25:
        return label.lower()
    return (label, *(drawn(rng, depth - 1) for _ in range(rng.integers(1, 4))))


def forest(seed, n=9, depth=3):
    rng = np.random.default_rng(seed)
    trees = [("A", drawn(rng, depth), drawn(rng, depth)) for _ in range(n)]
    return [*trees[:-2], trees[0], ("A", *trees[1][1:], "a")]  # a copy, and a near one


def bracketed(tree):
    return tree if isinstance(tree, str) else f"({' '.join(map(bracketed, tree))})"


def rooted(node, kind):
    """The fragments that have `node` as their root, each with its number of productions."""
    children = [
        [(c, 0)]
        if isinstance(c, str)
        else [*([((c[0], "..."), 0)] * (kind == "subset")), *rooted(c, kind)]
        for c in node[1:]
    ]
    return [
        ((node[0], *(f for f, _ in some)), 1 + sum(size for _, size in some))
        for some in itertools.product(*children)
    ]


def fragments(tree, kind):
    if isinstance(tree, str):
        return Counter()
    below = (fragments(c, kind) for c in tree[1:])
    return sum(below, Counter(rooted(tree, kind)))


def enumerated(X, Z, kind, decay):
    x, z = ([fragments(t, kind) for t in trees] for trees in (X, Z))
    return np.array(
        [[sum(n * b[f] * decay ** f[1] for f, n in a.items()) for b in z] for a in x], float
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_all_fragments_are_counted(kind, seed):
    X, Z = forest(seed), forest(seed + 50, n=7)
    for decay in (1.0, 0.3):
        k = SubTree(kind, decay)
        np.testing.assert_allclose(k(X, Z), enumerated(X, Z, kind, decay), rtol=1e-12)
        np.testing.assert_allclose(k.diag(X), np.diag(enumerated(X, X, kind, decay)), rtol=1e-12)
        assert k.proof()
        assert not check_psd(k, X)
    assert np.ptp(SubTree(kind)(X, Z)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_bits_depend_on_no_side_block_or_writing(kind):
    X = forest(1, n=40)
    k = SubTree(kind, 0.7)
    K = k(X)
    assert (K == K.T).all()
    assert (K[:9, 9:] == k(X[:9], X[9:])).all()
    assert (K[9:, :9] == k(X[9:], X[:9])).all()
    assert (k([bracketed(t) for t in X], X) == K).all()
    assert (k([[*t] for t in X]) == K).all()
    assert (k(np.array([bracketed(t) for t in X])) == K).all()
    assert (np.diag(K) == k.diag(X)).all()


def test_leaves_have_no_production_however_they_are_written():
    k = SubTree(decay=1.0)
    assert k(["(S NP)"], [("S", ("NP",))]) == 1
    assert k(["(S NP)"], ["(S (NP a))"]) == 0  # a word and a category are not the same
    assert (k(["", " ", (), ("S",), "(S)", "()"]) == 0).all()
    assert k(["( (S a))"], [("", ("S", "a"))]) == 3
    assert (k.normalized()(["", "(S a)"]) == [[0, 0], [0, 1]]).all()


def test_nodes_that_name_themselves_list_their_children():
    class Node(list):
        def __init__(self, label, children):
            super().__init__(children)
            self._label = label

        def label(self):
            return self._label

    tree = Node("S", [Node("NP", ["a"]), Node("VP", ["b", Node("A", ["c"])])])
    k = SubTree(decay=1.0)
    written = ["(S (NP a) (VP b (A c)))"]
    assert k([tree], written) == k(written) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_by_decay(kind):
    X, h = forest(3), 1e-6
    G = np.random.default_rng(0).normal(size=(len(X),) * 2)
    for k in (SubTree(kind), SubTree(kind).normalized(), 2.0 * SubTree(kind) ** 2):
        (path,) = [p for p in k.parameters() if p.endswith("decay")]
        up, down = (
            np.sum(G * k.clone().set_params(**{path: 0.4 + s})(X)) / (2 * h) for s in (h, -h)
        )
        at = list(k.parameters()).index(path)
        np.testing.assert_allclose(k.gradient(X, G)[at], up - down, rtol=1e-6, atol=1e-6)


def test_a_gaussian_process_learns_the_decay():
    X = forest(5, n=30)
    y = SubTree(decay=0.2).normalized()(X)[:, 0]
    model = GaussianProcessRegressor(SubTree(decay=0.9).normalized()).fit(X, y)
    assert model.kernel_.parameters() != SubTree(decay=0.9).normalized().parameters()
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9


@pytest.mark.parametrize("k", [SubTree(), SubTree("subtree", 0.3).normalized() + 1.0], ids=repr)
def test_the_contract_of_kernels(k):
    check_kernel(k, forest(7))


def chain(depth, period):
    return "".join(f"(A{i % period} " for i in range(depth)) + "x" + ")" * depth


def test_trees_of_any_depth():
    depth, period = 100_000, 10_000
    text, nested = chain(depth, period), "x"
    for i in reversed(range(depth)):
        nested = (f"A{i % period}", nested)
    # two nodes of a label share what is below the lower one, but for the leaf where they differ
    place = np.arange(depth)
    above = place // period
    expected = np.sum((2 * above + 1) * (depth - place) - 2 * above)
    k = SubTree(decay=1.0)
    x, z = k.read([text]), k.read([nested])
    assert k.values(x, z) == expected
    assert SubTree("subtree", 1.0).values(x, z) == depth


def test_a_bush_takes_as_many_values_as_there_are_pairs():
    wide = ("S", *(("A", "x"),) * 300)
    assert SubTree("subtree", 1.0)([wide])[0, 0] == 300**2 + 1


def test_too_many_fragments_are_said():
    tree = "x"
    for _ in range(12):
        tree = ("S", tree, tree)
    with pytest.raises(ValueError, match="smaller decay, or kind='subtree'"):
        SubTree(decay=1.0)([tree])
    assert np.isfinite(SubTree("subtree", 1.0)([tree]))


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ("(S (NP a)", "position 0: this bracket is never closed"),
        ("(S (NP a (VP b)", "position 3: this bracket is never closed"),
        ("(S a))", "position 5: this bracket closes none"),
        (")", "position 0: this bracket closes none"),
        ("(S a) (S b)", "position 6: the tree has ended before"),
        ("John", "position 0: 'John' is in no brackets"),
        (None, "a tree cannot be None"),
        (3.5, "a tree cannot be 3.5"),
        (("S", 3), "has 3 where a label is meant"),
        (("S", None, "a"), "has None where a label is meant"),
        ((("S", "a"), "b"), "an object of type tuple where a label"),
        (("S", ()), "an object of type tuple where a label"),
    ],
)
def test_what_is_no_tree(tree, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        SubTree()(["(S a)", tree])


def test_rows_of_numbers_are_no_trees():
    with pytest.raises(ValueError, match="compares items, got rows of numbers"):
        SubTree()([[1.0, 2.0]])


@pytest.mark.parametrize("decay", [0, -1, 1.5, float("nan"), "a", None, True])
def test_decay_is_a_number_above_0_and_at_most_1(decay):
    with pytest.raises(ValueError, match="decay must be a number"):
        SubTree(decay=decay)


def test_kind():
    with pytest.raises(ValueError, match="kind must be 'subset' or 'subtree', got 'st'"):
        SubTree("st")


def test_letters_of_any_script():
    assert (
        SubTree(decay=1.0)(["(句 (名 猫) (動 走る))"], [("句", ("名", "猫"), ("動", "走る"))]) == 6
    )
    assert SubTree(decay=1.0)(["(S é)".encode()], ["(S é)"]) == 1


@pytest.mark.parametrize("counts", [[1], [0, 0], [0, 2], [0, -1], [0, 1, 2]])
def test_nodes_are_looked_at_before_loops_read_them(counts):
    counts = np.array(counts)
    assert len(children_of(np.array([0, len(counts)]), counts)) != max(counts.sum(), 1)


def test_productions_are_numbered_in_one_order():
    x, z = Trees.of(["(B b)", "(A a)"]), Trees.of(["(C c)", "(A a)"])
    left, right = x.beside(z)
    assert (left.production.tolist(), right.production.tolist()) == ([1, 0], [2, 0])
