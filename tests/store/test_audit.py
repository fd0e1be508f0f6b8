"""What a file holds: its classes, functions and arrays, each array once, told without asking the
model anything."""

import json
from hashlib import sha256

import numpy as np
import pytest

import mercer
from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.lifts import Basis
from mercer.store import audit, save

X = np.random.default_rng(0).normal(size=(30, 2))


def test_arrays_are_told_by_class_and_field(tmp_path):
    save(KernelRidge(Gaussian(), via="exact").fit(X, X[:, 0]), tmp_path / "m", kind="model")
    found = audit(tmp_path / "m")
    assert (found.kind, found.read_by) == ("model", mercer.__version__)
    assert found.sha256 == sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert found.bytes == (tmp_path / "m").stat().st_size
    assert found.classes["kernels.Gaussian"] >= 1
    assert [30, 2] in [a["shape"] for a in found.arrays]
    assert all(a["class"] in found.classes and a["field"] for a in found.arrays)
    assert json.loads(json.dumps(found.as_dict()))["id"] == found.id


def test_an_array_met_twice_is_told_once(tmp_path):
    save({"a": X, "b": [X, (X, {"c": X.astype(np.float32)})]}, tmp_path / "m")
    assert [(a["field"], a["dtype"], a["bytes"]) for a in audit(tmp_path / "m").arrays] == [
        ("a", "float64", 480),
        ("b[c]", "float32", 240),
    ]


def test_maps_are_told(tmp_path):
    save(Basis().fit(X), tmp_path / "m")
    assert "lifts.Basis" in audit(tmp_path / "m").classes


def test_what_cannot_be_loaded_is_a_sentence(tmp_path):
    (tmp_path / "m").write_bytes(b"no model")
    with pytest.raises(ValueError, match="cannot be loaded: it was not written by Mercer"):
        audit(tmp_path / "m")
