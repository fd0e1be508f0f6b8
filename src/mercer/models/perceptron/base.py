"""What both perceptrons share: a fitted scan seen through attributes."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array
from mercer.models.base import KernelEstimator, part
from mercer.plans import Plan


class Scan(Protocol):
    """What a scan tells of itself, over features or over points."""

    @property
    def plan(self) -> Plan | None: ...

    @property
    def steps(self) -> int:
        """Passes."""

    @property
    def mistakes(self) -> int: ...

    @property
    def counts(self) -> Array | None:
        """How often each row of one `fit` was a mistake."""

    @property
    def converged(self) -> bool | None: ...


S = TypeVar("S", bound=Scan)


class ScanEstimator(ClassifierMixin, KernelEstimator, Generic[S]):
    """A classifier that holds one scan: `scan_`."""

    scan_: S
    classes_: Array

    def __sklearn_is_fitted__(self) -> bool:
        return "scan_" in vars(self)

    def _scan(self) -> S:
        check_is_fitted(self)
        return self.scan_

    @property
    def plan_(self) -> Plan:
        return part(self._scan(), "plan", "the scan has no plan.")

    @property
    def n_iter_(self) -> int:
        return self._scan().steps

    @property
    def counts_(self) -> Array:
        """How often each row of `fit` was a mistake."""
        return part(
            self._scan(), "counts", "counts_ are those of the rows of one `fit`; a stream has none."
        )

    @property
    def converged_(self) -> bool:
        """Whether the last pass of `fit` made no mistake."""
        return part(
            self._scan(),
            "converged",
            "converged_ is said of the passes of one `fit`; a stream has none.",
        )

    @property
    def mistakes_(self) -> int:
        """Mistakes made so far, in all passes."""
        return self._scan().mistakes


def misfit(scan: str, reads: int | None, takes: int, scores: int, classes: int) -> str | None:
    """Why a scan of so many scores, over `reads` columns, is none of these classes, of rows of
    `takes` columns."""
    if (classes if classes > 2 else 1) != scores or classes < 2:
        return f"has weights of {scores} scores for {classes} classes"
    return (
        None
        if reads in (None, takes)
        else f"has {scan} {reads} columns, which are not those that it takes"
    )
