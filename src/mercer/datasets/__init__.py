"""Small real tables that scikit-learn ships: nothing is downloaded, and each says where it comes
from."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table: the names of its columns, the rows, which column is the target, and the source.

    >>> table = diabetes()
    >>> table.name, table.target, len(table.columns)
    ('diabetes', 'progression', 11)
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    target: str
    source: str

    def write_csv(self, path: str | Path) -> Path:
        """The table as a csv file."""
        with Path(path).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        return Path(path)


def digits() -> Dataset:
    """1,797 handwritten digits as 8 x 8 counts of ink: ten classes that no linear rule tells apart
    completely.

    >>> table = digits()
    >>> len(table.rows), table.columns[0], table.columns[-1]
    (1797, 'row 0 column 0', 'digit')
    """
    names = [f"row {i} column {j}" for i in range(8) for j in range(8)]
    source = "Optical Recognition of Handwritten Digits, test set (Alpaydin and Kaynak, UCI, CC BY 4.0), as shipped with scikit-learn"
    return _table("digits", _loaded("load_digits"), names, "digit", source, int, int)


def diabetes() -> Dataset:
    """442 patients: ten measurements and the progression of their disease a year later.

    >>> diabetes().columns[:3], diabetes().rows[0][-1]
    (('age', 'sex', 'bmi'), 151.0)
    """
    blood = [
        "blood pressure",
        "total cholesterol",
        "LDL",
        "HDL",
        "cholesterol ratio",
        "log triglycerides",
        "blood sugar",
    ]
    names = ["age", "sex", "bmi", *blood]
    source = "Efron, Hastie, Johnstone and Tibshirani, Least Angle Regression (2004), as shipped with scikit-learn"
    return _table(
        "diabetes",
        _loaded("load_diabetes", scaled=False),
        names,
        "progression",
        source,
        float,
        float,
    )


def breast_cancer() -> Dataset:
    """569 tumours: thirty measurements of cell nuclei, and whether the tumour was malignant.

    >>> sorted({row[-1] for row in breast_cancer().rows})
    ['benign', 'malignant']
    """
    found = _loaded("load_breast_cancer")
    source = "Breast Cancer Wisconsin (Diagnostic) (Wolberg, Mangasarian, Street, UCI, CC BY 4.0), as shipped with scikit-learn"
    names = [str(name) for name in found.feature_names]
    return _table(
        "breast_cancer",
        found,
        names,
        "diagnosis",
        source,
        float,
        lambda code: str(found.target_names[code]),
    )


def _loaded(name: str, **options: Any) -> Any:
    from sklearn import datasets

    return getattr(datasets, name)(**options)


def _table(
    name: str,
    found: Any,
    names: list[str],
    target: str,
    source: str,
    cell: Callable[[Any], Any],
    label: Callable[[Any], Any],
) -> Dataset:
    X, y = np.asarray(found.data), np.asarray(found.target)
    rows = tuple(
        (*map(cell, row), label(value)) for row, value in zip(X.tolist(), y.tolist(), strict=True)
    )
    return Dataset(name, (*names, target), rows, target, source)


__all__ = ["Dataset", "breast_cancer", "diabetes", "digits"]
