"""Dask collections, recognised by the name of their module and never computed here: their columns,
their types, and methods that answer for every partition later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isfunction
from typing import Any, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer import tensors
from mercer.engines.scheduler import compute
from mercer.inputs import Array, Table
from mercer.ops.threads import limit, single_blas
from mercer.tensors import common_place

F = TypeVar("F", bound=Callable[..., Any])
# methods of a fitted model that answer row by row
BY_ROW = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
    "gradient",
)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask, which need not be installed to ask.

    >>> is_dask([[1.0]])
    False
    """
    of_dask = any(c.__module__.partition(".")[0] == "dask" for c in type(X).__mro__)
    return of_dask and hasattr(X, "__dask_graph__")


@dataclass(frozen=True)
class LazyColumns:
    """What is known of rows without computing any: how many columns, their names, their type."""

    width: int
    names: tuple[str, ...] | None
    dtype: np.dtype[Any]  # of the floats that they are read as
    texts: bool = False  # one column of texts instead of numbers

    @classmethod
    def of(cls, X: Any, name: str = "X", *, texts: bool = False) -> LazyColumns:
        """From the metadata; ValueError where there are no rows of numbers, or of texts."""
        if texts:
            return cls(1, None, np.dtype(np.float64), True)
        if (n := dimensions(X)) == 2 and hasattr(X, "columns"):
            return cls._of_frame(X, name)
        if n != 2:
            raise ValueError(
                f"{name} must be a dask array of rows and columns or a dask dataframe, got {shape_of(X)}."
            )
        if np.isnan(X.shape[1]):
            raise ValueError(
                f"{name} has an unknown number of columns; call {name}.compute_chunk_sizes() first."
            )
        if X.shape[1] == 0:
            raise ValueError(f"{name} has 0 feature(s); give at least one column.")
        return cls(int(X.shape[1]), None, _float(X.dtype, name))

    @classmethod
    def _of_frame(cls, X: Any, name: str) -> LazyColumns:
        names = list(X.columns)
        if not names:
            raise ValueError(f"{name} has 0 feature(s); give at least one column.")
        if len(set(names)) < len(names):
            raise ValueError(f"{name} has two columns of the same name; rename one.")
        kinds = [_float(kind, f"column {c!r} of {name}") for c, kind in X.dtypes.items()]
        strings = all(isinstance(c, str) for c in names)
        return cls(len(names), tuple(names) if strings else None, np.result_type(*kinds))

    def example(self) -> Any:
        """One row as a model takes it: ones, with their names, or a text."""
        if self.texts:
            return np.array(["a"], object)
        row = np.ones((1, self.width), self.dtype)
        if self.names is None:
            return row
        import pandas as pd

        return pd.DataFrame(row, columns=list(self.names))

    def table(self) -> Table:
        """The same as rows that were checked."""
        return Table(np.ones((1, self.width), self.dtype), self.names)


def _float(kind: Any, name: str) -> np.dtype[Any]:
    """float32 and float64 as they are, float16 as float32, other numbers as float64."""
    known = getattr(kind, "numpy_dtype", kind)  # of pandas' own types
    if not isinstance(known, np.dtype) or known.kind not in "fiub":
        raise ValueError(
            f"{name} must hold numbers, but has dtype {kind}; encode texts, categories and dates first."
        )
    return np.dtype(np.float32) if known in (np.float16, np.float32) else np.dtype(np.float64)


def collection(v: Any, name: str) -> Any:
    """A dask collection as it is taken: a bag as a column of texts; delayed values are refused."""
    kind = type(v).__module__
    if kind.startswith("dask.delayed"):
        raise ValueError(
            f"{name} is a delayed value of unknown rows; make it an array, as by dask.array.from_delayed, or a dataframe."
        )
    if not kind.startswith("dask.bag"):
        return v
    import dask.array as da
    from dask import delayed

    parts = [delayed(_listed, pure=True)(part) for part in v.to_delayed()]
    texts = [da.from_delayed(part, (np.nan,), meta=np.empty(0, object)) for part in parts]
    return da.concatenate(texts, allow_unknown_chunksizes=True)


def _listed(items: Any) -> Array:
    """Items of a bag's partition, whatever they are, as an array of objects."""
    found = list(items)
    out = np.empty(len(found), object)
    out[:] = found
    return out


def dimensions(X: Any) -> int | None:
    """How many; None where X has none, as a delayed value, whose every attribute is delayed too."""
    n = getattr(X, "ndim", None)
    return n if isinstance(n, int) else None


def shape_of(X: Any) -> str:
    """In a sentence."""
    n = dimensions(X)
    return f"{type(X).__name__} of {'no' if n is None else n} dimensions"


