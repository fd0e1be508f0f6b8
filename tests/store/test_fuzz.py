"""Files changed on purpose are refused in a sentence or answer within their arrays; see
`tests.store.fuzz`."""

import numpy as np
import pytest

from mercer.store import encode, load, objects, save
from tests.store.corpus import TABLES, WAYS, Y, asked, models
from tests.store.fuzz import run, verdict, written
from tests.store.market import fitted

FEW = {
    "lift fused sketch",
    "lift columns",
    "lift sink",
    "lift splines",
    "plain Hermite",
    "plain KernelKMeans",
    "plain KernelSVC",
    "plain SoftNeighborsClassifier",
    "budget merging",
    "monomials of csr",
    "sparse projection",
    "ridge spread",
}


@pytest.mark.parametrize("name", [*WAYS, *TABLES])
def test_every_model_of_the_corpus_is_saved_and_loaded(name, tmp_path):
    """Those of the market are in `test_models`."""
    ((_, model),) = models({name})
    save(model, tmp_path / "m")
    assert repr(load(tmp_path / "m")) == repr(model)


def test_a_hundred_changed_files():
    found, failed = run(100, seed=7, bounds=False, names=FEW)
    assert failed == []
    assert sum(found.values()) == 100
    assert found["refused"] > 30
    assert found["answered"] > 10


RIDGES = (
    "ridge exact",
    "ridge of a gram",
    "ridge weighted",
    "ridge of a weighted gram",
    "ridge given folds",
    "ridge of two",
    "ridge falkon",
    "ridge exact of csr",
    "ridge folds",
)


def others(a):
    """An array in other shapes, and, where it holds places, with one that is the first outside."""
    yield from (np.delete(a, -1, axis) for axis in range(a.ndim) if a.shape[axis])
    yield from (np.repeat(a, 2, axis) for axis in range(a.ndim))
    yield from (a.ravel(), a[None], a[:0], np.atleast_2d(a).T) if a.ndim else ()
    if a.dtype.kind == "i" and a.size:
        yield np.where(np.arange(a.size).reshape(a.shape) == a.argmax(), len(Y), a)


@pytest.mark.parametrize("name", RIDGES)
def test_the_rows_targets_and_coefficients_of_a_ridge_have_one_size(name, tmp_path):
    """Each array alone in another shape is refused, or nothing that is asked reads beyond it."""
    ((_, model),) = models({name})
    tree, arrays = encode(model)
    said = []
    for i, a in enumerate(arrays):
        for other in others(np.asarray(a)):
            if other.shape != a.shape or not np.array_equal(other, a):
                written(
                    tmp_path / "m",
                    tree,
                    [*arrays[:i], np.ascontiguousarray(other), *arrays[i + 1 :]],
                )
                said.append(
                    (i, a.shape, other.shape, verdict(tmp_path / "m", lambda m: asked(name, m)))
                )
    assert [v for v in said if v[-1].startswith("FAIL")] == []
    assert sum(v[-1] == "refused" for v in said) > 0.4 * len(
        said
    )  # what the user gave, such as folds, only `fit` reads


def test_a_gaussian_process_of_no_outputs_is_refused(tmp_path):
    """Mean and unit gone together, so that they agree with each other and not with the targets."""
    ((_, model),) = models({"gp exact"})
    tree, arrays = encode(model)
    written(tmp_path / "m", tree, [a[:0] if a.shape == (1,) else a for a in arrays])
    assert verdict(tmp_path / "m", lambda m: None, far=True) == "refused"


@pytest.mark.long
def test_two_thousand_changed_files_with_every_bound_checked():
    """In a fresh cache: loops that were compiled before were compiled without the check."""
    found, failed = run(2000, seed=8)
    assert failed == []
    assert sum(found.values()) == 2000


def test_a_place_that_is_let_through_would_show(tmp_path, monkeypatch):
    tree, arrays = encode(fitted("lift fused sketch"))
    i = next(i for i, a in enumerate(arrays) if a.dtype == np.int64)
    arrays[i] = arrays[i] - 10**6
    written(tmp_path / "m", tree, arrays)
    assert verdict(tmp_path / "m", lambda m: None, far=True) == "refused"
    monkeypatch.setattr(objects, "check", lambda obj: None)
    monkeypatch.setattr("mercer.ops.monomials.check", lambda obj: None)
    monkeypatch.setattr("mercer.ops.sketches.check", lambda obj: None)
    assert verdict(tmp_path / "m", lambda m: None, far=True).startswith("FAIL")
    assert verdict(tmp_path / "m", lambda m: [][1]).startswith("FAIL IndexError")
