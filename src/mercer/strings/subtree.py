"""SubTree: how many fragments two labelled trees share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from mercer.inputs import Array
from mercer.kernels.base import Kernel
from mercer.kernels.checks import positive
from mercer.kernels.proof import Proof
from mercer.kernels.proof import register as prove_by
from mercer.ops.fragments import shared_fragments
from mercer.store import register
from mercer.strings.brackets import Trees

SIGMA = {"subset": 1.0, "subtree": 0.0}  # what a child adds by not being expanded


@register("strings.SubTree")
class SubTree(Kernel):
    """sum_f decay^|f| n_f(x) n_f(z), n_f being how often a tree has the fragment f

    A fragment f has |f| productions, a production being the label of a node with the labels of
    its children. Fragments of kind "subset" are connected and have of each node all children
    or none (Collins and Duffy, 2001); those of kind "subtree" have all that is below a node
    (Vishwanathan and Smola, 2002). The sum is over pairs of nodes of equal production
    (Moschitti, 2006): delta = decay * product over the children that have children of their
    own of (sigma + delta of them), sigma being 1 or 0. Trees may have any depth.

    Trees are nested tuples ``(label, child, ...)``, leaves being strings, or bracketed texts
    ``"(S (NP John) (VP runs))"``, or objects with a method `label` that list their children, as
    those of NLTK. A node without children is a leaf, however it is written, and has no
    production.

    Parameters
    ----------
    kind : {"subset", "subtree"}, default="subset"
    decay : float, default=0.4
        0 < decay <= 1: how little a large fragment weighs.

    Examples
    --------
    >>> SubTree(decay=1.0)(["(S (NP John) (VP runs))", "(S (NP Mary) (VP runs))"])
    array([[6., 3.],
           [3., 6.]])
    """

    kind: str = "subset"
    decay: float = 0.4
    items: ClassVar[bool] = True
    most: ClassVar[dict[str, float]] = {"decay": 1.0}

    def check(self) -> None:
        if self.kind not in SIGMA:
            raise ValueError(f"kind must be 'subset' or 'subtree', got {self.kind!r:.40}.")
        self.decay = positive(self.decay, "decay")
        if self.decay > 1:
            raise ValueError(f"decay must be a number in (0, 1], got {self.decay!r}.")

    def on(self, p: Any) -> Any:
        return p.between(self)

    # what pairs ask of a kernel of items
    @property
    def reading(self) -> Hashable:
        return SubTree

    def read(self, items: list[Any]) -> Trees:
        """The trees, as numbers."""
        return Trees.of(items)

    def values(self, x: Trees, z: Trees) -> Array:
        """k(x_i, z_j) of two sides."""
        return self._between(x, z)[0]

    def own(self, x: Trees) -> Array:
        """k(x_i, x_i) of one side."""
        return self._of(x, x, _twice(len(x)))[0]

    def slopes(self, x: Trees, z: Trees) -> Mapping[str, Array]:
        """The derivative of values by `decay`."""
        return {"decay": self._between(x, z)[1]}

    def own_slopes(self, x: Trees) -> Mapping[str, Array]:
        """That of `own`."""
        return {"decay": self._of(x, x, _twice(len(x)))[1]}

    def _between(self, x: Trees, z: Trees) -> Array:
        """Values and slopes (2, n, m); of a side with itself one triangle of them is computed."""
        out = np.empty((2, len(x), len(z)))
        rows, cols = np.indices((len(x), len(z))).reshape(2, -1)
        if x is z:
            rows, cols = np.triu_indices(len(x))
            out[:, cols, rows] = out[:, rows, cols] = self._of(x, z, np.stack([rows, cols], 1))
        else:
            out[:, rows, cols] = self._of(x, z, np.stack([rows, cols], 1))
        return out

    def _of(self, x: Trees, z: Trees, pairs: Array) -> Array:
        found = np.empty((2, len(pairs)))
        shared_fragments(*x.beside(z), pairs, self.decay, SIGMA[self.kind], *found)
        if not np.isfinite(found).all():
            raise ValueError(
                f"trees share more fragments than floats can count with {self!r}; use a smaller decay, or kind='subtree'."
            )
        return found


def _twice(n: int) -> Array:
    return np.stack([np.arange(n)] * 2, 1)


def _proof(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, SubTree)
    what = {"subset": "fragments", "subtree": "subtrees"}[k.kind]
    rule = f"its features are the numbers of all {what} f, each by the root of decay^|f| > 0"
    return Proof(repr(k), rule)


prove_by(SubTree, _proof)
