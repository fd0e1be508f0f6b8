"""Real data for benchmarks, read from the folder $MERCER_DATA or from ../shared/data; nothing is
downloaded."""

import bz2
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
OPEN: dict[str, Callable[[Path], IO[bytes]]] = {".xz": lzma.open, ".bz2": bz2.open}


class DataMissing(FileNotFoundError):
    """The data folder, or a file in it, is not there."""


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def standardized(self, target: bool = False) -> "Split":
        """Columns (and y, if asked) with mean 0 and deviation 1 on the training rows."""
        X, X_test = _standardized(self.X, self.X_test)
        y, y_test = _standardized(self.y, self.y_test) if target else (self.y, self.y_test)
        return Split(X, y, X_test, y_test)


def _standardized(train: Array, test: Array) -> tuple[Array, Array]:
    """Both about the mean of train, in its deviations; a constant column is only shifted."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    scale = np.where(std > 0, std, 1)
    return (train - mean) / scale, (test - mean) / scale


def path(name: str) -> Path:
    """Where a file of the data folder is, as in `path("libsvm/a9a.xz")`."""
    folder = Path(os.environ.get("MERCER_DATA") or BESIDE)
    if not folder.is_dir():
        raise DataMissing(
            "The benchmark data is not here: set MERCER_DATA to its folder, or put it in ../shared/data."
        )
    if not (folder / name).exists():
        raise DataMissing(
            f"The benchmark data has no {name}: check the folder that MERCER_DATA names."
        )
    return folder / name


def libsvm(name: str, n_features: int | None = None, dense: bool = False) -> tuple[Any, Array]:
    """X (float32; CSR with int32 indices, or dense) and y of a compressed file in `libsvm/`, as in
    `libsvm("a9a.xz")`.

    Give `n_features` to a test file, whose last columns may all be zero.
    """
    from sklearn.datasets import load_svmlight_file

    file = path(f"libsvm/{name}")
    with OPEN[file.suffix](file) as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, dtype=np.float32)
    return (X.toarray() if dense else _int32(X)), y


def _int32(X: sp.csr_matrix) -> sp.csr_matrix:
    """The same matrix with 32-bit indices: scikit-learn's SVC refuses the 64-bit ones that its own
    loader makes."""
    return sp.csr_matrix(
        (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
    )


def cod_rna() -> tuple[Array, Array]:
    """X (59535, 8) in float32, not standardised, and y in {-1, 1}."""
    with lzma.open(path("libsvm/cod-rna.txt.xz")) as stream:
        table = np.loadtxt(stream, dtype=np.float32)
    return table[:, 1:], table[:, 0]


def uci_cv(name: str, split: int = 0) -> Split:
    """Split 0 to 9 of "kin40k", "pol" or "elevators", in raw units."""
    table = np.loadtxt(path(f"uci_cv/{name}/data.csv.gz"), delimiter=",")
    test = np.loadtxt(path(f"uci_cv/{name}/test_mask.csv.gz"), delimiter=",", usecols=split) == 1
    X, y = table[:, :-1], table[:, -1]
    return Split(X[~test], y[~test], X[test], y[test])


def table(name: str) -> Any:
    """A pandas dataframe of a file in `tables/`, as in `table("adult.tsv.gz")`."""
    import pandas as pd

    return pd.read_csv(path(f"tables/{name}"), sep="\t" if ".tsv" in name else ",")