# answers
def answered(model: Any, name: str, X: Any, options: dict[str, Any]) -> Any:
    """What `model.name(X)` is, as a dask array with the chunks of X along its rows; one number or
    class a row of a frame as a series with its index, and a dask dataframe where the model was told
    so (`set_output`)."""
    X = collection(X, "X")
    texts = dimensions(X) == 1
    columns = LazyColumns.of(X, texts=texts)
    meta = model_answer(model, name, options, columns.example())  # also refuses other columns
    if isinstance(meta, tuple):
        raise ValueError(
            f"{name} gives several arrays, which a lazy answer has not; ask for one of them."
        )
    answer = partial(_answer, light(model), name, options)
    if hasattr(meta, "columns"):
        return _frame(answer, X, meta)
    if not isinstance(meta, np.ndarray):
        return _sparse(answer, X, meta)
    if hasattr(X, "to_dask_array"):  # a frame, or a column of one
        return (
            _series(answer, X, meta) if meta.ndim == 1 else X.map_partitions(answer, meta=meta[:0])
        )
    return _array(answer, X, meta)


def _array(answer: Callable[[Any], Any], X: Any, meta: Array) -> Any:
    """Blocks of an array with the chunks of X along its rows."""
    X = X.rechunk({1: -1}) if X.ndim == 2 else X
    return X.map_blocks(
        answer,
        chunks=(X.chunks[0], *((n,) for n in meta.shape[1:])),
        drop_axis=[1] if X.ndim > meta.ndim else None,
        new_axis=list(range(X.ndim, meta.ndim)) or None,
        meta=meta[:0],
        dtype=meta.dtype,
    )


def _series(answer: Callable[[Any], Any], X: Any, meta: Array) -> Any:
    """A dask series with the index and the divisions of a frame."""
    import pandas as pd

    like = pd.Series(meta[:0], index=X._meta.index[:0])
    return X.map_partitions(partial(_indexed, answer), meta=like)


def _indexed(answer: Callable[[Any], Any], X: Any) -> Any:
    import pandas as pd

    return pd.Series(np.asarray(answer(X)), index=X.index)


def _frame(answer: Callable[[Any], Any], X: Any, meta: Any) -> Any:
    """A dask dataframe; workers need not be told what `set_output` or scikit-learn's settings ask."""
    if (kind := type(meta).__module__.partition(".")[0]) != "pandas":
        raise ValueError(
            f"set_output asks for {kind}, but frames of Dask hold pandas; ask for 'pandas' or 'default'."
        )
    if hasattr(X, "to_dask_array"):
        meta = meta.iloc[:0].set_axis(X._meta.index[:0])
        return X.map_partitions(partial(_framed, answer, meta.columns), meta=meta)
    import dask.dataframe as dd

    values = _array(partial(_values, answer), X, np.asarray(meta))
    return dd.from_dask_array(values, columns=list(meta.columns))


