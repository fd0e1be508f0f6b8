"""Ridge over sparse rows: the penalised least squares of the dense rows, whatever the columns' units."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelRidge
from mercer.kernels import Linear


def least(X, Y, w, alpha):
    """min sum w (y - x'c)^2 + alpha |c|^2, every column in its own unit, in dense float64."""
    A = np.concatenate([np.sqrt(w)[:, None] * X, np.sqrt(alpha) * np.eye(X.shape[1])])
    b, unit = np.append(np.sqrt(w) * Y, np.zeros(X.shape[1])), np.linalg.norm(A, axis=0)
    c = np.linalg.lstsq(A / unit, b, rcond=None)[0]
    return float(np.square(b - A / unit @ c).sum())


@pytest.mark.parametrize("seed", range(6))
def test_a_large_column_does_not_hide_what_is_left_of_the_others(seed):
    rng = np.random.default_rng(seed)
    n, D, alpha = int(rng.integers(20, 90)), int(rng.integers(60, 160)), 0.1
    X = sp.random(n, D, 0.05, "csr", random_state=seed).toarray()
    Y = X @ rng.normal(size=D)
    X[:, 0] = 1e6 + rng.normal(size=n)
    w = 10.0 ** rng.uniform(-3, 3, size=n)
    m = KernelRidge(Linear(), alpha, fit_intercept=False).fit(sp.csr_array(X), Y, w)
    assert m.plan_.way == "sparse conjugate gradients"
    coef = np.asarray(m.coef_).ravel()
    value = float(w @ np.square(Y - X @ coef) + alpha * coef @ coef)
    assert value - least(X, Y, w, alpha) <= 1e-8 * float(w @ np.square(Y))
