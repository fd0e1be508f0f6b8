"""KernelPCA: the way by shapes, signs and names, refusals that change nothing, and huge rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Identity, Monomials
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelPCA


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(5, 5)) + 10
    )


def same_up_to_sign(A, B, **tol):
    np.testing.assert_allclose(np.abs(A), np.abs(B), **tol)


@pytest.mark.parametrize("via", [Fourier(64), Landmarks(30)], ids=repr)
def test_scikit_learn_contract(via):
    check_estimator(KernelPCA(via=via, random_state=0), on_skip=None)


def test_signs_are_no_accident():
    m = KernelPCA(3, lift=Monomials(2)).fit(data())
    C = m.components_
    assert (C[np.arange(3), np.abs(C).argmax(1)] > 0).all()


def test_inverse_only_where_the_map_has_one():
    X = data() / 5
    m = KernelPCA(5, lift=Identity()).fit(X)
    np.testing.assert_allclose(m.inverse_transform(m.transform(X)), X, atol=1e-9)
    marks = KernelPCA(40, Gaussian(3.0), Landmarks(60), random_state=0).fit(X)
    assert np.abs(marks.inverse_transform(marks.transform(X)) - X).mean() < 0.1 * X.std()
    assert not hasattr(KernelPCA(via=Fourier(10)).fit(X), "inverse_transform")
    with pytest.raises(ValueError, match="4 columns, but there are 5"):
        m.inverse_transform(np.ones((2, 4)))


def test_names_float32_sparse_and_at_most_d_components():
    X = data().astype(np.float32)
    m = KernelPCA(9, lift=Identity()).fit(X)
    assert list(m.get_feature_names_out()) == [f"kernelpca{i}" for i in range(5)]
    assert m.transform(X).dtype == np.float32
    same_up_to_sign(m.transform(X), PCA(5).fit_transform(X.astype(float)), atol=2e-3)
    same_up_to_sign(
        KernelPCA(2, lift=Identity()).fit_transform(sp.csr_array(X)),
        m.transform(X)[:, :2],
        atol=1e-3,
    )
    with pytest.raises(ValueError, match="n_components"):
        KernelPCA(0).fit(X)


def test_the_way_is_chosen_by_shapes(monkeypatch):
    X = data()
    assert KernelPCA(2).fit(X).plan_.way == "exact"
    assert KernelPCA(2, "linear").fit(X).plan_.way == "features"
    assert KernelPCA(2).partial_fit(X).plan_.way == "features"
    with pytest.raises(ValueError, match="via must be"):
        KernelPCA(via="best").fit(X)
    monkeypatch.setattr("mercer.models.pca.problem.MOST_ROWS", 119)
    assert KernelPCA(2).fit(X).plan_.way == "features"
    assert KernelPCA(2, via="exact").fit(X).plan_.way == "exact"


def test_a_stream_after_auto_begins_with_the_rows_of_fit():
    X = data()
    m = KernelPCA(2, Gaussian(5.0), random_state=0).fit(X[:50])
    assert m.plan_.way == "exact"
    with pytest.raises(ValueError, match="3 features"):
        m.partial_fit(X[:, :3])
    assert m.plan_.way == "exact"
    t = KernelPCA(2, Gaussian(5.0), random_state=0).partial_fit(X[:50]).partial_fit(X[50:])
    np.testing.assert_allclose(
        m.partial_fit(X[50:]).explained_variance_, t.explained_variance_, rtol=0.2
    )


@pytest.mark.parametrize(
    "X",
    [np.ones((5, 2)), np.ones((1, 2)), np.full((4, 1), 1e-150)],
    ids=["constant", "one row", "tiny"],
)
def test_rows_that_do_not_differ_have_no_components(X):
    assert np.abs(KernelPCA(2, Gaussian(), "exact").fit_transform(X)).max() < 1e-6


# refused calls, settings
WAYS = {
    "features": dict(via=Fourier(20)),
    "exact": dict(via="exact"),
    "iterative": dict(via="iterative"),
    "lift": dict(lift=Identity()),
    "passes": dict(via=Fourier(20), memory_limit=100.0),
}
BAD = {  # settings, a factor of the rows, and what the sentence says
    "rows": (dict(), np.nan, "NaN"),
    "too large": (dict(kernel=Polynomial(3), lift=None, via="features"), 1e200, "too large"),
    "via": (dict(via="best", lift=None), 1.0, "via must be"),
    "via of no name": (dict(via=3, lift=None), 1.0, "via must be"),
    "memory_limit": (dict(memory_limit="much"), 1.0, "memory_limit"),
    "n_components": (dict(n_components=0), 1.0, "n_components"),
    "random_state": (dict(random_state=-1, via="exact", lift=None), 1.0, "random_state"),
    "kernel": (dict(kernel="none", lift=None), 1.0, "kernel must be"),
}


def unchanged(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", WAYS)
def test_refused_fits_change_nothing(way, bad):
    X = data(60)
    m = KernelPCA(2, random_state=0, **WAYS[way]).fit(X)
    options, factor, match = BAD[bad]
    m.set_params(**options)
    before = dict(vars(m))
    for fit in (m.fit, m.fit_transform):
        with pytest.raises(ValueError, match=match):
            fit(factor * X)
        unchanged(m, before)


@pytest.mark.parametrize("via", ["exact", "iterative", "landmarks", Fourier(5)], ids=repr)
def test_a_lift_leaves_no_choice(via):
    with pytest.raises(ValueError, match="a lift is the feature map itself"):
        KernelPCA(2, via=via, lift=Identity()).fit(data())
    assert KernelPCA(2, via="features", lift=Identity()).fit(data()).plan_.way == "features"


def test_the_sentence_on_via_names_all_ways():
    with pytest.raises(
        ValueError,
        match=r"auto, exact, iterative, features, landmarks, or a value of mercer\.methods, got 'best'",
    ):
        KernelPCA(via="best").fit(data())


@pytest.mark.parametrize(
    "options",
    [
        dict(via="exact"),
        dict(via=Fourier(20)),
        dict(kernel="precomputed"),
    ],
    ids=["exact", "features", "precomputed"],
)
def test_float32_tables_give_float32(options):
    X = pd.DataFrame((data() / 5).astype(np.float32))
    X = pd.DataFrame(Gaussian(2.0)(X.to_numpy())) if "kernel" in options else X
    assert X.dtypes[0] == np.float32
    m = KernelPCA(2, random_state=0, **options)
    assert m.fit_transform(X).dtype == m.transform(X).dtype == np.float32


@pytest.mark.parametrize("limit", [None, 10.0], ids=["moments", "beyond the limit"])
@pytest.mark.parametrize(
    "options",
    [
        dict(lift=Identity()),
        dict(kernel=Polynomial(3), via="features"),
        dict(kernel="linear", via="exact"),
    ],
    ids=["lift", "features", "exact"],
)
def test_huge_rows_are_refused_without_other_warnings(options, limit):
    m = KernelPCA(2, memory_limit=limit, **options)
    for call in [
        m.fit,
        m.fit_transform,
        *([m.partial_fit] if options.get("via") != "exact" else []),
    ]:
        with pytest.raises(ValueError, match="too large for sums"):
            call(1e200 * data())
    with pytest.raises(ValueError, match="too large for sums"):
        KernelPCA(2, Polynomial(2), "features").fit(data()).transform(1e200 * data())
