"""Every estimator of scikit-learn that has a peer, beside it on the same calls; and the comparison
can fail."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as PeerRidge

from mercer.kernels import Gaussian
from mercer.lifts import Monomials, RandomFourier
from mercer.models import KernelRidge, KernelSVR
from mercer.testing.pairs import twins
from mercer.testing.twins import check_twin

TWINS = twins()


@pytest.mark.parametrize("name", TWINS)
def test_twin(name):
    assert type(TWINS[name].theirs).__name__ == name
    check_twin(TWINS[name])


class Forgetful(KernelRidge):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y)  # without the weights
        return self


class Careless(KernelRidge):
    def fit(self, X, y, sample_weight=None):
        return super().fit(np.nan_to_num(X) if isinstance(X, np.ndarray) else X, y, sample_weight)


class Silent(KernelRidge):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)


class Broad(PeerRidge):
    """Takes CSR rows, as it always did; it says so from 1.6.1 on."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Lame(KernelRidge):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


SAME = dict(kernel=Gaussian(1.0), alpha=0.1, via="exact", fit_intercept=False)
RIDGE, PRODUCTS, SVM = (TWINS[name] for name in ("KernelRidge", "PolynomialFeatures", "SVR"))


@pytest.mark.parametrize(
    ("twin", "law"),
    [
        (replace(RIDGE, ours=KernelRidge(**SAME | {"alpha": 0.2})), "predict is that of theirs"),
        (replace(RIDGE, ours=Forgetful(**SAME)), "predict is that of theirs"),
        (replace(RIDGE, ours=Careless(**SAME)), "a missing value: theirs raises ValueError"),
        (replace(RIDGE, ours=Silent(**SAME)), "fit of Silent returns itself"),
        (replace(RIDGE, ours=Monomials()), "ours has X_fit_"),
        (replace(RIDGE, without={"predict": "no"}), "predict is said to be missing, and is"),
        (replace(RIDGE, without={"fly": "no"}), r"there in theirs: \['fly'\]"),
        (replace(PRODUCTS, ours=Monomials(3)), "transform has the shape"),
        (
            replace(RIDGE, theirs=Broad(alpha=0.1, kernel="rbf", gamma=0.5), ours=Lame(**SAME)),
            "ours takes CSR rows",
        ),
        (replace(PRODUCTS, renamed={}), "ours has n_output_features_"),
        (replace(SVM, without={}), "ours has fit_status_"),
        (replace(SVM, ours=KernelSVR(Gaussian(1.0), epsilon=0.3)), "is that of theirs|shape"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_the_comparison_can_fail(twin, law):
    with pytest.raises(AssertionError, match=law):
        check_twin(twin)


def test_random_maps_are_compared_by_shape():
    drawn = replace(TWINS["RBFSampler"], ours=RandomFourier(Gaussian(1.0), 18, random_state=0))
    with pytest.raises(AssertionError, match=r"shape \(20, 16\) of theirs, not \(20, 18\)"):
        check_twin(drawn)
