"""The kitchen sink: a bit of every expansion, within a number of features, for a sparse learner to
select from."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from math import comb
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import By, Each, Ints, Is, Text
from mercer.kernels import Linear
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.lifts.columnwise import Basis, Jumps, named
from mercer.lifts.polynomial import Interactions
from mercer.lifts.splines import Splines
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import register

BATCH_ROWS = 1 << 10  # at a time: many enough that six parts cost little to call
PARTS = "columns", "squares", "pairs", "splines", "functions", "jumps"


@register("lifts.KitchenSink")
class KitchenSink(Lift):
    """The columns, their squares and pairwise products, splines, functions and jumps of them.

    Served in that order while the total stays within `max_features`: a part comes whole or not
    at all, but jumps, which take what room is left. Features that are constant or repeat an
    earlier one in the fitted rows are dropped. A name is its part, two underscores and the
    feature.

    Parameters
    ----------
    max_features : int, default=2000
        The largest number of features; the columns themselves must fit.
    n_knots : int, default=5
        Of the cubic splines, 0 for none.
    n_jumps : int, default=10
        Thresholds a column, 0 for none.
    functions : list of str or callable, default=("abs", "log1p_abs", "sin", "cos")
        Of `Basis`, empty for none.

    Attributes
    ----------
    parts_ : dict of Lift by name
        What was served.
    left_out_ : list of str
        The names of what was not.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 2.0], [0.0, 4.0]]
    >>> phi = KitchenSink(n_knots=0, n_jumps=1, functions=["sin"]).fit(X)
    >>> list(phi.get_feature_names_out())
    ['columns__x0', 'columns__x1', 'squares__x1^2', 'pairs__x0*x1', 'functions__sin(x0)', ...]
    """

    must = dict(
        parts_=By(Text(), Is("Lift", n_features_in_="n_features_in_")),
        kept_=Ints("n_features_out_", below="n_served_", distinct=True),
        left_out_=Each(Text()),
    )

    @property
    def n_served_(self) -> int:
        """The features of all parts, of which those worth it are kept."""
        return sum(part.n_features_out_ for part in self.parts_.values())

    def __init__(
        self,
        max_features: int = 2000,
        n_knots: int = 5,
        n_jumps: int = 10,
        functions: Any = ("abs", "log1p_abs", "sin", "cos"),
    ) -> None:
        self.max_features = max_features
        self.n_knots = n_knots
        self.n_jumps = n_jumps
        self.functions = functions

    def _learn(self, X: Array) -> None:
        self.parts_, self.left_out_ = self._serve(X.shape[1])
        for part in self.parts_.values():
            part.fit(X)
        self.kept_ = self._worth(X)
        self.n_features_out_ = len(self.kept_)
        self.kernel_ = Linear().warped(self._map)

    def _serve(self, d: int) -> tuple[dict[str, Lift], list[str]]:
        room = whole(plain(self.max_features), "max_features", least=1)
        if d > room:
            raise ValueError(f"max_features={room} is less than the {d} columns of X; raise it.")
        parts: dict[str, Lift] = {}
        for name, size, part in self._menu(d):
            if 0 < size <= room:
                parts[name], room = part, room - size
        jumps = min(whole(plain(self.n_jumps), "n_jumps"), room // d)
        parts |= {"jumps": Jumps(n=jumps)} if jumps else {}
        return parts, [name for name in PARTS if name not in parts]

    def _menu(self, d: int) -> Iterator[tuple[str, int, Lift]]:
        """Each part of a fixed size: its name, the number of its features, and the part."""
        functions, knots = (
            named(self.functions) if self.functions else [],
            whole(plain(self.n_knots), "n_knots"),
        )
        yield "columns", d, Basis("x")
        yield "squares", d, Basis("square")
        yield "pairs", comb(d, 2), Interactions(2)
        yield "splines", d * (knots + 2) if knots else 0, Splines(knots)
        yield "functions", d * len(functions), Basis(self.functions)

    def _worth(self, X: Array) -> Array:
        """The features that vary and repeat none before them; the columns where nothing varies."""
        low, high, prints = (
            np.inf,
            -np.inf,
            [blake2b(digest_size=16) for _ in range(self._all(X[:1]).shape[1])],
        )
        for rows in cuts(len(X), BATCH_ROWS):
            F = self._all(X[rows]) + X.dtype.type(0)  # -0 is 0
            low, high = np.minimum(low, F.min(0)), np.maximum(high, F.max(0))
            for seen, column in zip(prints, np.ascontiguousarray(F.T), strict=True):
                seen.update(column.tobytes())
        first = {seen.digest(): i for i, seen in reversed(list(enumerate(prints)))}
        kept = [i for i in sorted(first.values()) if np.ravel(high)[i] > np.ravel(low)[i]]
        return np.asarray(kept or range(X.shape[1]))

    def _all(self, X: Array) -> Array:
        return np.concatenate([part._map(X) for part in self.parts_.values()], axis=1)

    def _map(self, X: Array) -> Array:
        F = np.empty((len(X), self.n_features_out_), X.dtype)

        def fill(rows: slice) -> None:
            F[rows] = self._all(X[rows])[:, self.kept_]

        parallel_map(fill, cuts(len(X), BATCH_ROWS))
        return F

    def _names(self, inputs: list[str]) -> list[str]:
        names = [
            f"{part}__{name}"
            for part, phi in self.parts_.items()
            for name in phi.get_feature_names_out(inputs)
        ]
        return unique([names[i] for i in self.kept_])