def _framed(answer: Callable[[Any], Any], columns: Any, X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(np.asarray(answer(X)), columns=columns, index=X.index)


def _values(answer: Callable[[Any], Any], X: Any) -> Array:
    return np.asarray(answer(X))


def _sparse(answer: Callable[[Any], Any], X: Any, meta: Any) -> Any:
    """Chunks of CSR rows, which frames do not have."""
    import dask.array as da
    from dask import delayed

    blocks = X.to_delayed()
    blocks = blocks.ravel() if hasattr(blocks, "ravel") else blocks
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
    found = [
        da.from_delayed(delayed(answer)(block), (n, meta.shape[1]), meta=meta[:0])
        for block, n in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(found, allow_unknown_chunksizes=True)


def light(model: Any) -> Any:
    """What predicts, without statistics that only further training needs."""
    return model.without_statistics() if hasattr(model, "without_statistics") else model


def model_answer(model: Any, name: str, options: dict[str, Any], X: Any) -> Array:
    return getattr(model, name)(X, **options)


def _answer(model: Any, name: str, options: dict[str, Any], X: Any) -> Any:
    """Of one partition, which may be empty; as many partitions as threads are under way."""
    if not len(X):
        ones = np.ones((1, X.shape[1])) if getattr(X, "ndim", 1) == 2 else np.array(["a"], object)
        if hasattr(X, "columns"):
            ones = type(X)(ones, columns=X.columns)
        return model_answer(model, name, options, ones)[:0]
    with limit(1), single_blas():
        return model_answer(model, name, options, X)


def take_dask(cls: type[Any]) -> None:
    """Let the methods of a new class of estimators take dask collections: answers by row stay lazy,
    and `fit` goes to `_fit_dask` where there is one. Outside of what scikit-learn puts around
    `transform`."""
    for name in BY_ROW:
        if name in vars(cls):
            setattr(cls, name, _each(vars(cls)[name], lazily))
    for name in ("fit", "fit_transform", "partial_fit", "fit_predict"):
        if name in vars(cls):
            setattr(cls, name, _each(vars(cls)[name], eagerly))
    if (score := getattr(cls, "score", None)) in (RegressorMixin.score, ClassifierMixin.score):
        cls.score = summed_up(score)


def summed_up(method: F) -> F:
    """scikit-learn's `score`, of answers and targets that are computed first: it counts rows, which
    partitions may not know."""

    @wraps(method)
    def call(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if not any(map(is_dask, (X, y, sample_weight))):
            return method(self, X, y, sample_weight)
        asked = {"X": self.predict(X), "y": y, "sample_weight": sample_weight}
        predicted, *others = in_memory([collection(v, n) for n, v in asked.items()])
        return method(Answered(predicted), X, *others)

    return call  # type: ignore[return-value]


def in_memory(values: Sequence[Any]) -> list[Any]:
    """Collections as arrays, all computed at once; anything else as it is."""
    parts = [list(np.ravel(v.to_delayed())) if is_dask(v) else [] for v in map(_in_rows, values)]
    found = iter(compute([p for each in parts for p in each]))
    return [
        np.concatenate([np.asarray(next(found)) for _ in each]) if each else v
        for each, v in zip(parts, values, strict=True)
    ]


def _in_rows(v: Any) -> Any:
    """An array with all its columns in each chunk."""
    return v.rechunk({1: -1}) if is_dask(v) and hasattr(v, "rechunk") and v.ndim == 2 else v


@dataclass(frozen=True, eq=False)
class Answered:
    """A model that has predicted."""

    predicted: Any

    def predict(self, X: Any) -> Any:
        return self.predicted


def _each(method: Any, wrap: Callable[[Any], Any]) -> Any:
    """A method wrapped, also where scikit-learn says when it is there."""
    if isfunction(method):
        return wrap(method)
    return available_if(method.check)(wrap(method.fn)) if hasattr(method, "fn") else method


def lazily(method: F) -> F:
    """A method that answers row by row, lazily for dask collections."""

    @wraps(method)
    def call(self: Any, X: Any, *given: Any, **options: Any) -> Any:
        if not is_dask(X):
            if common_place(X) is not None:
                return tensors.answered(self, method, X, *given, **options)
            return method(self, X, *given, **options)
        if given:
            raise ValueError(f"give {method.__name__} of a dask collection its options by name.")
        return answered(self, method.__name__, X, options)

    return call  # type: ignore[return-value]


def eagerly(method: F) -> F:
    """A method that learns: of dask collections by `_fit_dask`."""
    if hasattr(method, "takes_dask"):  # it asks itself, so that warnings keep their places
        return method

    @wraps(method)
    def call(self: Any, *given: Any, **options: Any) -> Any:
        if (found := dask_among(given, options)) is not None:
            return learnt(self, method.__name__, found, *given, **options)
        if common_place(*given) is not None:
            return tensors.answered(self, method, *given, **options)
        return method(self, *given, **options)

    return call  # type: ignore[return-value]


def dask_among(given: Sequence[Any], options: Mapping[str, Any]) -> str | None:
    """The name of a dask collection among the arguments of a method that learns, X before others."""
    if given and is_dask(given[0]):
        return "X"
    found = {name: v for name, v in options.items() if is_dask(v)}
    return "X" if "X" in found else next(iter(found), "y" if any(map(is_dask, given)) else None)


def learnt(model: Any, name: str, found: str, *given: Any, **options: Any) -> Any:
    """What `fit` and `fit_transform` are of a dask collection."""
    if found != "X":
        raise ValueError(
            f"{found} is a dask collection, but X is none; give both, or call compute() on it."
        )
    fit = getattr(model, "_fit_dask", None)
    if fit is None or name not in ("fit", "fit_transform"):
        told = "has no fit over partitions" if fit is None else f"takes none in {name}"
        raise ValueError(
            f"X is a dask collection, and {type(model).__name__} {told}; give it rows in memory (X.compute())."
        )
    names = ("X", "y", "sample_weight")[: len(given)]
    first = [collection(v, n) for v, n in zip(given, names, strict=True)]
    options = {n: collection(v, n) for n, v in options.items()}
    fit(*first, **options)
    return model if name == "fit" else model.transform(options["X"] if "X" in options else first[0])
