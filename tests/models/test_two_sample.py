"""MMD and HSIC: statistics as by hand, levels under the null over seeds, power, and p-values that
are never zero."""

import numpy as np
import pandas as pd
import pytest

from mercer.kernels import Gaussian, Laplace, Linear
from mercer.models import two_sample as discrepancy
from mercer.models.two_sample import TestResult, hsic_test, mmd_test


def samples(seed, n=30, m=25, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d))


def test_mmd_by_hand():
    X, Y = samples(0)
    k, off = Gaussian(1.5), lambda K: (K.sum() - np.trace(K)) / (len(K) * (len(K) - 1))
    biased = k(X).mean() + k(Y).mean() - 2 * k(X, Y).mean()
    assert mmd_test(X, Y, k, n_permutations=5, unbiased=False).statistic == pytest.approx(biased)
    assert mmd_test(X, Y, k, n_permutations=5).statistic == pytest.approx(
        off(k(X)) + off(k(Y)) - 2 * k(X, Y).mean()
    )
    mean = X.mean(0) - Y.mean(0)
    assert mmd_test(X, Y, Linear(), n_permutations=5, unbiased=False).statistic == pytest.approx(
        mean @ mean
    )


def test_hsic_by_hand():
    X, Y = samples(0, 20, 20)
    K, L, H = Gaussian(1.5)(X), Laplace(2.0)(Y), np.eye(20) - 1 / 20
    found = hsic_test(X, Y, Gaussian(1.5), Laplace(2.0), n_permutations=5)
    assert found.statistic == pytest.approx(np.trace(K @ H @ L @ H) / 400)
    Ko, Lo = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    u = (np.trace(Ko @ Lo) + Ko.sum() * Lo.sum() / (19 * 18) - 2 / 18 * (Ko @ Lo).sum()) / (20 * 17)
    assert hsic_test(
        X, Y, Gaussian(1.5), Laplace(2.0), n_permutations=5, unbiased=True
    ).statistic == pytest.approx(u)


def test_unbiased_statistics_have_mean_zero_under_the_null():
    mmd = [mmd_test(*samples(seed), Gaussian(), n_permutations=1).statistic for seed in range(200)]
    hsic = [
        hsic_test(
            *samples(seed, 25, 25), Gaussian(), Gaussian(), n_permutations=1, unbiased=True
        ).statistic
        for seed in range(200)
    ]
    for values in (mmd, hsic):
        assert abs(np.mean(values)) < 3.5 * np.std(values) / 200**0.5


@pytest.mark.parametrize("test", [mmd_test, hsic_test])
@pytest.mark.parametrize("unbiased", [True, False])
def test_the_level_is_kept(test, unbiased):
    p = [
        test(*samples(seed, 25, 25), n_permutations=39, unbiased=unbiased, random_state=seed).pvalue
        for seed in range(200)
    ]
    for level in (0.05, 0.25, 0.5):
        assert abs(np.mean(np.array(p) <= level) - level) < 4 * (level * (1 - level) / 200) ** 0.5


def test_power():
    found = [
        mmd_test(X, 2.5 * Y, n_permutations=99, random_state=0).pvalue
        for X, Y in map(samples, range(10))
    ]
    assert np.mean(np.array(found) <= 0.05) >= 0.8
    pairs = [
        (X[:, :1], X[:, :1] ** 2 + 0.1 * Y[:, :1])
        for X, Y in (samples(seed, 40, 40) for seed in range(10))
    ]
    found = [hsic_test(X, Y, n_permutations=99, random_state=0).pvalue for X, Y in pairs]
    assert np.mean(np.array(found) <= 0.05) >= 0.8


def test_p_values_count_the_statistic_itself():
    assert TestResult.of(np.array([3.0, 1.0, 2.0, 3.0])).pvalue == 0.5
    assert TestResult.of(np.array([3.0, 1.0, 2.0, 2.5])).pvalue == 0.25
    X, Y = samples(0)
    assert mmd_test(X, Y + 9, n_permutations=19, random_state=0).pvalue == 0.05
    same = mmd_test(np.ones((5, 1)), np.ones((6, 1)), n_permutations=9)
    assert (same.statistic, same.pvalue) == (pytest.approx(0, abs=1e-12), 1)


def test_chunks_and_seeds(monkeypatch):
    X, Y = samples(0)
    whole = mmd_test(X, Y, n_permutations=50, random_state=3)
    monkeypatch.setattr(discrepancy, "COLUMNS", 7)
    np.testing.assert_allclose(
        mmd_test(X, Y, n_permutations=50, random_state=3).null, whole.null, atol=1e-12
    )
    assert not np.array_equal(mmd_test(X, Y, n_permutations=50, random_state=4).null, whole.null)


