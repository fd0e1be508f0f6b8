"""Components over features: a copy that goes on, and a batch that is broken off, leave the
original."""

import copy

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks
from mercer.stats import Moments

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))


def pca(via):
    return KernelPCA(2, Gaussian(1.0), via=via, random_state=0)


@pytest.mark.parametrize("via", [Fourier(32), Landmarks(20)])
def test_a_copy_that_goes_on_leaves_the_original(via):
    model, other = pca(via).fit(X), pca(via).fit(X)
    before = model.transform(Z)
    copy.copy(model).partial_fit(Z)
    copy.copy(model).merge(other)
    assert model.moments_.count == other.moments_.count == 60
    np.testing.assert_array_equal(copy.deepcopy(model).transform(Z), before)


def test_a_batch_that_is_broken_off_leaves_the_model(monkeypatch):
    model = pca(Fourier(32)).fit(X)
    S = model.moments_.S.copy()

    def broken(self, batch):
        batch.S += self.S
        raise KeyboardInterrupt

    monkeypatch.setattr(Moments, "joined", broken)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(Z)
    assert model.moments_.count == 60
    np.testing.assert_array_equal(model.moments_.S, S)
