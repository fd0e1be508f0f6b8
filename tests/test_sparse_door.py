"""CSR rows are looked at once, where they come in: places that are not there are a sentence, never
a crash; odd ones are put in order."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

from mercer.inputs import Table, sound, table
from mercer.kernels import Gaussian, Linear
from tests.store.market import LABELS, MODELS, Y

DENSE = np.where(
    np.random.default_rng(0).uniform(size=(60, 3)) < 0.6,
    np.random.default_rng(1).normal(size=(60, 3)),
    0.0,
)


def unchecked(data, indices, indptr, shape, kind=sp.csr_matrix):
    """A matrix whose parts nobody looked at."""
    X = kind(shape)
    X.data, X.indices, X.indptr = data, indices, indptr
    X.has_canonical_format = X.has_sorted_indices = True  # a lie, in most cases
    return X


def parts(kind=sp.csr_matrix):
    X = kind(DENSE)
    return X.data.copy(), X.indices.copy(), X.indptr.copy()


def changed(what, value, at=5):
    data, indices, indptr = parts()
    {"indices": indices, "indptr": indptr}[what][at] = value
    return unchecked(data, indices, indptr, DENSE.shape)


HOSTILE = {
    "huge column": lambda: changed("indices", 10**9),
    "one too far": lambda: changed("indices", 3),
    "negative column": lambda: changed("indices", -40),
    "falling pointers": lambda: changed("indptr", 100),
    "negative pointer": lambda: changed("indptr", -5),
    "first pointer": lambda: changed("indptr", 1, at=0),
    "pointers beyond": lambda: changed("indptr", 10**6, at=-1),
    "few pointers": lambda: unchecked(*parts()[:2], parts()[2][:-1], DENSE.shape),
    "few columns": lambda: unchecked(parts()[0], parts()[1][:-1], parts()[2], DENSE.shape),
    "few values": lambda: unchecked(parts()[0][:-1], *parts()[1:], DENSE.shape),
    "real columns": lambda: unchecked(
        parts()[0], parts()[1].astype(float), parts()[2], DENSE.shape
    ),
    "csc": lambda: below(),
    "coo": lambda: aside(),
}


def below():
    data, indices, indptr = parts(sp.csc_matrix)
    return unchecked(data, indices + 60, indptr, DENSE.shape, sp.csc_matrix)


def aside():
    X = sp.coo_array(DENSE)
    X.coords = (X.coords[0], X.coords[1] + 10**6)
    return X


def shuffled():
    """Unsorted, with a value split in two, in 64 bits."""
    data, indices, indptr = parts()
    rows = [np.arange(a, b)[::-1] for a, b in pairwise(indptr)]
    rows[0] = np.append(rows[0], rows[0][:1])
    order = np.concatenate(rows)
    data = data[order]
    data[[0, len(rows[0]) - 1]] /= 2
    at = np.cumsum([0, *map(len, rows)])
    return unchecked(data, indices[order].astype(np.int64), at.astype(np.int64), DENSE.shape)


@pytest.mark.parametrize("name", HOSTILE)
def test_places_that_are_not_there_are_a_sentence(name):
    with pytest.raises(ValueError, match=r"^X is no sound sparse matrix: [^\n]+\.$"):
        table(HOSTILE[name]())
    with pytest.raises(ValueError, match="no sound sparse matrix"):
        Gaussian()(HOSTILE[name](), DENSE)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_odd_rows_are_put_in_order_in_a_copy(kind):
    X = kind(shuffled())
    before = [a.copy() for a in (X.data, X.indices, X.indptr)]
    out = sound(X)
    np.testing.assert_array_equal(out.toarray(), DENSE)
    assert type(out) is kind
    assert out.indices.dtype == out.indptr.dtype == np.int32
    assert out.has_canonical_format
    assert all(
        np.array_equal(a, b) for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True)
    )


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
def test_every_form_gives_the_same_rows(form):
    out = table(sp.csr_array(DENSE).asformat(form)).data
    assert out.format == "csr"
    np.testing.assert_array_equal(out.toarray(), DENSE)


def test_random_rows_come_through_as_they_are():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n, d, nnz = rng.integers(1, 8), rng.integers(1, 8), rng.integers(0, 30)
        indptr = np.sort(rng.integers(0, nnz + 1, n + 1))
        indptr[0], indptr[-1] = 0, nnz
        X = sp.csr_array((rng.normal(size=nnz), rng.integers(0, d, nnz), indptr), shape=(n, d))
        out = sound(X)
        np.testing.assert_allclose(out.toarray(), X.toarray(), atol=1e-15)
        assert sp.csr_array((out.data, out.indices, out.indptr), shape=(n, d)).has_canonical_format


@pytest.mark.parametrize("name", [n for n in MODELS if n.startswith("plain") and "NGrams" not in n])
def test_every_estimator_and_map_has_that_door(name):
    """Whether it takes CSR rows or not, bad ones get as far as no loop."""
    m = MODELS[name]
    made = abs if m.__sklearn_tags__().input_tags.positive_only else (lambda A: A)
    X = made(sp.csr_matrix(DENSE))
    y = LABELS if is_classifier(m) else Y
    for bad in ("huge column", "negative column", "falling pointers"):
        with pytest.raises((ValueError, TypeError), match=r"no sound sparse matrix|[Ss]parse"):
            clone(m).fit(HOSTILE[bad](), y)
    if not m.__sklearn_tags__().input_tags.sparse:
        return
    with warnings.catch_warnings(action="ignore"):
        good = clone(m).fit(X, y)
        for ask in [
            a
            for a in ("predict", "transform", "decision_function", "predict_proba")
            if hasattr(good, a)
        ]:
            with pytest.raises(ValueError, match="no sound sparse matrix"):
                getattr(good, ask)(HOSTILE["huge column"]())
            ours, theirs = (plainly(getattr(good, ask)(rows)) for rows in (X, made(shuffled())))
            same = (
                np.testing.assert_array_equal
                if ours.dtype.kind in "OU"
                else np.testing.assert_allclose
            )
            same(ours, theirs, **({} if ours.dtype.kind in "OU" else {"atol": 1e-9}))


def plainly(A):
    return A.toarray() if sp.issparse(A) else np.asarray(A)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_made_by_others_is_looked_at(name):
    """Kernels and maps take a table as it is."""
    with pytest.raises(ValueError, match="no sound sparse matrix"):
        Gaussian()(Table(HOSTILE[name]()))


def test_parts_of_a_table_are_not_looked_at_again(monkeypatch):
    t = Table(sp.csr_array(DENSE))
    monkeypatch.setattr("mercer.inputs.sound", lambda *a: pytest.fail("looked at twice"))
    np.testing.assert_array_equal(
        t[3:9][np.array([2, 0])].astype(np.float32).data.toarray(), DENSE[[5, 3]].astype(np.float32)
    )
    assert table(t) is t


def test_a_table_of_places_in_disorder_is_put_in_order():
    X = unchecked(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3]), (1, 3))
    np.testing.assert_array_equal(Linear()(Table(X)), [[20.0]])
    np.testing.assert_array_equal(X.indices, [2, 0, 2])
