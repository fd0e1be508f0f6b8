"""The contract of transformers of text, ours and a user's own."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.store import Saved, load

TEXTS = (
    "To be, or not to be: that is the question.",
    "",
    "to be",
    "Whether 'tis nobler in the mind to suffer",
    "ΟΔΟΣ straße İstanbul naïve cafe\u0301 中文\t\tx",
    "to be",
    "The slings and arrows\nof outrageous fortune",
)


def check_text_transformer(phi: Any, texts: Sequence[str] | None = None, y: Any = None) -> None:
    """Assert that phi maps documents to rows as it should; a failing law is named.

    A row depends on its document alone, a stream gives what a list does, rows are canonical CSR
    where they are sparse; clones, pickles and files give the same rows, and where there are
    `partial_fit` and `merge`, parts give what the whole does. What is no document is refused
    with its row.

    Parameters
    ----------
    phi : transformer
        One that takes documents, fitted or not.
    texts : list of str, default=None
        The documents to look at, four or more; None is seven.
    y : array-like of shape (n,), default=None
        Targets, where it learns from them; None is two classes by turns.

    Examples
    --------
    >>> from mercer.lifts import NGrams
    >>> check_text_transformer(NGrams(weight="tfidf"))
    """
    texts = list(TEXTS if texts is None else texts)
    y = np.arange(len(texts)) % 2 if y is None else np.asarray(y)
    fitted = clone(phi).fit(texts, y)
    _rows(fitted, texts)
    _again(phi, fitted, texts, y)
    _refused(fitted, texts)
    if hasattr(phi, "partial_fit"):
        _parts(phi, fitted, texts, y)


def _rows(fitted: Any, texts: list[str]) -> None:
    F = fitted.transform(texts)
    _say("there is a row for every document", F.shape[0] == len(texts))
    if sp.issparse(F):
        _say("rows are CSR", F.format == "csr")
        ends = F.indptr
        ascends = all((np.diff(F.indices[a:b]) > 0).all() for a, b in pairwise(ends))
        _say("the columns of a row ascend, none twice", ascends)
        _say(
            "columns are in range",
            not F.nnz or 0 <= F.indices.min() <= F.indices.max() < F.shape[1],
        )
    _say("rows are finite", np.isfinite(_dense(F)).all())
    _say("a stream gives what a list does", _same(fitted.transform(t for t in texts), F))
    _say("the order of documents is that of rows", _same(fitted.transform(texts[::-1])[::-1], F))
    for i, text in enumerate(texts):
        _say("a row depends on its document alone", _same(fitted.transform([text]), F[i : i + 1]))
    names = fitted.get_feature_names_out()
    _say("every column has a name", len(names) == F.shape[1])


def _again(phi: Any, fitted: Any, texts: list[str], y: Any) -> None:
    F = fitted.transform(texts)
    _say("fitting leaves parameters as they were", _equal_params(clone(phi), fitted))
    _say("fitting again gives the same rows", _same(clone(phi).fit(texts, y).transform(texts), F))
    _say("fit_transform gives the rows of fit", _same(clone(phi).fit_transform(texts, y), F))
    _say(
        "a pickle gives the same rows",
        _same(pickle.loads(pickle.dumps(fitted)).transform(texts), F),
    )
    if isinstance(fitted, Saved):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mercer"
            fitted.save(path)
            _say("a file gives the same rows", _same(load(path).transform(texts), F))


def _parts(phi: Any, fitted: Any, texts: list[str], y: Any) -> None:
    F, half = fitted.transform(texts), len(texts) // 2
    first, second = slice(0, half), slice(half, len(texts))
    stream = clone(phi)
    for rows in (first, second):
        stream.partial_fit(texts[rows], y[rows])
    _say("documents in parts teach what all together do", _same(stream.transform(texts), F))
    if hasattr(phi, "merge"):
        a, b = (clone(phi).partial_fit(texts[rows], y[rows]) for rows in (first, second))
        _say("parts merge to the whole", _same(a.merge(b).transform(texts), F))


def _refused(fitted: Any, texts: list[str]) -> None:
    for bad in (None, 3.5, float("nan")):
        said = _said(fitted, [*texts, bad])
        _say(f"{bad!r} among documents is refused with its row", said and str(len(texts)) in said)
    _say("one text instead of a list is refused", _said(fitted, texts[0]))


def _said(fitted: Any, texts: Any) -> str:
    try:
        fitted.transform(texts)
    except ValueError as e:
        return str(e)
    return ""


def _equal_params(a: Any, b: Any) -> bool:
    return repr(a.get_params(deep=False)) == repr(b.get_params(deep=False))


def _dense(F: Any) -> Any:
    return F.data if sp.issparse(F) else np.asarray(F)


def _same(F: Any, G: Any) -> bool:
    """Whether two results are equal, number by number."""
    if sp.issparse(F) != sp.issparse(G) or F.shape != G.shape:
        return False
    if sp.issparse(F):
        F, G = F.sorted_indices(), G.sorted_indices()
        return all(
            np.array_equal(getattr(F, k), getattr(G, k)) for k in ("indptr", "indices", "data")
        )
    return np.array_equal(np.asarray(F), np.asarray(G))


def _say(law: str, ok: Any) -> None:
    if not ok:
        raise AssertionError(f"the law does not hold: {law}")
