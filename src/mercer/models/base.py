"""What estimators share: rows, targets and weights checked by scikit-learn's rules, and calls that
change all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_X_y

from mercer.engines.lazy import LazyColumns, dask_among, learnt, take_dask
from mercer.inputs import Array, Items, Matrix, Table, sample_weights, table, validate_data
from mercer.invariants import Labels, Whole, check
from mercer.kernels import Kernel
from mercer.kernels.defaults import check_domain, check_paths, is_precomputed, takes_positive
from mercer.logs import telling
from mercer.models.settings import Gamma, KernelSetting, LiftSetting, number, takes_text
from mercer.store import Saved
from mercer.tensors import beside, take_tensors

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")


# what the look at rows writes to an estimator, before its fit has found anything
COLUMNS = ("n_features_in_", "feature_names_in_", "_of_items")


def all_or_nothing(method: F) -> F:
    """A call that fails, or is refused, leaves the model as it was.

    `method` computes everything and assigns it at its end; only what scikit-learn's validation
    notes of the columns comes before, and is put back. Its progress is told where `verbose` is set.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if public and (found := dask_among(args, options)) is not None:
            return learnt(self, method.__name__, found, *args, **options)
        before = {name: vars(self)[name] for name in COLUMNS if name in vars(self)}
        try:
            with telling(getattr(self, "verbose", False)), beside(*args, *options.values()):
                return method(self, *args, **options)
        except BaseException:
            for name in COLUMNS:
                if name in before:
                    setattr(self, name, before[name])
                elif name in vars(self):
                    delattr(self, name)
            raise

    public = not method.__name__.startswith("_")
    call.takes_dask = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class KernelEstimator(Saved, BaseEstimator):
    """An estimator with a kernel, or "precomputed", or a lift instead of one: which rows it takes
    follows from these settings."""

    kernel: KernelSetting
    lift: LiftSetting = None
    gamma: Gamma = None  # as in files of before there were these
    degree: int | None = None
    coef0: float | None = None
    n_features_in_: int
    _of_items: bool = False  # whether rows are items instead of numbers

    must = dict(
        n_features_in_=Whole(1), feature_names_in_=Labels("n_features_in_"), classes_=Labels("K")
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_dask(cls)
        take_tensors(cls, "score")

    @property
    def _precomputed(self) -> bool:
        """Whether X is a kernel matrix: (n, n) in `fit`, (m, n) afterwards."""
        return is_precomputed(self.kernel)

    def _takes_sparse(self, kernel: KernelSetting = None) -> bool:
        meant = self.kernel if kernel is None else kernel
        return (
            not is_precomputed(meant)
            if self.lift is None
            else bool(getattr(self.lift, "sparse", False))
        )

    def _rows(self, X: Any, *, reset: bool, kernel: KernelSetting = None) -> Table:
        """Rows as a table with the names of its columns: numbers, or the items that the kernel
        reads.

        They are read as the settings say, or as a fitted `kernel` does, whatever was set since; a
        kernel matrix of `fit` must be square.
        """
        self._refuse_map()
        items = self._listed(X, reset, kernel)
        if items is not None:
            return Table(items)
        X = validate_data(self, X, reset=reset, **self._numbers(kernel))
        return self._named(X, reset, kernel)

    def _rows_and_targets(
        self, X: Any, y: Any, *, reset: bool, kernel: KernelSetting = None, **options: Any
    ) -> tuple[Table, Array]:
        """Rows and their targets."""
        self._refuse_map()
        items = self._listed(X, reset, kernel)
        if items is not None:
            return Table(items), check_X_y(np.zeros((len(items), 1)), y, **options)[1]
        X, y = validate_data(self, X, y, reset=reset, **self._numbers(kernel), **options)
        return self._named(X, reset, kernel), y

    def _refuse_map(self) -> None:
        """A map of rows where the kernel belongs."""
        given: Any = self.kernel
        if isinstance(given, Kernel) or not hasattr(given, "transform"):
            return
        shown = type(given).__name__ if isinstance(given, type) else repr(given)
        remedy = (
            "give it as lift="
            if "lift" in self.get_params(deep=False)
            else f"{type(self).__name__} takes no lift=, so put it before the model in a pipeline"
        )
        raise ValueError(f"kernel must be a kernel, got {shown}, which maps rows; {remedy}.")

    def _numbers(self, kernel: KernelSetting = None) -> dict[str, Any]:
        return dict(
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if self._takes_sparse(kernel) else False,
            order="C",
        )

    def _listed(self, X: Any, reset: bool, kernel: KernelSetting = None) -> Items | None:
        if self.lift is None:
            items = items_of(self.kernel if kernel is None else kernel, X)
        else:
            items = Items(documents_of(X)) if takes_text(self.lift) else None
        if reset:
            self._of_items = items is not None
        if self._of_items != (items is not None):
            told = ("numbers", "items") if items is not None else ("items", "numbers")
            raise ValueError(
                f"the model is of rows of {told[0]}, but X lists {told[1]}; give what fit was given, or fit anew."
            )
        if items is not None and reset:
            if hasattr(self, "feature_names_in_"):  # of a fit before, to rows of numbers
                del self.feature_names_in_
            self.n_features_in_ = 1
        return items

    def _named(self, X: Matrix, reset: bool, kernel: KernelSetting = None) -> Table:
        """Numbers with the names of their columns, for which the kernel is meant; a kernel matrix
        of `fit` must be square."""
        if reset and self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be a square Gram matrix with kernel='precomputed', got shape {X.shape}."
            )
        names = getattr(self, "feature_names_in_", None)
        rows = Table.looked_at(X, None if names is None else tuple(names))
        if self.lift is None:
            check_domain(self.kernel if kernel is None else kernel, rows)
        return rows

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the kernel by path, as `kernel__bandwidth`."""
        check_paths(self, params)
        return super().set_params(**params)

    def _weights(self, sample_weight: Any, rows: Table) -> Array | None:
        if sample_weight is None:
            return None
        X = np.empty((len(rows), 1)) if rows.items else rows.data
        return sample_weights(sample_weight, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = self._precomputed
        if takes_text(self.lift):
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.input_tags.positive_only = self.lift is None and takes_positive(self.kernel)
        return tags


def note_columns(model: Any, X: Any) -> None:
    """What scikit-learn notes of the columns of `fit`, from the metadata of a dask collection."""
    texts = takes_text(model.lift)
    columns = LazyColumns.of(X, texts=texts)
    model.n_features_in_, model._of_items = columns.width, texts
    vars(model).pop("feature_names_in_", None)
    if columns.names is not None:
        model.feature_names_in_ = np.asarray(columns.names, object)


def fields_alone(value: Any) -> dict[str, Any]:
    """What pickle takes of a fitted value: its fields, not what was computed from them."""
    return {f.name: getattr(value, f.name) for f in fields(value)}


def part(value: object, name: str, what: str) -> Any:
    """A part of a fitted value that not every way has, or has not always; AttributeError where
    there is none, so that `hasattr` works."""
    if (found := getattr(value, name, None)) is None:
        raise AttributeError(what)
    return found


def parted(state: dict[str, Any], *names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a file of before, less these; and these, None where the file has not.

    >>> parted({"a": 1, "b": 2}, "b", "c")
    ({'a': 1}, {'b': 2, 'c': None})
    """
    return {name: v for name, v in state.items() if name not in names}, {
        name: state.get(name) for name in names
    }