def test_factors_stand_for_large_matrices(monkeypatch):
    X, Y = samples(0, 60, 60)
    whole = [hsic_test(X, Y, n_permutations=20, random_state=0, unbiased=u) for u in (True, False)]
    monkeypatch.setattr(discrepancy, "DENSE", 10)
    for u, ref in zip((True, False), whole, strict=True):
        found = hsic_test(X, Y, n_permutations=20, random_state=0, unbiased=u)
        np.testing.assert_allclose(found.null, ref.null, atol=1e-9)
        assert found.pvalue == ref.pvalue


@pytest.mark.parametrize("unbiased", [True, False])
def test_the_level_is_kept_by_factors_of_lower_rank_than_the_kernels(monkeypatch, unbiased):
    monkeypatch.setattr(discrepancy, "DENSE", 50)
    monkeypatch.setattr(discrepancy, "RANK", 20)
    pairs = [
        samples(seed, 80, 80, 10) for seed in range(150)
    ]  # at bandwidth 1 hardly any two rows are alike
    p = [
        hsic_test(X, Y, Gaussian(), Gaussian(), n_permutations=39, unbiased=unbiased).pvalue
        for X, Y in pairs
    ]
    for level in (0.05, 0.25, 0.5):
        assert np.mean(np.array(p) <= level) < level + 4 * (level * (1 - level) / 150) ** 0.5
    assert np.mean(p) < 0.7


@pytest.mark.parametrize("rows", [30, 120], ids=["whole", "factors"])
@pytest.mark.parametrize("test", [mmd_test, hsic_test])
def test_values_that_overflow_are_refused(monkeypatch, test, rows):
    monkeypatch.setattr(discrepancy, "DENSE", 50)
    X, Y = samples(0, rows, rows)
    kernels = [Linear()] * (2 if test is hsic_test else 1)
    for left, right in ((1e200 * X, Y), (X, 1e200 * Y), (1e154 * X, 1e154 * Y)):
        with pytest.raises(ValueError, match=r"too large for sums.*scale the columns"):
            test(left, right, *kernels, n_permutations=9)
    with pytest.raises(ValueError, match="too large"):
        TestResult.of(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="too large"):
        TestResult.of(np.array([np.inf, 1.0]))


def test_ties_are_ties_in_float32():
    for seed in range(20):
        X = (
            np.random.default_rng(seed).integers(3, size=(12, 1)).astype(np.float32)
        )  # many shuffles give the same samples
        a, b = (
            mmd_test(V[:6], V[6:], Gaussian(0.7), n_permutations=99, random_state=seed)
            for V in (X, X.astype(float))
        )
        assert a.pvalue == b.pvalue


def test_columns_are_compared_by_name():
    X, Y = (pd.DataFrame(V * [1.0, 5.0], columns=["a", "b"]) for V in samples(0))
    aligned = mmd_test(X, Y[["b", "a"]], n_permutations=30, random_state=0)
    np.testing.assert_array_equal(
        aligned.null, mmd_test(X, Y, n_permutations=30, random_state=0).null
    )
    assert (
        abs(
            aligned.statistic
            - mmd_test(X.to_numpy(), Y[["b", "a"]].to_numpy(), n_permutations=1).statistic
        )
        > 0.01
    )
    assert mmd_test(X, Y.to_numpy(), n_permutations=1).statistic == pytest.approx(aligned.statistic)
    with pytest.raises(ValueError, match=r"different names \(b, c\)"):
        mmd_test(X, Y.rename(columns={"b": "c"}))


def test_errors_are_sentences():
    X, Y = samples(0)
    with pytest.raises(ValueError, match="give pairs of rows"):
        hsic_test(X, Y)
    with pytest.raises(ValueError, match="2 expected"):
        mmd_test(X, Y[:, :1])
    with pytest.raises(ValueError, match="two rows on each side"):
        mmd_test(X, Y[:1])
    with pytest.raises(ValueError, match="four rows"):
        hsic_test(X[:3], Y[:3], unbiased=True)
    with pytest.raises(ValueError, match="n_permutations"):
        mmd_test(X, Y, n_permutations=0)
    with pytest.raises(ValueError, match="NaN"):
        mmd_test(X, np.where(Y > 1, np.nan, Y))
