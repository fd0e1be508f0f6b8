"""The block scan is the row-by-row reference, for every policy, in blocks of any cut."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.models.perceptron.budget import Scanner, UpdateRule
from mercer.models.perceptron.kernel_scan import TableSource
from mercer.ops import budget as ops
from mercer.ops.budget_reference import Reference
from mercer.ops.philox import Stream, uniforms

POLICIES = ["UNLIMITED", "RANDOM", "OLDEST", "FORGETRON", "PROJECTRON", "PLUS", "MERGING"]


def rows(classes, n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    at = (
        np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], [-0.4, 0.4])
        if classes == 3
        else (X[:, 0] * X[:, 1] > 0).astype(int)
    )
    return X, at if classes == 3 else 2 * at - 1


def scanned(kernel, X, labels, classes, rule, cuts=()):
    parts = np.split(np.arange(len(X)), cuts)
    s = Scanner.start(rule, classes, TableSource(kernel, Table(X)), Stream(7))
    wrong = [s.scan(TableSource(kernel, Table(X[p])), labels[p]) for p in parts]
    return s, np.concatenate(wrong)


@pytest.mark.parametrize("margin", [0.0, 0.6])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_are_row_after_row(policy, classes, margin):
    X, labels = rows(classes)
    code, k = getattr(ops, policy), 1.7 * Gaussian(0.8)
    margin = margin or float(policy == "PLUS")
    rule = UpdateRule(code, 12, eta=0.3, margin=margin)
    plain = Reference(
        lambda A, B: k(A, B) if len(B) else np.zeros((len(A), 0)),
        1 if classes == 2 else 3,
        3,
        code,
        12,
        0.3,
        margin,
    )
    draws = uniforms(Stream(7), 0, len(X), 1)[:, 0]
    expected = np.array(
        [plain.take(x, int(y), d) for x, y, d in zip(X, labels, draws, strict=True)]
    )
    s, wrong = scanned(k, X, labels, classes, rule)
    assert 20 < expected.sum() < 140
    np.testing.assert_array_equal(wrong, expected)
    tolerance = dict(rtol=1e-3, atol=2e-4) if policy == "MERGING" else dict(rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(s.weights, plain.A, **tolerance)
    np.testing.assert_allclose(s.mean, plain.mean, **tolerance)
    np.testing.assert_allclose(s.points.data, plain.P, **tolerance)
    assert s.count(ops.MISTAKES) == plain.mistakes
    assert (s.count(ops.SIZE) <= 12) == (policy != "UNLIMITED")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_cut_into_batches_changes_nothing(policy):
    X, labels = rows(2, 300)
    rule = UpdateRule(getattr(ops, policy), 15, margin=0.5, power=2.0)
    a, wrong = scanned(Gaussian(), X, labels, 2, rule)
    b, again = scanned(Gaussian(), X, labels, 2, rule, cuts=(1, 2, 40, 170))
    np.testing.assert_array_equal(wrong, again)
    np.testing.assert_allclose(a.points.data, b.points.data, atol=1e-6)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-6)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-6)


def test_whole_numbers_agree_to_the_last_bit():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(400, 4)).astype(float)
    labels = np.where(X @ [1, -1, 2, 0] + rng.integers(-1, 2, 400) > 0, 1, -1)
    plain = Reference(lambda A, B: A @ B.T + 1, 1, 4, ops.UNLIMITED, 0, 0.1, 0.0)
    expected = [plain.take(x, int(y), 0.5) for x, y in zip(X, labels, strict=True)]
    s, wrong = scanned(Linear() + 1, X, labels, 2, UpdateRule())
    np.testing.assert_array_equal(wrong, expected)
    np.testing.assert_array_equal(s.weights, plain.A)
    np.testing.assert_array_equal(s.points.data, plain.P)


def test_a_mean_with_power_favours_late_hypotheses():
    X, labels = rows(2, 50)
    s, history = (
        Scanner.start(UpdateRule(power=2.0), 2, TableSource(Gaussian(), Table(X)), Stream(7)),
        [],
    )
    for i in range(50):
        s.scan(TableSource(Gaussian(), Table(X[i : i + 1])), labels[i : i + 1])
        history.append(s.weights[0].copy())
    t = np.arange(1, 51.0)
    weights = (t**3 - (t - 1) ** 3) / 50**3
    n = len(history[-1])
    expected = sum(w * np.pad(a, (0, n - len(a))) for w, a in zip(weights, history, strict=True))
    np.testing.assert_allclose(s.mean[0], expected, atol=1e-12)


def test_the_projection_is_the_nearest_function_of_the_span():
    X, labels = rows(2, 80)
    k, before = Gaussian(1.5), None
    s = Scanner.start(UpdateRule(ops.PROJECTRON, 6), 2, TableSource(k, Table(X)), Stream(0))
    for i in range(80):
        before, size = s.weights.copy(), s.count(ops.REDUCED)
        s.scan(TableSource(k, Table(X[i : i + 1])), labels[i : i + 1])
        if s.count(ops.REDUCED) > size:
            P = s.points.data
            d = (s.weights - before)[0] * labels[i]
            np.testing.assert_allclose(
                k(P) @ d, k(P, X[[i]])[:, 0], atol=1e-7
            )  # the rest is orthogonal to every point
    assert s.count(ops.REDUCED) > 10
