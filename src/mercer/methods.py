"""Methods: how a kernel becomes a feature map, as values that hold no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from mercer.store import register


class Settings:
    """What scikit-learn asks of a value inside an estimator.

    So a grid search can vary `via__n_features`.

    Examples
    --------
    >>> Fourier(100).get_params()
    {'n_features': 100, 'form': 'pairs', 'frequencies': 'auto'}
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change settings in place.

        As scikit-learn does on clones, where it ignores what is returned.

        >>> Fourier(100).set_params(n_features=200)
        Fourier(n_features=200, form='pairs', frequencies='auto')
        """
        for name, value in params.items():
            if name not in self.get_params():
                known = ", ".join(self.get_params()) or "no setting"
                raise ValueError(
                    f"{name!r} is not a setting of {type(self).__name__}, which has {known}."
                )
            object.__setattr__(self, name, value)
        return self


@register("methods.Exact")
@dataclass(frozen=True)
class Exact(Settings):
    """The kernel's own features, all of them; only where there are finitely many.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2).lift(method=Exact()).fit_transform([[1.0]]).shape
    (1, 3)
    """


@register("methods.Fourier")
@dataclass(frozen=True)
class Fourier(Settings):
    """Random Fourier features of a stationary kernel; see `mercer.lifts.RandomFourier`.

    Parameters
    ----------
    n_features : int, default=None
        The number of features; None leaves it to the estimator or map.
    form : {"pairs", "shift"}, default="pairs"
        Cosines and sines, or cosines with a shift.
    frequencies : str, default="auto"
        How they are drawn: "auto", "iid", "orthogonal", "qmc", "design" or "structured".

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian().lift(method=Fourier(100), random_state=0).fit_transform([[1.0]]).shape
    (1, 100)
    """

    n_features: int | None = None
    form: str = "pairs"
    frequencies: str = "auto"


@register("methods.Landmarks")
@dataclass(frozen=True)
class Landmarks(Settings):
    """Nystrom features of any kernel at all; see `mercer.lifts.Nystrom`.

    Parameters
    ----------
    n_landmarks : int, default=None
        The number of landmarks; None leaves it to the estimator or map.
    select : str, default="rpcholesky"
        How they are chosen: "rpcholesky", "uniform", "leverage" or "kmeans".

    Examples
    --------
    >>> from mercer.kernels import Laplace
    >>> X = [[0.0], [1.0], [2.0]]
    >>> Laplace().lift(method=Landmarks(2), random_state=0).fit_transform(X).shape
    (3, 2)
    """

    n_landmarks: int | None = None
    select: str = "rpcholesky"


@register("methods.Sketch")
@dataclass(frozen=True)
class Sketch(Settings):
    """Sketched products of features; see `mercer.lifts.TensorSketch`.

    Parameters
    ----------
    n_features : int, default=None
        The number of features; None leaves it to the estimator or map.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(3).lift(64, method=Sketch(), random_state=0).fit_transform([[1.0]]).shape
    (1, 64)
    """

    n_features: int | None = None


@register("methods.Auto")
@dataclass(frozen=True)
class Auto(Settings):
    """Exact where the features are few enough, else by the structure of the kernel.

    Examples
    --------
    >>> resolve(Auto())
    ('features', Auto())
    """


Method = Exact | Fourier | Landmarks | Sketch | Auto
NAMES: dict[str, Method] = {
    "auto": Auto(),
    "exact": Exact(),
    "fourier": Fourier(),
    "landmarks": Landmarks(),
    "sketch": Sketch(),
}


WAYS = ("auto", "exact", "iterative", "features", "landmarks")


def resolve(via: Method | str, allowed: Sequence[str] = WAYS) -> tuple[str, Method]:
    """The way that an estimator's `via` names, and how a kernel becomes features on it.

    Examples
    --------
    >>> resolve("landmarks")
    ('landmarks', Landmarks(n_landmarks=None, select='rpcholesky'))
    >>> resolve(Sketch(100))
    ('features', Sketch(n_features=100))
    """
    way = via if isinstance(via, str) else "landmarks" if isinstance(via, Landmarks) else "features"
    if not isinstance(via, Method | str) or way not in allowed:
        values = (
            ", or a value of mercer.methods"
            if "features" in allowed
            else ", or a value Landmarks(m) of mercer.methods"
        )
        told = values if {"features", "landmarks"} & set(allowed) else ""
        raise ValueError(f"via must be one of {', '.join(allowed)}{told}, got {via!r}.")
    return way, via if not isinstance(via, str) else Landmarks() if via == "landmarks" else Auto()


def way(via: object) -> str | None:
    """The way alone, for questions before `fit`; None where there is none, which `fit` refuses.

    >>> way("exact"), way(Landmarks(5)), way("best")
    ('exact', 'landmarks', None)
    """
    try:
        return resolve(via)[0]  # type: ignore[arg-type]
    except ValueError:
        return None


def named(method: Method | str) -> Method:
    """A method, or the one that a name stands for.

    >>> named("fourier")
    Fourier(n_features=None, form='pairs', frequencies='auto')
    """
    if isinstance(method, str):
        if method not in NAMES:
            raise ValueError(
                f"method must be one of {', '.join(NAMES)}, or a value of mercer.methods, got {method!r}."
            )
        return NAMES[method]
    if isinstance(method, Method):
        return method
    raise ValueError(f"method must be a name or a value of mercer.methods, got {method!r}.")
