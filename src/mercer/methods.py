"""Methods: how a kernel becomes a feature map, as values that hold no kernel."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exact:
    """The kernel's own features, all of them; only where there are finitely many."""


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features of a stationary kernel; see `mercer.lifts.RandomFourier`."""

    n_features: int | None = None
    form: str = "pairs"
    frequencies: str = "auto"


@dataclass(frozen=True)
class Landmarks:
    """Nystrom features of any kernel at all; see `mercer.lifts.Nystrom`."""

    n_landmarks: int | None = None
    select: str = "rpcholesky"


@dataclass(frozen=True)
class Sketch:
    """Sketched products of features; see `mercer.lifts.TensorSketch`."""

    n_features: int | None = None


@dataclass(frozen=True)
class Auto:
    """Exact where the features are few enough, else by the structure of the kernel."""


Method = Exact | Fourier | Landmarks | Sketch | Auto
NAMES: dict[str, Method] = {
    "auto": Auto(), "exact": Exact(), "fourier": Fourier(), "landmarks": Landmarks(), "sketch": Sketch(),
}


def resolve(method: Method | str) -> Method:
    """A method, or the one that a name stands for.

    >>> resolve("fourier")
    Fourier(n_features=None, form='pairs', frequencies='auto')
    """
    if isinstance(method, str):
        if method not in NAMES:
            raise ValueError(f"method must be one of {', '.join(NAMES)}, or a value of mercer.methods, got {method!r}.")
        return NAMES[method]
    if isinstance(method, Method):
        return method
    raise ValueError(f"method must be a name or a value of mercer.methods, got {method!r}.")
