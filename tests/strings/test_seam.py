"""Kernels of strings inside learners: the alphabet is learnt once, whatever container strings come
in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mercer import KernelRidge, KernelSVC
from mercer.kernels import Constant
from mercer.strings import Spectrum
from tests.strings.words import spectrum, strings

X = strings(0, 60, "abc", 12)
Y = np.array([x.count("ab") - x.count("c") for x in X], float)


@pytest.mark.parametrize("of", [
    list, tuple, np.array, lambda X: np.array(X, object), lambda X: np.array([x.encode() for x in X]),
    lambda X: [x.encode() for x in X], pd.Series, pa.array, lambda X: pa.chunked_array([X[:7], X[7:]]),
    lambda X: pd.Series(X, dtype="category"), lambda X: np.array(X, np.dtypes.StringDType()),
])  # fmt: skip
def test_every_container_of_strings(of):
    assert np.array_equal(Spectrum(2)(of(X)), spectrum(X, X, 2))
    m = KernelRidge(Spectrum(2)).fit(of(X), Y)
    assert np.array_equal(m.predict(of(X)), KernelRidge(Spectrum(2)).fit(X, Y).predict(X))


def test_the_alphabet_is_that_of_fit():
    m = KernelSVC(2.0 * Spectrum(2).normalized() + 1).fit(X, Y > 0)
    assert m.kernel_ == 2.0 * Spectrum(2, alphabet="abc").normalized() + 1
    assert np.isfinite(m.decision_function(["xyz", "abx"])).all()
    assert m.kernel == 2.0 * Spectrum(2).normalized() + 1  # as it was given


def test_a_call_learns_from_both_sides_and_keeps_nothing():
    k = Spectrum(1, unknown="raise")
    assert k(["a"], ["b", "a"]).tolist() == [[0.0, 1.0]]
    assert k.alphabet is None
    with pytest.raises(ValueError, match="'b' at place 0 of row 0"):
        k.set_params(alphabet="a")(["b"])


def test_readings_agree():
    k, Z = Spectrum(2), X[30:]
    K = spectrum(X, Z, 2)
    op = k.operator(X, Z)
    assert np.array_equal(op.block(), K)
    assert np.allclose(op @ np.ones(30), K.sum(1))
    assert np.array_equal(k.diag(X), np.diag(spectrum(X, X, 2)))
    assert np.array_equal(k.paired(X[:30], Z), np.diag(K[:30]))
    own = np.diag(spectrum(X, X, 2))
    assert np.allclose(k.distance(X, Z) ** 2, own[:, None] + own[30:] - 2 * K)
    assert (k + 1).gradient(X, np.ones((60, 60))).tolist() == [3600.0]
    assert np.array_equal((k * Constant())(X, Z), K)


def test_blocks_are_the_whole():
    many = strings(1, 700, "ACGT", 20)
    for k in (2, 9):
        K = Spectrum(k, alphabet="dna")(many)
        assert np.array_equal(K, spectrum(many, many, k))
        assert np.array_equal(K[:300, 100:], Spectrum(k, alphabet="dna")(many[:300], many[100:]))
