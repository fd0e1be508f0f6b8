"""The algebra of feature maps: concatenation, tensor products and scales; their kernels add,
multiply, scale."""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import add, mul
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Is, Number
from mercer.kernels import Kernel, Scale
from mercer.lifts.base import Lift, by_rows, fitted, needs_target, seed_of
from mercer.store import register


def independent(lifts: list[Any]) -> list[Any]:
    """Clones of the maps with randomness of their own: two maps of one seed would be one map
    twice.
    """
    return [reseeded(clone(phi), i) for i, phi in enumerate(lifts)]


def reseeded(phi: Any, i: int) -> Any:
    """Number i of several maps: each random part gets a seed made of its own one and i."""
    states = {
        name: value
        for name, value in phi.get_params().items()
        if name.split("__")[-1] == "random_state"
    }
    seeds = {name: _derived(seed_of(value), i) for name, value in states.items()}
    return phi.set_params(**seeds)


def _derived(seed: int, i: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1)[0]) if i else seed


class Composite(Lift):
    """A map made of maps."""

    sparse: ClassVar[bool] = True  # the parts refuse what they do not take

    must = dict(lifts_=Each(Is("Lift", "TransformerMixin", n_features_in_="n_features_in_")))

    def __init__(self, lifts: Any) -> None:
        self.lifts = lifts

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parts by position: `lifts__0__n_features`."""
        out: dict[str, Any] = {"lifts": self.lifts}
        parts = self.lifts if deep and isinstance(self.lifts, list | tuple) else []
        for i, phi in enumerate(parts):
            out[f"lifts__{i}"] = phi
            out |= {f"lifts__{i}__{name}": value for name, value in phi.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """By the names of `get_params`."""
        self.lifts = params.pop("lifts", self.lifts)
        known = self.get_params() if params else {}
        inside: dict[int, dict[str, Any]] = {}
        parts = list(self.lifts) if params else self.lifts
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{name!r} is not a parameter of {type(self).__name__}; see get_params()."
                )
            _, i, *rest = name.split("__", 2)
            if rest:
                inside.setdefault(int(i), {})[rest[0]] = value
            else:
                parts[int(i)] = value
        for place, some in inside.items():
            parts[place] = parts[place].set_params(**some)
        self.lifts = parts
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(getattr(phi, "sparse", False) for phi in self.lifts or [])
        tags.target_tags.required = any(map(needs_target, self.lifts or []))
        return tags


@register("lifts.Concatenate")
class Concatenate(Composite):
    """(phi_1(x), phi_2(x), ...): the kernels add.

    Parameters
    ----------
    lifts : list of Lift
        phi_1, phi_2, ..., of which random ones are drawn independently.

    Examples
    --------
    >>> from mercer.lifts import Monomials, Parabolic
    >>> (Parabolic() + Monomials(2)).fit_transform([[2.0]])
    array([[2., 4., 1., 2., 4.]])
    """

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self.lifts_ = [fitted(phi, self._for(phi, X), y) for phi in independent(self.lifts)]
        self.n_features_out_ = sum(phi.n_features_out_ for phi in self.lifts_)
        self.kernel_ = reduce(add, (phi.kernel_ for phi in self.lifts_))

    def _map(self, X: Matrix) -> Matrix:
        parts = [phi.transform(self._for(phi, X)) for phi in self.lifts_]
        return (
            sp.hstack(parts).tocsr()
            if any(map(sp.issparse, parts))
            else np.concatenate(parts, axis=1)
        )

    def _names(self, inputs: list[str]) -> list[str]:
        return unique([name for phi in self.lifts_ for name in phi.get_feature_names_out(inputs)])


@register("lifts.Tensor")
class Tensor(Composite):
    """All products of one feature of each map: the kernels multiply.

    Parameters
    ----------
    lifts : list of Lift
        The maps, of which random ones are drawn independently.

    Examples
    --------
    >>> from mercer.lifts import Parabolic
    >>> (Parabolic() * Parabolic()).fit_transform([[2.0]])
    array([[ 4.,  8.,  8., 16.]])
    """

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self.lifts_ = [fitted(phi, self._for(phi, X), y) for phi in independent(self.lifts)]
        self.n_features_out_ = int(np.prod([phi.n_features_out_ for phi in self.lifts_]))
        self.kernel_ = reduce(mul, (phi.kernel_ for phi in self.lifts_))

    def _map(self, X: Matrix) -> Array:
        parts = [phi.transform(self._for(phi, X)) for phi in self.lifts_]
        return reduce(outer_rows, (P.toarray() if sp.issparse(P) else P for P in parts))

    def _names(self, inputs: list[str]) -> list[str]:
        names = [phi.get_feature_names_out(inputs) for phi in self.lifts_]
        return unique(["*".join(combination) for combination in product(*names)])


def outer_rows(A: Array, B: Array) -> Array:
    """Row by row all products a_i b_j, (n, p q)."""
    out = np.empty((len(A), A.shape[1], B.shape[1]), A.dtype)

    def fill(a: Array, rows: slice) -> None:
        np.multiply(a[:, :, None], B[rows][:, None, :], out=out[rows])

    by_rows(A, out[0].size, fill)
    return out.reshape(len(A), -1)


def unique(names: list[str]) -> list[str]:
    """Names with a number behind those that occur again."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return out


@register("lifts.Scaled")
class Scaled(Lift):
    """c phi(x): the kernel is scaled by c^2.

    Parameters
    ----------
    lift : Lift
        The phi.
    by : float, default=1.0
        The c.

    Examples
    --------
    >>> from mercer.lifts import Parabolic
    >>> (3 * Parabolic()).fit_transform([[2.0]])
    array([[ 6., 12.]])
    """

    sparse: ClassVar[bool] = True

    must = dict(
        by=Number(),
        lift_=Is("Lift", n_features_in_="n_features_in_", n_features_out_="n_features_out_"),
    )

    def __init__(self, lift: Any, by: float = 1.0) -> None:
        self.lift = lift
        self.by = by

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self.lift_ = fitted(clone(self.lift), self._table(X), y)
        self.n_features_out_ = self.lift_.n_features_out_
        self.kernel_: Kernel = Scale(float(self.by) ** 2, self.lift_.kernel_)

    def _map(self, X: Matrix) -> Matrix:
        return self.lift_.transform(self._table(X)) * X.dtype.type(self.by)

    def _names(self, inputs: list[str]) -> list[str]:
        return list(self.lift_.get_feature_names_out(inputs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self.lift, "sparse", False)
        tags.target_tags.required = needs_target(self.lift)
        return tags
