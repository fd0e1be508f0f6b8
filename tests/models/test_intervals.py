"""Odd questions to predict_interval: finite wherever enough rows calibrate, else infinite and said
so; never nan, never crossed."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import Gaussian
from mercer.lifts import Monomials
from mercer.methods import Fourier, Landmarks

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)

DATA = {
    "one row": (X[:1], y[:1]),
    "two rows": (X[:2], y[:2]),
    "three rows": (X[:3], y[:3]),
    "eleven rows": (X[:11], y[:11]),
    "constant y": (X, np.ones(40)),
    "copies": (np.repeat(X[:8], 5, 0), y),
    "exact copies": (np.repeat(X[:8], 5, 0), np.repeat(y[:8], 5)),
    "one column": (X[:, :1], y),
    "one point": (np.ones((40, 2)), y),
    "float32": (X.astype("f4"), y.astype("f4")),
    "large y": (X, 1e300 * y),
    "small y": (X, 1e-300 * y),
    "far away": (X + 1e6, y),
}
WAYS = {
    "exact": dict(via="exact"),
    "iterative": dict(via="iterative"),
    "features": dict(via=Fourier(16)),
    "landmarks": dict(via=Landmarks(5)),
    "lift": dict(lift=Monomials(2)),
    "passes": dict(lift=Monomials(2), memory_limit=10),
    "gram": dict(kernel="precomputed"),
}
REFUSED = (
    "too few to split|goes through some rows|too large for sums|jackknife\\+ over features needs"
)


def check(m, A, coverage, n, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = m.predict_interval(A, coverage, **options)
    low, high = found
    assert not np.isnan(low).any()
    assert not np.isnan(high).any()
    assert (low <= high).all()
    infinite = n is not None and np.ceil((n + 1) * coverage - 1e-9) > n
    assert np.isinf(low).all() if infinite else np.isfinite(low).all() and np.isfinite(high).all()
    assert (
        ("infinite" in found.guarantee)
        == infinite
        == any("infinite" in str(w.message) for w in said)
    )
    assert all("infinite" in str(w.message) or w.category is ConvergenceWarning for w in said)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DATA)
def test_odd_intervals_of_ridge(name, way):
    (A, t), answers = DATA[name], 0
    A = Gaussian()(A) if way == "gram" else A
    for alpha in (0.0, 1e-12, 1.0, 1e12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            m = KernelRidge(alpha=alpha, random_state=0, **WAYS[way])
            if name == "large y" and way in ("features", "lift", "passes", "landmarks"):
                with pytest.raises(ValueError, match="too large for sums"):
                    m.fit(A, t)
                continue
            m.fit(A, t)
        for method in ("split", "jackknife+"):
            refused = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    n = len(t)
                    if method == "split":
                        n = len(m.fitted_.calibrated(m.fitted_.settings).split.errors)
                for coverage in (1e-12, 0.5, 0.9, 1 - 1e-9):
                    check(m, A, coverage, n, method=method)
                answers += 1
            except ValueError as e:
                refused = str(e)
            assert not refused or re.search(REFUSED, refused)
    assert answers or name in ("one row", "large y", "two rows")


@pytest.mark.parametrize("name", DATA)
def test_odd_intervals_of_processes(name):
    A, t = DATA[name]
    if name != "large y":
        m = GaussianProcessRegressor(Gaussian(), 0.1, random_state=0).fit(A, t)
        for coverage in (1e-12, 0.5, 0.9, 1 - 1e-9):
            check(m, A, coverage, None)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan, np.inf, None, True])
def test_coverages_are_between_0_and_1(coverage):
    for m in (KernelRidge(), GaussianProcessRegressor(Gaussian(), 0.1)):
        with pytest.raises(ValueError, match="coverage"):
            m.fit(X, y).predict_interval(X, coverage)
