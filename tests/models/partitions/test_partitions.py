"""Models of dask collections are those of the same rows in memory, for any partitioning."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from mercer import (
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    LearnedMetric,
)
from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Monomials, NGrams
from mercer.methods import Fourier, Landmarks
from mercer.models import logistic_fit
from mercer.models.svm import fit as svm_fit

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3)) * [1.0, 20.0, 0.1] + [0.0, 1e3, 5.0]
X[100:200] = X[0]  # copies
Y = np.sin(X[:, 0]) + 0.05 * X[:, 1] + 0.1 * RNG.normal(size=N)
W = RNG.uniform(0, 2, N) * (RNG.random(N) > 0.1)
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))


@st.composite
def cuts(draw):
    """Chunk lengths of N rows, some of them 0 or 1."""
    at = sorted(draw(st.lists(st.integers(0, N), min_size=0, max_size=9)))
    return tuple(int(n) for n in np.diff([0, *at, N]))


def lazy(values, lengths):
    return da.from_array(values, chunks=(lengths,) if values.ndim == 1 else (lengths, (2, 1)))


def close(a, b, rtol=1e-7):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


RIDGES = [
    dict(via=Fourier(40)),  # a bandwidth from the rows
    dict(kernel=Gaussian((2.0, 30.0, 0.2)), via=Fourier(40), fit_intercept=False),
    dict(kernel=Polynomial(2), via="features", cv=4),
    dict(via=Landmarks(20), alpha=0.1),
    dict(lift=Monomials(2), alpha=1e-2),
]


@pytest.mark.parametrize("given_", RIDGES, ids=str)
@settings(max_examples=max(5, settings.default.max_examples // 4))
@given(lengths=cuts())
def test_ridge(given_, lengths):
    own = KernelRidge(random_state=3, **given_).fit(X, Y, W)
    m = KernelRidge(random_state=3, **given_).fit(
        lazy(X, lengths), lazy(Y, lengths), lazy(W, lengths)
    )
    assert m.alpha_ == own.alpha_
    assert sum(v.count for v in m.moments_) == sum(v.count for v in own.moments_)
    close(m.predict(X), own.predict(X))
    if given_.get("cv"):
        close(m.cv_scores([1.0, 10.0]), own.cv_scores([1.0, 10.0]))


def test_ridge_of_several_outputs_in_single_precision_and_from_memory():
    both = np.stack([Y, X[:, 0]], axis=1)
    own = KernelRidge(via=Fourier(40), random_state=0).fit(X.astype(np.float32), both)
    m = KernelRidge(via=Fourier(40), random_state=0)
    m.fit(da.from_array(X.astype(np.float32), chunks=(77, 3)), both)
    assert m.predict(X.astype(np.float32)).dtype == np.float32
    close(m.predict(X), own.predict(X), 1e-3)


def test_a_model_of_partitions_goes_on_as_a_stream_and_merges():
    half = KernelRidge(via=Fourier(40), kernel=Gaussian(9.0), random_state=0)
    half.fit(da.from_array(X[:300], chunks=(80, 3)), da.from_array(Y[:300], chunks=80))
    half.partial_fit(X[300:], Y[300:])
    own = KernelRidge(via=Fourier(40), kernel=Gaussian(9.0), random_state=0).fit(X, Y)
    close(half.coef_, own.coef_)


@pytest.mark.parametrize(("y", "weight"), [(TWO, None), (TWO, "balanced"), (THREE, None)])
def test_classifiers(y, weight):
    lengths = (1, 299, 0, 300)
    options = dict(via=Fourier(30), random_state=0, class_weight=weight)
    for make in (
        lambda: KernelLogistic(tol=1e-9, **options),
        lambda: KernelSVC(loss="squared_hinge", tol=1e-8, **options),
    ):
        own, m = make().fit(X, y, W), make()
        m.fit(lazy(X, lengths), lazy(y, lengths), lazy(W, lengths))
        assert m.classes_.tolist() == own.classes_.tolist()
        close(m.coef_, own.coef_, 1e-5)
        assert (m.predict(lazy(X, lengths)).compute() == own.predict(X)).all()


@pytest.mark.parametrize(("y", "weight"), [(TWO, None), (TWO, "balanced"), (THREE, None)])
@pytest.mark.parametrize(
    "model",
    [
        KernelLogistic(tol=1e-9, cv=3, alphas=[1e-3, 0.1, 10.0]),
        KernelSVC(loss="squared_hinge", tol=1e-8, cv=3, Cs=[0.01, 1.0, 30.0]),
    ],
    ids=["logistic", "svc"],
)
def test_penalties_of_classifiers_by_folds(model, y, weight, monkeypatch):
    monkeypatch.setattr(logistic_fit, "CHOOSING", 1e-9)  # else rounds end within 1e-4
    monkeypatch.setattr(svm_fit, "CHOOSING", 1e-9)
    model = clone(model).set_params(via=Fourier(30), random_state=0, class_weight=weight)
    own, lengths = clone(model).fit(X, y, W), (1, 299, 0, 300)
    m = model.fit(lazy(X, lengths), lazy(y, lengths), lazy(W, lengths))
    for name in ("values", "scores", "weight"):
        there, here = getattr(m.path_, name), getattr(own.path_, name)
        np.testing.assert_allclose(there, here, rtol=1e-6)
    close(m.coef_, own.coef_, 1e-5)
    whole = clone(model).fit(lazy(X, (N,)), lazy(y, (N,)), lazy(W, (N,)))
    close(m.coef_, whole.coef_)


def test_folds_without_a_class_are_left_out_and_folds_of_one_row_refused():
    y = np.where(np.arange(N) < N - 1, "no", "yes")
    with pytest.raises(ValueError, match="no fold has rows while the others have every class"):
        KernelLogistic(cv=2).fit(lazy(X[-1:].repeat(2, 0), (2,)), lazy(y[-2:], (2,)))
    for cv in ("loo", [([0], [1])], 1):
        with pytest.raises(ValueError, match="cv"):
            KernelLogistic(cv=cv).fit(lazy(X, (N,)), lazy(y, (N,)))


def test_probabilities_stay_lazy():
    m = KernelLogistic(via=Fourier(30), random_state=0).fit(
        lazy(X, (300, 300)), lazy(THREE, (300, 300))
    )
    p = m.predict_proba(lazy(X, (300, 300)))
    assert p.chunks == ((300, 300), (3,))
    close(p.compute(), m.predict_proba(X))


def test_components():
    for options in (dict(via=Fourier(30)), dict(lift=Monomials(2)), dict(via=Landmarks(20))):
        own = KernelPCA(3, random_state=0, **options).fit(X)
        m = KernelPCA(3, random_state=0, **options)
        Z = m.fit_transform(lazy(X, (10, 0, 590)))
        close(Z.compute(), own.transform(X), 1e-6)


def test_processes_over_features():
    for options in (dict(via=Fourier(30)), dict(lift=Monomials(2), noise=0.1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few features starve the variance
            own = GaussianProcessRegressor(random_state=0, **options).fit(X, Y)
            m = GaussianProcessRegressor(random_state=0, **options)
            m.fit(lazy(X, (200, 400)), lazy(Y, (200, 400)))
        close(m.predict(X), own.predict(X), 1e-6)
        close(m.predict(X[:9], return_std=True)[1], own.predict(X[:9], return_std=True)[1], 1e-5)
        assert m.log_marginal_likelihood_ == pytest.approx(own.log_marginal_likelihood_, rel=1e-7)


def test_more_rows_than_the_sample_give_the_same_map_for_any_partitioning(monkeypatch):
    from mercer.engines import sample

    monkeypatch.setattr(sample, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(sample, "FEWEST", 100)
    found = [
        KernelRidge(via=Landmarks(20), random_state=5).fit(lazy(X, c), lazy(Y, c))
        for c in ((N,), (1, 99, 500), (200, 200, 200))
    ]
    landmarks = [m.lift_.map_.landmarks_ for m in found]
    assert all(np.array_equal(landmarks[0], L) for L in landmarks)
    assert len({m.kernel_.bandwidth for m in found}) == 1
    for m in found:
        close(m.predict(X), found[0].predict(X))


def test_unknown_lengths_are_counted_first():
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=Y), npartitions=4)
    some = frame[frame.a > 0]
    m = KernelRidge(Gaussian(9.0), via=Fourier(40), random_state=0).fit(some[list("abc")], some.y)
    keep = X[:, 0] > 0
    own = KernelRidge(Gaussian(9.0), via=Fourier(40), random_state=0).fit(X[keep], Y[keep])
    close(m.coef_, own.coef_)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge(via="features").fit(some[list("abc")], frame.y)


def test_ridge_over_the_n_grams_of_texts():
    texts = [f"{a} {b} {c}" for a in "pq" for b in "rstu" for c in "vwxyz"]
    y = np.arange(len(texts)) % 7.0
    own = KernelRidge(lift=NGrams(n_features=64)).fit(texts, y)
    m = KernelRidge(lift=NGrams(n_features=64))
    m.fit(*(dd.from_pandas(pd.Series(v), npartitions=3) for v in (texts, y)))
    close(m.predict(texts), own.predict(texts))


def test_exact_models_hold_the_rows_and_are_those_of_memory():
    for way in ("exact", "iterative"):
        s = dict(kernel=Gaussian((2.0, 30.0, 0.2)), via=way, alpha=0.1, tol=1e-9, random_state=0)
        own = KernelRidge(**s).fit(X, Y, W)
        m = KernelRidge(**s)
        m.fit(*(lazy(v, (0, 1, 99, 500)) for v in (X, Y, W)))
        close(m.predict(X), own.predict(X))
        assert np.array_equal(m.X_fit_, own.X_fit_)
        with pytest.raises(ValueError, match=r"keeps all 600 rows .* exceed memory_limit"):
            KernelRidge(memory_limit=10_000, **s).fit(da.from_array(X), da.from_array(Y))


@pytest.mark.parametrize("y", [Y, THREE, TWO], ids=["numbers", "codes", "texts"])
def test_a_metric_is_learnt_of_the_same_rows(y, monkeypatch):
    monkeypatch.setattr("mercer.models.feature_machine.learned_metric.MAX_ROWS", 200)
    own = LearnedMetric(rounds=1, form="diagonal", random_state=0).fit(X, y)
    for lengths in [(600,), (0, 1, 99, 500)]:
        m = LearnedMetric(rounds=1, form="diagonal", random_state=0)
        out = m.fit_transform(lazy(X, lengths), lazy(y, lengths))
        assert np.array_equal(m.metric_, own.metric_)
        assert np.array_equal(out.compute(), own.transform(X))
    with pytest.raises(ValueError, match="no cross_fit"):
        LearnedMetric(cross_fit=2).fit(lazy(X, (600,)), lazy(y, (600,)))


def test_a_partition_whose_rows_weigh_nothing_adds_nothing():
    w = np.where(np.arange(N) < 100, 0.0, W)
    for m in (
        KernelRidge(via=Fourier(40), random_state=0),
        KernelLogistic(via=Fourier(40), random_state=0),
    ):
        y = Y if isinstance(m, KernelRidge) else TWO
        found = clone(m).fit(*(lazy(v, (100, 500)) for v in (X, y, w)))
        own = clone(m).fit(*(lazy(v, (600,)) for v in (X, y, w)))
        close(found.predict(X) == y, own.predict(X) == y) if y is TWO else close(
            found.predict(X), own.predict(X)
        )


def test_scores_of_frames_count_their_rows():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=["a", "b"])
    lazy = dd.from_pandas(rows.assign(y=np.sin(rows["a"])), npartitions=3)
    m = KernelRidge(Gaussian(2.0), via=Fourier(20), random_state=0).fit(rows, np.sin(rows["a"]))
    assert abs(m.score(lazy[["a", "b"]], lazy["y"]) - m.score(rows, np.sin(rows["a"]))) < 1e-9
