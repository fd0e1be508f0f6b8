"""One rule for what `via` says beside a kernel or a lift, in all families."""

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian
from mercer.lifts import Monomials
from mercer.methods import Fourier, Landmarks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(float)
WITH_LIFT = (
    mercer.KernelRidge,
    mercer.GaussianProcessRegressor,
    mercer.KernelSVC,
    mercer.KernelLogistic,
    mercer.KernelPCA,
    mercer.KernelKMeans,
)
ALL = (*WITH_LIFT, mercer.GaussianProcessClassifier, mercer.KernelSVR, mercer.OneClassSVM)


@pytest.mark.parametrize("cls", WITH_LIFT)
@pytest.mark.parametrize("via", [Landmarks(3), Fourier(4), "landmarks"], ids=str)
def test_a_lift_leaves_no_choice_of_a_map(cls, via):
    with pytest.raises(
        ValueError,
        match=r"a lift is the feature map itself.*got .*; give a kernel instead of a lift\.",
    ):
        cls(via=via, lift=Monomials(2)).fit(X, Y)


@pytest.mark.parametrize("cls", WITH_LIFT)
def test_a_kernel_and_a_lift_are_one_too_many(cls):
    with pytest.raises(ValueError, match="a kernel or a lift, not both"):
        cls(kernel=Gaussian(), lift=Monomials(2)).fit(X, Y)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("via", ["best", 3, None, np.ones(2)], ids=str)
def test_what_is_no_way(cls, via):
    m = cls(via=via)
    for name in ("partial_fit", "merge", "forget", "inverse_transform"):
        hasattr(m, name)  # is answered, whatever via is
    with pytest.raises(ValueError, match=r"via must be one of (auto|exact)"):
        m.fit(X, Y)


@pytest.mark.parametrize(
    "cls", [mercer.KernelSVR, mercer.OneClassSVM, mercer.GaussianProcessClassifier]
)
def test_ways_that_a_family_does_not_have(cls):
    with pytest.raises(ValueError, match="via must be one of auto, exact"):
        cls(via=Fourier(10)).fit(X, Y)


@pytest.mark.parametrize("cls", [mercer.GaussianProcessClassifier, mercer.KernelLogistic])
def test_families_without_kernel_matrices_say_what_to_use(cls):
    with pytest.raises(ValueError, match=r"a Gram matrix .*; give a kernel, or use KernelSVC"):
        cls("precomputed").fit(Gaussian()(X), Y)


def test_a_kernel_matrix_does_not_merge():
    assert not any(
        hasattr(mercer.GaussianProcessRegressor("precomputed"), name)
        for name in ("partial_fit", "forget", "merge")
    )


def test_sentences_list_what_would_do():
    for m, match in (
        (mercer.KernelRidge(cv="foo"), "'loo', a splitter such as KFold"),
        (mercer.KernelRidge(cv=1), "a number of folds >= 2, 'loo'"),
        (mercer.KernelRidge("rfb"), "laplacian, precomputed, got 'rfb'"),
        (mercer.KernelSVR("rfb"), "laplacian, precomputed, got 'rfb'"),
        (mercer.GaussianProcessRegressor("rfb"), "laplacian, precomputed, got 'rfb'"),
        (mercer.KernelLogistic("rfb"), "laplacian, got 'rfb'"),
    ):
        with pytest.raises(ValueError, match=match):
            m.fit(X, Y)
