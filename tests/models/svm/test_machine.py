"""Fitted machines: parts that fit, scores, and what fewer support vectors lose."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.svm.classifier import KernelSVC
from mercer.models.svm.machine import project


def test_a_projection_with_all_vectors_loses_nothing_and_fewer_lose_more():
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(80, 2)), rng.normal(size=(2, 80))
    losses = []
    for m in (80, 40, 10):
        keep, new, error = project(Gaussian(0.5), Table(X), coef, m, 0)
        assert len(keep) <= m
        f, g = coef @ Gaussian(0.5)(X), new @ Gaussian(0.5)(X[keep], X)
        square = np.einsum("ij,ij->i", f, coef)
        measured = (
            square - 2 * np.einsum("ij,ij->i", g, coef) + np.einsum("ij,ij->i", g[:, keep], new)
        )
        assert error == pytest.approx(np.sqrt(np.max(np.maximum(measured, 0) / square)), abs=1e-3)
        losses.append(error)
    assert losses[0] < 1e-2
    assert losses[0] < losses[1] < losses[2] < 1


@pytest.fixture
def machine():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return KernelSVC(Gaussian()).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])).machine_


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: dict(counts=m.counts + 1), "counts"),
        (lambda m: dict(intercept=m.intercept[:2]), "2 intercepts for 3 classes"),
        (lambda m: dict(kernel="precomputed"), "without"),
        (lambda m: dict(vectors=None), "without"),
        (lambda m: dict(multiclass="ovr"), "intercepts for 3 classes"),
        (lambda m: dict(multiclass=""), "of one score"),
    ],
)
def test_parts_that_do_not_fit_are_told(machine, change, said):
    assert machine._laws() is None
    assert said in replace(machine, **change(machine))._laws()


def test_a_machine_knows_the_columns_that_it_takes(machine):
    assert machine.misfit(2) is None
    assert "not of 3 columns" in machine.misfit(3)


def test_scores_by_class_are_those_of_every_pair(machine):
    X = Table(np.random.default_rng(1).normal(size=(20, 2)))
    assert machine.by_class
    pairs = replace(machine, coef=machine.functions)
    assert not pairs.by_class
    np.testing.assert_allclose(machine.raw(X), pairs.raw(X), atol=1e-12)
    np.testing.assert_array_equal(machine.decide(X).argmax(1), pairs.decide(X).argmax(1))


def test_what_cannot_be_compressed_says_why():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    with pytest.raises(ValueError, match="over features has none"):
        KernelSVC(via="features", random_state=0).fit(X, y).compress(5)
    with pytest.raises(ValueError, match="does not have the values"):
        KernelSVC("precomputed").fit(Gaussian()(X), y).compress(5)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


@pytest.mark.parametrize(("classes", "multiclass"), [(2, "auto"), (3, "ovo"), (3, "ovr")])
def test_fewer_support_vectors_at_a_measured_cost(classes, multiclass):
    X, y = data(600, d=2, classes=classes)
    m = KernelSVC(Gaussian(1.0), via="exact", multiclass=multiclass).fit(X, y)
    small = m.compress(40, X)
    cost = small.compression_
    assert (len(small.support_), small.n_support_.sum(), cost.before) == (40, 40, len(m.support_))
    before, after = m._raw(X), small._raw(X)
    assert cost.rms == pytest.approx(np.sqrt(np.mean((before - after) ** 2)), rel=1e-3, abs=1e-6)
    assert cost.changed == np.mean(m.predict(X) != small.predict(X))
    assert cost.changed < 0.02
    assert m.compress(5, X).compression_.error > cost.error
    assert len(m.support_) > 40  # the model itself is as it was
    assert f"40 of {len(m.support_)} support vectors" in str(cost)