def checked(value: V) -> V:
    """A fitted value made of what a file of before held, looked at."""
    check(value)
    return value


def check_finite(values: float | Array, what: str = "kernel values") -> None:
    """Refuse sums that overflowed."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"{what} of X are too large for sums of floating-point numbers; scale the columns first."
        )


def items_of(kernel: KernelSetting, X: Any) -> Items | None:
    """The items that X lists, where the kernel reads such; None where X is a table of numbers, or
    the kernel wants one.

    >>> from mercer.kernels import Constant, Gaussian
    >>> items_of(Constant(), ["ab", "c"]).values, items_of(Constant(), [[1.0]]), items_of(Gaussian(), ["ab"])
    (['ab', 'c'], None, None)
    """
    if isinstance(X, Items) or not (isinstance(kernel, Kernel) and kernel.takes_items):
        return X if isinstance(X, Items) else None
    rows = table(X, items=True, finite=False)
    return Items(rows.data) if rows.items else None


def documents_of(X: Any) -> list[Any]:
    """Texts as a list: of a list or generator, or of one column of any kind.

    >>> documents_of(np.array(["a b", "c"], object)), documents_of(t for t in ["a"])
    (['a b', 'c'], ['a'])
    """
    what = "a frame" if hasattr(X, "columns") else f"{getattr(X, 'ndim', 1)} dimensions"
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        what = "one text" if isinstance(X, str | bytes) else type(X).__name__
    elif what == "1 dimensions":
        found = list(X.to_pylist() if hasattr(X, "to_pylist") else X)
        if not found:
            raise ValueError("X has 0 texts (Found array with 0 sample(s)); give at least one.")
        return found
    raise ValueError(
        f"X must be a list of texts, or one column of them, as the lift reads texts, got {what}; give such a list."
    )


def bytes_of(limit: object, name: str = "memory_limit") -> float:
    """A memory limit in bytes: a number, or text such as "4GB"; None is 1 GB.

    >>> bytes_of("4GB")
    4000000000.0
    """
    if limit is None:
        return 1e9
    found = _parsed(limit) if isinstance(limit, str) else limit
    if not isinstance(found, bool) and (bytes_ := number(found)) is not None and bytes_ > 0:
        return bytes_
    raise ValueError(f"{name} must be a number of bytes or text such as '4GB', got {limit!r}.")


def _parsed(limit: str) -> float | None:
    text = limit.strip().upper().removesuffix("B")
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:], 1.0)
    try:
        return float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        return None
