"""Files changed on purpose are refused in a sentence or answer within their arrays; see `tests.store.fuzz`."""
import numpy as np
import pytest

from mercer.store import encode, load, objects, save
from tests.store.corpus import TABLES, WAYS, models
from tests.store.fuzz import run, verdict, written
from tests.store.market import fitted

FEW = {
    "lift fused sketch", "lift columns", "lift sink", "lift splines", "plain Hermite", "plain KernelKMeans", "plain KernelSVC",
    "plain SoftNeighborsClassifier", "budget merging", "monomials of csr", "sparse projection", "ridge spread",
}  # fmt: skip


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
