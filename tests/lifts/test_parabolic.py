"""The paraboloid: features and kernel, sparse rows that stay sparse, and a ball separated by a
linear rule."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from mercer.lifts import Ball, Halfspace, Parabolic, halfspace_to_ball
from mercer.testing import check_lift


def points(n=400, d=2, seed=0):
    return np.random.default_rng(seed).uniform(-3, 3, size=(n, d))


def lifted(X):
    return Parabolic().fit_transform(X)


def test_features_and_kernel():
    check_lift(Parabolic())
    phi = Parabolic().fit([[1.0, 2.0]])
    assert phi.transform([[1.0, 2.0]]).tolist() == [[1, 2, 5]]
    assert phi.kernel_([[1.0, 2.0]], [[3.0, 1.0]])[0, 0] == 5 + 5 * 10


def test_sparse_rows_stay_sparse():
    X = sp.random_array((9, 5), density=0.4, format="csr", random_state=np.random.default_rng(0))
    F = Parabolic().fit_transform(X)
    assert sp.issparse(F)
    assert F.format == "csr"
    np.testing.assert_allclose(F.toarray(), lifted(X.toarray()))


def test_a_linear_rule_separates_a_ball():
    X, ball = points(300, 3), Ball((0.5, -0.5, 0.2), 1.8)
    y = ball.contains(X)
    model = SVC(kernel="linear", C=1e6).fit(lifted(X), y)
    assert model.score(lifted(X), y) == 1
    assert SVC(kernel="linear").fit(X, y).score(X, y) < 0.9
    found = halfspace_to_ball(model.coef_, -model.intercept_)
    assert isinstance(found, Ball)
    np.testing.assert_allclose(found.centre, ball.centre, atol=0.2)
    assert abs(found.radius - ball.radius) < 0.2


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Ball((0.0,), -1.0), "radius must be a number >= 0"),
        (lambda: Ball((np.nan,), 1.0), "centre must hold"),
        (lambda: Halfspace((1.0,), np.inf), "offset must be"),
        (lambda: halfspace_to_ball((1.0,), 0.0), "the last that of"),
        (lambda: Ball((0.0, 0.0), 1.0).contains([[1.0]]), "rows of 2 columns"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_huge_rows_overflow_quietly():
    assert lifted(np.array([[1e200, 0.0]])).tolist() == [[1e200, 0, np.inf]]
    assert lifted(np.array([[1e30]], dtype=np.float32))[0, 1] == np.inf
