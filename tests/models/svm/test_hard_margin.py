"""C = inf: no row inside the margin, as the limit of large C; refused where none is possible."""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR

from mercer import KernelSVC, KernelSVR
from mercer.kernels import Gaussian, Linear


def apart(n, d, offset=0.0, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    X[:, 0] += 8 * y
    return (X + offset).astype(dtype), y


def slack(m, X, y):
    return max(0.0, 1 - float((np.where(y == m.classes_[1], 1, -1) * m.decision_function(X)).min()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.5)])
def test_no_row_is_inside_the_margin(kernel, offset, dtype):
    X, y = apart(80, 2, offset, dtype=dtype)
    m = KernelSVC(kernel, C=np.inf).fit(X, y)
    assert slack(m, X, y) <= 5e-3
    assert m.gap_ <= 1e-3
    assert np.inf == m.C_
    # scores of large C no longer change
    near = KernelSVC(kernel, C=1e4).fit(X, y)
    np.testing.assert_allclose(m.decision_function(X), near.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("d", [1, 2, 90])
def test_as_scikit_learn_at_a_large_c(d):
    X, y = apart(60, d, seed=d)
    ours = KernelSVC(Linear(), C=np.inf, tol=1e-6).fit(X, y)
    theirs = SVC(kernel="linear", C=1e8, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_more_columns_than_rows_are_always_separated():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 50)), rng.integers(3, size=20)
    for multiclass in ("ovo", "ovr"):
        m = KernelSVC(Linear(), C=np.inf, multiclass=multiclass).fit(X, y)
        np.testing.assert_array_equal(m.predict(X), y)


def test_weights_say_only_which_rows_count():
    X, y = apart(60, 2)
    w = np.random.default_rng(0).exponential(size=60) * 1e-6
    far = np.append(X, [[X[y == 1, 0].max(), 0.0]], axis=0)  # of the wrong side, without weight
    plain = KernelSVC(Linear(), C=np.inf).fit(X, y)
    m = KernelSVC(Linear(), C=np.inf, class_weight={0: 100.0}).fit(
        far, np.append(y, 0), np.append(w, 0.0)
    )
    np.testing.assert_array_equal(m.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_both_losses_are_the_same_without_slack(loss):
    X, y = apart(40, 3)
    one = KernelSVC(C=np.inf).fit(X, y)
    np.testing.assert_array_equal(
        KernelSVC(C=np.inf, loss=loss).fit(X, y).dual_coef_, one.dual_coef_
    )


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_not_separated_are_refused_with_their_number(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(70, 2)), rng.integers(2, size=70)
    with pytest.raises(ValueError, match=r"separates, and \d+ of 70 stay inside .* finite C\.$"):
        KernelSVC(Linear(), C=np.inf).fit(X, y)


@pytest.mark.parametrize("kernel", [None, Linear(), Gaussian(0.1)])
def test_copies_of_two_classes_are_refused(kernel):
    X, y = apart(30, 2)
    X[1] = X[0]
    m = KernelSVC(kernel, C=np.inf)
    with pytest.raises(ValueError, match="stay inside the margin"):
        m.fit(X, y)
    assert not hasattr(m, "machine_")


def test_ways_without_a_hard_margin():
    X, y = apart(30, 2)
    with pytest.raises(ValueError, match="C=inf need via='exact'"):
        KernelSVC(C=np.inf, via="features").fit(X, y)
    with pytest.raises(ValueError, match="give Cs, or no cv"):
        KernelSVC(C=np.inf, cv=3).fit(X, y)
    assert KernelSVC(C=np.inf, cv=3, Cs=[0.1, 1.0]).fit(X, y).C_ in (0.1, 1.0)
    for wrong in (-np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match="C must be a number > 0"):
            KernelSVC(C=wrong).fit(X, y)


def waves(n, noise=0.0, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, size=(n, 1))
    return X, np.sin(X[:, 0]) + noise * rng.normal(size=n) + offset


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_no_row_is_outside_the_tube(offset, scale):
    X, y = waves(60, 0.05, offset)
    m = KernelSVR(Gaussian(0.7), C=np.inf, epsilon=0.1 * scale, tol=1e-5).fit(X, scale * y)
    assert np.abs(scale * y - m.predict(X)).max() <= 0.101 * scale
    theirs = SVR(gamma=0.5 / 0.7**2, C=1e6, epsilon=0.1, tol=1e-8).fit(X, y - offset)
    np.testing.assert_allclose(m.predict(X) / scale - offset, theirs.predict(X), atol=2e-3)


def test_weights_of_rows_change_no_hard_tube():
    X, y = waves(40)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    plain = KernelSVR(Gaussian(0.7), C=np.inf).fit(X, y)
    np.testing.assert_array_equal(
        KernelSVR(Gaussian(0.7), C=np.inf).fit(X, y, sample_weight=w).dual_coef_, plain.dual_coef_
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_tube_that_no_function_stays_in_is_refused():
    X, y = waves(40)
    with pytest.raises(ValueError, match=r"all rows are within epsilon=0.1 of, and \d+ of 80 stay"):
        KernelSVR(Linear(), C=np.inf).fit(np.r_[X, X], np.r_[y, y + 1.0])
