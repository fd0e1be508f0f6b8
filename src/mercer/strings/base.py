"""StringKernel: what kernels of strings share, the alphabet and how strings are read; and what one
of them has to tell, an engine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.plans import Plan
from mercer.strings.alphabet import Alphabet, check_settings, check_size, learn
from mercer.strings.layouts import Layout
from mercer.strings.sequences import Sequences

TILED = 320  # strings on a side of a tile


class Engine(Protocol):
    """How a kernel of strings is computed: sides of encoded strings, and values between two."""

    def side(self, x: Sequences) -> Any:
        """What is computed of some strings once."""

    def values(self, x: Any, z: Any) -> Array:
        """k(x_i, z_j), shape (n, m)."""

    def own(self, x: Any) -> Array:
        """k(x_i, x_i), shape (n,)."""

    def layout(self, length: int) -> Layout:
        """The features of strings, or of those of a length where that matters."""


def least_work(costs: Mapping[str, float], said: Mapping[str, str]) -> Plan:
    """The way of least cost in nanoseconds, with what the others would take."""
    way, least = min(costs.items(), key=lambda item: item[1])
    rejected = tuple(
        (w, f"{said[w]}, about {c / 1e6:,.3g} ms") for w, c in costs.items() if w != way
    )
    return Plan(way, f"{said[way]}, about {least / 1e6:,.3g} ms", rejected=rejected)


class StringKernel(Kernel):
    """A kernel of strings over an alphabet; a subclass writes `engine(letters)`.

    Parameters
    ----------
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Letters that are not in the alphabet match nothing, not even themselves; or are all one
        letter more; or are refused.
    strands : {"one", "both"}, default="one"
        "both" takes a string of DNA together with its reverse complement: phi(x) + phi(x').

    Examples
    --------
    >>> from mercer.strings import Spectrum
    >>> k = Spectrum(2, alphabet="dna", strands="both")
    >>> k(["AAC"], ["aac", "GTT", "GGG"])
    array([[4., 4., 0.]])
    """

    alphabet: str | None = field(default=None, kw_only=True)
    case: str | None = field(default=None, kw_only=True)
    unknown: str = field(default="skip", kw_only=True)
    strands: str = field(default="one", kw_only=True)
    items: ClassVar[bool] = True

    def engine(self, letters: Alphabet) -> Engine:
        """How values are computed, for an alphabet."""
        raise NotImplementedError(f"{type(self).__name__} must define engine(self, letters).")

    def check(self) -> None:
        """Refuse settings of the alphabet that are none."""
        check_settings(self.alphabet, case=self.case, unknown=self.unknown, strands=self.strands)

    def settle(self, *rows: Table) -> Self:
        """The kernel with its alphabet learnt, where that is open."""
        if self.alphabet is not None:
            return self
        letters = learn([r.data for r in rows], fold=self.case == "fold")
        check_size(letters, self.unknown)
        return self.clone().set_params(alphabet=letters)

    @property
    def letters(self) -> Alphabet:
        """The alphabet, where it is known."""
        if self.alphabet is None:
            raise ValueError(
                f"the alphabet of {self!r} is open; give alphabet=, or fit a model, which learns it."
            )
        return Alphabet.named(self.alphabet, self.case, self.unknown, self.strands)

    def plan(self, X: Any, Z: Any = None) -> Plan:
        """Which way values between strings are computed, and why: of tiles of a few hundred."""
        left, right = self.tables(X, Z)
        k = self.settle(left, right)
        x, z = (k.read(side[:TILED].data) for side in (left, right))
        engine = k.engine(k.letters)
        if not hasattr(engine, "plan"):
            return Plan("runs", "runs of letters that agree, 64 places at a time")
        return engine.plan(x, z)

    # sugar
    def lift(self, n_features: Any = None, **options: Any) -> Any:
        """The features as sparse rows, all of them or hashed; see `mercer.lifts.StringFeatures`."""
        return import_module("mercer.lifts").StringFeatures(self, n_features, **options)

    # what pairs ask of a kernel of items
    def on(self, p: Any) -> Any:
        return p.between(self)

    @property
    def reading(self) -> Hashable:
        return self

    def read(self, items: list[Any]) -> Any:
        """The strings as the engine takes them."""
        return self.engine(self.letters).side(self.letters.encode(items))

    def values(self, x: Any, z: Any) -> Array:
        """k(x_i, z_j) of two sides."""
        return self.engine(self.letters).values(x, z)

    def own(self, x: Any) -> Array:
        """k(x_i, x_i) of one side."""
        return self.engine(self.letters).own(x)

    def slopes(self, x: Any, z: Any) -> Mapping[str, Array]:
        """The derivatives of values by continuous parameters; there are none unless a subclass has
        some."""
        return {}

    def own_slopes(self, x: Any) -> Mapping[str, Array]:
        """Those of `own`."""
        return {}
