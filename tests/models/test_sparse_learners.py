"""Linear learners over sparse rows as they are: the optimum of the dense objective on rows of every
shape, within memory that is told."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import mercer
from mercer import (
    KernelLogistic,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    Perceptron,
    kernels,
    lifts,
    methods,
)
from mercer.ops.threads import limit


def drawn(seed, n, D, density=0.05, dtype=np.float64):
    X = sp.random(n, D, density, "csr", dtype=np.float64, random_state=seed)
    return X.astype(dtype)


def scaled(X, factor):
    """With a column of another scale."""
    return (X @ sp.diags_array(np.where(np.arange(X.shape[1]) == 3, factor, 1.0))).tocsr()


def with_offset(X):
    """With one dense column far from zero."""
    rng = np.random.default_rng(5)
    return sp.hstack([X, sp.csr_array(1e6 + rng.normal(size=(X.shape[0], 1)))], format="csr")


def with_gaps(X):
    """Empty rows and empty columns."""
    A = X.toarray()
    A[::3], A[:, ::2] = 0, 0
    return sp.csr_array(A)


def unsorted(X):
    """Every entry as two halves, the last first, with places of 64 bits."""
    C = X.tocoo()
    order = np.lexsort((-C.col, C.row))
    data, col, row = (np.concatenate([v[order]] * 2) for v in (C.data / 2, C.col, C.row))
    by_row = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[0]))])
    return sp.csr_array((data[by_row], col[by_row].astype(np.int64), indptr), shape=X.shape)


MARKET = {
    "wide": drawn(0, 60, 300),
    "tall": drawn(1, 200, 40, 0.1),
    "copies": sp.vstack([drawn(2, 40, 80)] * 3, format="csr"),
    "gaps": with_gaps(drawn(3, 90, 60, 0.2)),
    "scaled": scaled(drawn(4, 80, 100), 1e6),
    "offset": with_offset(drawn(5, 80, 100)),
    "float32": drawn(6, 70, 120, dtype=np.float32),
    "unsorted": unsorted(drawn(7, 60, 90)),
}


def labels(X, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    f = X.toarray().astype(np.float64)
    f = (f - f.mean(0)) / (f.std(0) + 1e-9)
    return (f @ rng.normal(size=(X.shape[1], classes)) + rng.normal(size=(len(f), classes))).argmax(
        1
    )


def hinge(coef, b, X, y, c):
    f = X.toarray().astype(np.float64) @ coef + b
    return coef @ coef / 2 + c @ np.maximum(1 - np.where(y == y.max(), 1, -1) * f, 0)


def test_the_market_is_what_it_says():
    assert not MARKET["unsorted"].has_sorted_indices
    assert (np.diff(MARKET["gaps"].indptr) == 0).any()
    assert all(4 * X.nnz <= X.shape[0] * X.shape[1] for X in MARKET.values())


@pytest.mark.parametrize("name", MARKET)
def test_the_hinge_machine_is_svc(name):
    X = MARKET[name]
    y, w = labels(X), np.random.default_rng(1).integers(1, 4, X.shape[0]).astype(float)
    m = KernelSVC(kernels.Linear(), C=0.7, tol=1e-7).fit(X, y, w)
    assert m.plan_.way == "sparse dual coordinate descent"
    assert m.gap_ <= 1e-8
    theirs = SVC(kernel="linear", C=0.7, tol=1e-10).fit(X.toarray(), y, w)
    best = hinge(theirs.coef_[0], theirs.intercept_[0], X, y, 0.7 * w)
    assert hinge(m.coef_[0], m.intercept_[0], X, y, 0.7 * w) <= best * (1 + 1e-6)
    assert m.objective_ == pytest.approx(
        hinge(m.coef_[0], m.intercept_[0], X, y, 0.7 * w), rel=1e-6
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", MARKET)
def test_the_squared_hinge_is_at_its_minimum(name, intercept):
    X, C = MARKET[name], 0.7
    y = labels(X)
    m = KernelSVC("linear", C=C, loss="squared_hinge", tol=1e-6, fit_intercept=intercept).fit(X, y)
    A, s = X.toarray().astype(np.float64), np.where(y == 1, 1.0, -1.0)
    r = -2 * C * s * np.maximum(1 - s * (A @ m.coef_[0] + m.intercept_[0]), 0)
    check_stationary(A, r, m.coef_[0], 1.0, intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", MARKET)
def test_logistic_is_at_its_minimum(name, intercept):
    X, alpha = MARKET[name], 0.3
    y, w = labels(X), np.random.default_rng(1).integers(1, 4, X.shape[0]).astype(float)
    m = KernelLogistic("linear", alpha, fit_intercept=intercept, tol=1e-8).fit(X, y, w)
    assert m.plan_.way == "sparse newton"
    A, s = X.toarray().astype(np.float64), np.where(y == 1, 1.0, -1.0)
    f = A @ m.coef_[0] + m.intercept_[0]
    check_stationary(A, -w * s / (1 + np.exp(s * f)), m.coef_[0], alpha, intercept)
    value = w @ np.logaddexp(0, -s * f) + alpha / 2 * m.coef_[0] @ m.coef_[0]
    assert m.objective_ == pytest.approx(value, rel=1e-9)


def check_stationary(A, r, coef, alpha, intercept):
    """The gradient is zero beside the sizes of its terms: with a penalty, that bounds what is left of
    the objective."""
    scale = np.abs(A).sum(0) * np.abs(r).max() + alpha * np.abs(coef).max()
    centred = A - A.mean(0) if intercept else A
    g = centred.T @ r + alpha * coef
    assert np.abs(g / scale).max() <= 1e-7
    if intercept:
        assert abs(r.sum()) <= 1e-6 * np.abs(r).sum()


@pytest.mark.parametrize("name", MARKET)
def test_softmax_of_many_classes(name):
    X = MARKET[name]
    y = labels(X, 4)
    m = KernelLogistic("linear", 0.5, tol=1e-8).fit(X, y)
    A, P = X.toarray().astype(np.float64), m.predict_proba(X.astype(np.float64))
    R = P - np.eye(4)[y]
    assert m.coef_.shape == (4, X.shape[1])
    for k in range(4):
        check_stationary(A, R[:, k], m.coef_[k], 0.5, True)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", MARKET)
def test_ridge_is_least_squares(name, intercept):
    X, alpha = MARKET[name], 0.3
    n, D = X.shape
    rng = np.random.default_rng(2)
    Y, w = rng.normal(size=(n, 2)) + 5, rng.integers(0, 3, n).astype(float)
    m = KernelRidge("linear", alpha, fit_intercept=intercept, tol=1e-10).fit(X, Y, w)
    assert m.plan_.way == "sparse conjugate gradients"
    assert m.residual_ <= 1e-10
    A = X.toarray().astype(np.float64)
    mean, mean_y = (np.average(v, axis=0, weights=w) * intercept for v in (A, Y))
    root = np.sqrt(w)[:, None]
    top = np.vstack([root * (A - mean), np.sqrt(alpha) * np.eye(D)])
    coef = np.linalg.lstsq(top, np.vstack([root * (Y - mean_y), np.zeros((D, 2))]))[0]

    def value(c):
        return np.square(top @ c - np.vstack([root * (Y - mean_y), np.zeros((D, 2))])).sum()

    assert value(m.coef_) <= value(coef) * (1 + 1e-8)
    rounding = 1e-6 if X.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(m.predict(X), A @ coef + mean_y - mean @ coef, atol=rounding)


def test_one_against_the_rest():
    X = MARKET["tall"]
    y = labels(X, 3)
    m = KernelSVC("linear", tol=1e-6).fit(X, y)
    one = KernelSVC("linear", tol=1e-6).fit(X, y == 2)
    assert m.coef_.shape == (3, X.shape[1])
    np.testing.assert_allclose(m.coef_[2], one.coef_[0], atol=1e-5)
    assert m.score(X, y) > 0.5


@pytest.mark.parametrize("model", [KernelSVC, KernelLogistic])
def test_class_weights_are_weights_of_rows(model):
    X = MARKET["wide"]
    y = labels(X)
    a = model("linear", class_weight={1: 3.0}, tol=1e-6).fit(X, y)
    b = model("linear", tol=1e-6).fit(X, y, np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    balanced = model("linear", class_weight="balanced", tol=1e-6).fit(X, y)
    w = len(y) / (2 * np.bincount(y))[y]
    np.testing.assert_allclose(balanced.coef_, model("linear", tol=1e-6).fit(X, y, w).coef_)


MODELS = {
    "hinge": lambda **k: KernelSVC("linear", tol=1e-6, **k),
    "squared": lambda **k: KernelSVC("linear", loss="squared_hinge", tol=1e-6, **k),
    "logistic": lambda **k: KernelLogistic("linear", tol=1e-8, **k),
    "ridge": lambda **k: KernelRidge("linear", tol=1e-10, **k),
    "tube": lambda **k: KernelSVR("linear", tol=1e-6, **k),
}


@pytest.mark.parametrize("name", MODELS)
def test_order_of_rows_and_columns_changes_nothing(name):
    X, rng = MARKET["wide"], np.random.default_rng(3)
    y, rows, columns = labels(X), rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    m = MODELS[name]().fit(X, y)
    other = MODELS[name]().fit(X[rows][:, columns], y[rows])
    np.testing.assert_allclose(
        np.ravel(other.coef_), np.ravel(m.coef_)[columns], atol=1e-4 * np.abs(m.coef_).max()
    )


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_zero_are_as_absent(name):
    X = MARKET["wide"]
    y, w = labels(X), np.arange(X.shape[0]) % 3
    m, rest = MODELS[name]().fit(X, y, w), MODELS[name]().fit(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_allclose(m.coef_, rest.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(name):
    X = drawn(0, 400, 3000, 0.1)
    y = labels(X)
    found = []
    for threads in (1, 2, 7):
        with limit(threads):
            found.append(MODELS[name]().fit(X, y))
    for m in found[1:]:
        np.testing.assert_array_equal(m.coef_, found[0].coef_)
        np.testing.assert_array_equal(m.intercept_, found[0].intercept_)


@pytest.mark.parametrize("name", MODELS)
def test_a_scaled_kernel_is_another_penalty(name):
    X = MARKET["wide"]
    y = labels(X)
    m = MODELS[name]().fit(X, y)
    wide = MODELS[name]().set_params(kernel=4 * kernels.Linear())
    wide = wide.set_params(
        **({"C": 0.25} if name in ("hinge", "squared", "tube") else {"alpha": 4.0})
    )
    wide.fit(X, y)
    np.testing.assert_allclose(2 * wide.coef_, m.coef_, atol=1e-4 * np.abs(m.coef_).max())
    assert type(wide.lift_).__name__ == "Scaled"
    assert type(m.lift_).__name__ == "Identity"


@pytest.mark.parametrize("name", [name for name in MODELS if name != "tube"])
def test_a_sketch_is_made_where_it_is_asked_for(name):
    X = MARKET["wide"]
    m = MODELS[name](via=methods.Sketch(16), random_state=0).fit(X, labels(X))
    assert m.lift_.n_features_out_ == 16
    assert "sparse" not in m.plan_.way


def test_a_given_lift_of_thin_features_stays_sparse():
    from sklearn.preprocessing import OneHotEncoder

    X = np.random.default_rng(0).integers(0, 8, (200, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > 7).astype(int)
    m = KernelLogistic(lift=OneHotEncoder(), tol=1e-8).fit(X, y)
    dense = KernelLogistic(lift=OneHotEncoder(sparse_output=False), tol=1e-8).fit(X, y)
    assert m.plan_.way == "sparse newton"
    np.testing.assert_allclose(m.coef_, dense.coef_, atol=1e-6)
    assert KernelLogistic(lift=lifts.Identity()).fit(X, y).plan_.way == "newton"


def test_few_or_dense_rows_go_the_ways_of_before():
    X = sp.csr_array(np.random.default_rng(0).normal(size=(40, 5)))
    y = labels(X)
    assert KernelSVC("linear").fit(X, y).plan_.way != "sparse dual coordinate descent"
    assert KernelRidge("linear").fit(X, y).plan_.way == "cholesky"
    assert (
        KernelSVC("linear", via="exact")
        .fit(MARKET["wide"], labels(MARKET["wide"]))
        .n_support_.sum()
    )


def test_one_row_and_one_class_are_refused():
    X = drawn(0, 1, 40)
    for model in (KernelSVC("linear"), KernelLogistic("linear")):
        with pytest.raises(ValueError, match="class"):
            model.fit(X, [1])
        with pytest.raises(ValueError, match="class"):
            model.fit(MARKET["wide"], np.zeros(60))
    one = KernelRidge("linear").fit(X, [3.0])
    assert one.predict(X) == pytest.approx([3.0])


def test_rows_without_entries():
    X = sp.csr_array((6, 30))
    y = np.array([0, 1, 1, 1, 0, 1])
    for model in (KernelSVC("linear"), KernelLogistic("linear")):
        m = model.fit(X, y)
        assert not m.coef_.any()
        assert m.predict(X).tolist() == [1] * 6
    assert KernelRidge("linear").fit(X, y).predict(X) == pytest.approx([4 / 6] * 6)


def test_too_large_values_are_refused_in_a_sentence():
    X = drawn(0, 50, 60) * 1e200
    y = labels(drawn(0, 50, 60))
    for model in (KernelLogistic("linear"), KernelRidge("linear"), KernelSVC("linear")):
        with pytest.raises(ValueError, match="too large"), np.errstate(all="ignore"):
            model.fit(X, y)


def test_rounds_that_end_early_say_so():
    X = MARKET["wide"]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        KernelLogistic("linear", 1e-6, max_iter=1).fit(X, labels(X))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        KernelSVC("linear", C=1e3, tol=1e-9, max_iter=5).fit(X, labels(X))
    with pytest.warns(ConvergenceWarning, match="residual"):
        KernelRidge("linear", 1e-6, max_iter=2).fit(X, labels(X))


@pytest.mark.parametrize("name", [*MODELS, "perceptron"])
def test_memory_is_a_few_times_the_nonzeros(name):
    rng = np.random.default_rng(0)
    places = np.sort(rng.integers(0, 1 << 16, (2000, 130)), axis=1)
    X = sp.csr_array(
        (rng.random(260_000), places.ravel(), np.arange(0, 260_001, 130)), (2000, 1 << 16)
    )
    X.sum_duplicates()
    y = rng.integers(0, 2, 2000) if name not in ("ridge", "tube") else np.arange(2000.0)
    model = Perceptron(kernels.Linear(), max_iter=2) if name == "perceptron" else MODELS[name]()
    model.set_params(**({} if name == "perceptron" else {"tol": 1e-2}))
    own = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:50], y[:50])  # compiled before memory is looked at
        tracemalloc.start()
        try:
            model.fit(X, y)
            model.predict(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak <= 3 * own + 24 * 8 * X.shape[1]


def test_predictions_of_other_precisions_and_of_dense_rows():
    X = MARKET["wide"]
    m = KernelLogistic("linear").fit(X, labels(X))
    assert m.decision_function(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(m.decision_function(X.toarray()), m.decision_function(X), atol=1e-12)
    reference = LogisticRegression(tol=1e-10, max_iter=10**4).fit(X, labels(X))
    np.testing.assert_allclose(m.coef_, reference.coef_, atol=1e-4)


def test_ridge_over_sparse_rows_answers_what_the_exact_one_does():
    X, rng = MARKET["wide"], np.random.default_rng(0)
    y = X @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(size=X.shape[0])
    m = KernelRidge("linear", 0.1, tol=1e-10).fit(X, y)
    exact = KernelRidge("linear", 0.1, via="exact").fit(X, y)
    np.testing.assert_allclose(m.loo_predictions_, exact.loo_predictions_, atol=1e-6)
    np.testing.assert_allclose(m.predict_interval(X)[0], exact.predict_interval(X)[0], atol=1e-5)
    tall = MARKET["tall"]
    with pytest.raises(AttributeError, match="D x D"):
        KernelRidge("linear").fit(tall, labels(tall)).loo_predictions_  # noqa: B018


def test_ridge_chooses_penalties_by_folds_as_moments_do():
    X, rng = MARKET["copies"], np.random.default_rng(0)
    Y = X @ rng.normal(size=(X.shape[1], 2)) + 0.3 * rng.normal(size=(X.shape[0], 2))
    kinds = dict(cv=4, alphas=[1e-2, 0.1, 1.0, 10.0, 100.0], tol=1e-10)
    m = KernelRidge("linear", **kinds).fit(X, Y)
    dense = KernelRidge("linear", via=methods.Fourier(80), **kinds).fit(X.toarray(), Y)
    assert m.plan_.way == "sparse conjugate gradients"
    assert m.alpha_ == dense.alpha_
    np.testing.assert_allclose(m.cv_scores(), dense.cv_scores(), atol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", MARKET)
def test_scores_of_folds_are_those_of_the_models_themselves(name, intercept):
    X, rng = MARKET[name], np.random.default_rng(0)
    n, alphas = X.shape[0], [0.01, 1.0, 1e4]
    Y, w = rng.normal(size=(n, 2)) + 5, rng.integers(0, 3, n).astype(float)
    fold = rng.permutation(n) % 3
    cv = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]
    settings = dict(fit_intercept=intercept, tol=1e-9, max_iter=10_000)
    m = KernelRidge("linear", cv=cv, alphas=alphas, **settings).fit(X, Y, w)
    found = m.cv_scores(alphas)
    for i, alpha in enumerate(alphas):
        for j, (on, held) in enumerate(cv):
            one = KernelRidge("linear", alpha, **settings).fit(X[on], Y[on], w[on])
            left = w[held] @ np.square(Y[held] - one.predict(X[held].astype(np.float64)))
            each = Y[held] - np.average(Y[held], axis=0, weights=w[held])
            score = np.mean(1 - left / (w[held] @ np.square(each)))
            assert found[i, j] == pytest.approx(score, abs=1e-5)


def test_a_sparse_ridge_goes_on_as_a_stream():
    X, rng = MARKET["tall"], np.random.default_rng(0)
    y = rng.normal(size=X.shape[0])
    m = KernelRidge("linear", 0.3).fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    whole = KernelRidge("linear", 0.3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(m.predict(X), whole.predict(X), atol=1e-8)


@pytest.mark.parametrize("name", [*MODELS, "path", "many"])
def test_files(name, tmp_path):
    X = MARKET["wide"]
    y = labels(X, 3 if name == "many" else 2)
    made = {"path": KernelSVC("linear", cv=2, Cs=[0.1, 1.0]), "many": KernelLogistic("linear")}
    m = (made[name] if name in made else MODELS[name]()).fit(X, y)
    m.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.coef_, m.coef_)
    np.testing.assert_array_equal(again.predict(X), m.predict(X))
    assert str(again.plan_) == str(m.plan_)
    if name == "path":
        assert again.C_ == m.C_
