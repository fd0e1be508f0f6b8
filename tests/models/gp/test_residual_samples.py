"""What landmarks leave out, drawn: zero at the landmarks, with the covariance that they leave out elsewhere."""
import numpy as np

from mercer.inputs import Table
from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Nystrom
from mercer.models.gp.samples import Beside, residual_functions


def test_draws_have_the_covariance_that_is_left_out():
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    Z = np.vstack([X[:3], [[2.0, 2.0], [30.0, -30.0]]])
    gaps = []
    for seed in range(4):
        phi = Nystrom(Gaussian(0.7), 8, random_state=0).fit(X)
        psi, V, A = residual_functions(phi, 3.0, 2000, n_features=2048, seed=seed)
        g = Beside(phi, psi).transform(Z) @ np.vstack([-A, V])
        gaps.append(np.cov(g) - 3.0 * (Gaussian(0.7)(Z) - phi.transform(Z) @ phi.transform(Z).T))
        np.testing.assert_allclose(Beside(phi, psi).transform(phi.landmarks_) @ np.vstack([-A, V]), 0, atol=1e-8)
    np.testing.assert_allclose(np.mean(gaps, axis=0), 0, atol=0.2)


def test_nothing_is_left_out_by_all_landmarks_of_a_small_kernel():
    X = np.random.default_rng(0).normal(size=(30, 2))
    phi = Nystrom(Polynomial(2), 30, random_state=0).fit(X)
    psi, V, A = residual_functions(phi, 1.0, 5, n_features=64, seed=0)
    far = 10 * X
    whole = psi.transform(Table(far)) @ V
    np.testing.assert_allclose(phi.transform(far) @ A, whole, rtol=1e-3, atol=1e-3 * np.abs(whole).max())
