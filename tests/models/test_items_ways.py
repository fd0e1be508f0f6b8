"""What learners do with items beyond their answers: landmarks, one triangle of the Gram matrix, and
plans that tell how values are computed."""

import numpy as np
import pytest

import mercer
from mercer import GaussianProcessRegressor, KernelRidge, KernelSVC, KernelSVR, OneClassSVM
from mercer.kernels import Callable
from mercer.methods import Fourier, Landmarks
from mercer.strings import Gapped, Spectrum, Subsequence
from tests.strings.words import strings

X = strings(0, 50, "ACGT", 18)
Y = np.array([x.count("AC") + 0.1 * len(x) for x in X])
KERNELS = [Spectrum(2) + 0.1, Subsequence(2, 0.5).normalized()]


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_a_process_over_all_landmarks_is_the_exact_one(k, tmp_path):
    exact = GaussianProcessRegressor(k, via="exact", random_state=0).fit(X, Y)
    m = GaussianProcessRegressor(k, via=Landmarks(50), random_state=0).fit(X, Y)
    new = ["ACAC", "", "TTTT", "NACN"]
    for found, same in zip(
        m.predict(new, return_std=True), exact.predict(new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, same, rtol=0.02, atol=0.02)
    assert m.plan_.way == "landmarks"
    m.save(tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(new), m.predict(new))


def test_few_landmarks_tell_less():
    k = Spectrum(3).normalized()
    few, many = (
        GaussianProcessRegressor(k, noise=0.01, fixed=True, via=Landmarks(n), random_state=0)
        .fit(X, Y)
        .log_marginal_likelihood_
        for n in (5, 50)
    )
    assert few < many


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_classifier_over_landmarks(loss, tmp_path):
    k, y = Spectrum(2).normalized(), np.array(["AC" in x for x in X])
    m = KernelSVC(k, via="landmarks", loss=loss, random_state=0).fit(X, y)
    exact = KernelSVC(k, loss=loss, fit_intercept=True).fit(X, y)
    assert np.mean(m.predict(X) == exact.predict(X)) > 0.9
    assert m.kernel_ == Spectrum(2, alphabet="ACGT").normalized()
    m.save(tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(X), m.predict(X))
    with pytest.raises(ValueError, match="items have no features but those of landmarks"):
        KernelSVC(k, via=Fourier(9)).fit(X, y)


def test_one_triangle_of_the_gram_matrix_is_computed():
    n, made = 700, 0

    def lengths(A, B):
        nonlocal made
        made += len(A) * len(B)
        return np.outer([len(a) for a in A], [len(b) for b in B]).astype(float)

    Z = strings(1, n, "ab", 9, 1)
    KernelSVC(Callable(lengths)).fit(Z, np.array([len(z) > 4 for z in Z]))
    assert made < 0.85 * n * n


@pytest.mark.parametrize("memory", ["1GB", "100kB"])
def test_the_matrix_is_kept_only_where_it_fits(memory):
    k, y = Spectrum(2).normalized(), np.array(["AC" in x for x in X])
    f = KernelSVC(k, memory_limit=memory).fit(X * 3, np.tile(y, 3)).decision_function(X)
    same = KernelSVC("precomputed").fit(k(X * 3), np.tile(y, 3)).decision_function(k(X, X * 3))
    np.testing.assert_allclose(f, same, atol=1e-3)


@pytest.mark.parametrize("model", [
    KernelRidge(), KernelSVC(), KernelSVR(), OneClassSVM(), GaussianProcessRegressor(),
], ids=lambda m: type(m).__name__)  # fmt: skip
def test_plans_tell_how_values_are_computed(model):
    k = Gapped(4, 2, alphabet="dna").normalized() + 0.1 * Subsequence(2)
    y = Y > 1 if isinstance(model, KernelSVC) else Y
    told = model.set_params(kernel=k).fit(X, y).plan_.settings
    assert told["values of Gapped(g=4)"] == "products of counts of all 256 words"
    assert any(name.startswith("values of Subsequence(p=2") for name in told)


@pytest.mark.parametrize(
    "given", ["ACGT", b"AC", [], (), {"AC", "GT"}, iter(["AC"])], ids=lambda v: type(v).__name__
)
def test_what_lists_no_items_is_told(given):
    with pytest.raises(ValueError, match="X must list items, such as strings"):
        Spectrum(2)(given)
