"""KernelSVC by its exact dual: LIBSVM's objective, optimality, odd data, many classes, probabilities and fewer vectors."""
import pickle
import tracemalloc
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from mercer.kernels import Callable, Gaussian, Laplace, Linear, Polynomial
from mercer.lifts import Monomials
from mercer.methods import Fourier
from mercer.models.svm import calibration, fit, hinge, plan
from mercer.models.svm.classifier import KernelSVC

EPS = float(np.finfo(np.float32).eps)
EQUIVALENCE = (check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))).argmax(1)


def objective(K, coef):
    """sum |b| - b'Kb/2 of a binary rule's coefficients at all rows."""
    return np.abs(coef).sum() - coef @ K @ coef / 2


def everywhere(m, n):
    coef = np.zeros(n)
    coef[m.support_] = m.dual_coef_[0]
    return coef


@pytest.mark.parametrize("options", [{}, {"loss": "squared_hinge", "multiclass": "ovr"}, {"kernel": "precomputed"}], ids=str)
def test_scikit_learn_contract(options):
    digits = {f.__name__: "compares to 1e-7; see below" for f in EQUIVALENCE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_estimator(KernelSVC(via="exact", **options), on_skip=None, expected_failed_checks=digits)


@pytest.mark.parametrize("check", EQUIVALENCE)
def test_weights_are_repetitions_to_the_digits_that_the_contract_asks_for(check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check("KernelSVC", KernelSVC(tol=1e-12))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(3), Laplace(2.0)], ids=repr)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_is_that_of_libsvm(kernel, C, dtype):
    X, y = data()
    K = kernel(X)
    m = KernelSVC(kernel, C=C, via="exact", memory_limit="1MB").fit(X.astype(dtype), y)
    twin = SVC(kernel="precomputed", C=C, tol=1e-3).fit(K, y)
    ours, theirs = (objective(K, everywhere(e, len(y))) for e in (m, twin))
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert m.objective_ == pytest.approx(ours, rel=1e-4)
    assert np.mean(m.predict(X) == twin.predict(K)) >= 0.99
    best = objective(K, everywhere(SVC(kernel="precomputed", C=C, tol=1e-7).fit(K, y), len(y)))
    assert best - ours <= m.gap_ * best + 1e-6 * best  # the gap bounds the distance to the optimum


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimality_conditions_hold(C, fit_intercept, loss):
    X, y = data()
    m = KernelSVC(Gaussian(), C=C, loss=loss, via="exact", fit_intercept=fit_intercept, tol=1e-5).fit(X, y)
    coef, s = everywhere(m, len(y)), np.where(y == 1, 1, -1)
    alpha, margin = coef * s, s * m.decision_function(X)
    assert (alpha >= 0).all()
    if loss == "hinge":
        assert alpha.max() <= C
        assert (margin[alpha == 0] >= 1 - 1e-4).all()
        assert (margin[alpha == C] <= 1 + 1e-4).all()
        np.testing.assert_allclose(margin[(alpha > 0) & (alpha < C)], 1, atol=1e-4)
    else:
        np.testing.assert_allclose(alpha, 2 * C * np.maximum(1 - margin, 0), atol=2 * C * 1e-4)
    assert abs(coef.sum()) < 1e-9 * C or not fit_intercept
    assert (m.intercept_ == 0).all() or fit_intercept


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("bandwidth", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_all_penalties_and_bandwidths(C, bandwidth):
    X, y = data(80, 2)
    m = KernelSVC(Gaussian(bandwidth), C=C, via="exact").fit(X, y)
    K = Gaussian(bandwidth)(X)
    coef, s = everywhere(m, len(y)), np.where(y == 1, 1, -1)
    hinge = np.maximum(1 - s * (K @ coef + m.intercept_), 0)
    primal, dual = coef @ K @ coef / 2 + C * hinge.sum(), objective(K, coef)
    assert primal - dual <= max(1.01e-5 * dual, 1.01e-3 * C * len(y)) + 1e-7 * primal  # one of the two rules stopped it
    assert np.isfinite(m.decision_function(X)).all()
    if bandwidth <= 1e-3 and C >= 1:
        assert m.score(X, y) == 1  # every row is alone


def test_duplicates_and_opposite_labels():
    X, y = data(60)
    X2, y2 = np.concatenate([X, X, X[:20]]), np.concatenate([y, y, 1 - y[:20]])
    m = KernelSVC(Gaussian(), C=10.0, via="exact").fit(X2, y2)
    twin = SVC(gamma=0.5, C=10.0).fit(X2, y2)
    K = Gaussian()(X2)
    assert objective(K, everywhere(m, len(y2))) == pytest.approx(objective(K, everywhere(twin, len(y2))), rel=1e-4)


def test_collinear_rows_and_constant_columns():
    X = np.linspace(-1, 1, 50)[:, None] * [1.0, -2.0, 0.0] + [0, 0, 7.0]
    m = KernelSVC(Linear(), C=10.0, via="exact").fit(X, X[:, 0] > 0.2)
    assert m.score(X, X[:, 0] > 0.2) >= 0.98


def test_separable_data_is_separated_at_the_widest_margin():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    m = KernelSVC(Linear(), C=1e6, via="exact", tol=1e-8).fit(X, [0, 0, 1, 1])
    coef = m.dual_coef_[0] @ m.support_vectors_
    np.testing.assert_allclose([*coef, *m.intercept_], [0.5, 0, -1], atol=1e-6)


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_hopeless_data_ends(C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    m = KernelSVC(Linear(), C=C, via="exact").fit(X, y)
    assert m.gap_ <= 1e-3
    assert m.objective_ <= C * 2 * min(y.sum(), 300 - y.sum())


def test_two_rows():
    m = KernelSVC(via="exact").fit([[0.0], [1.0]], ["a", "b"])
    assert m.predict([[-1.0], [2.0]]).tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", [3, 5])
def test_pairs_of_classes_are_those_of_libsvm(classes):
    X, y = data(400, classes=classes, noise=0.2)
    m = KernelSVC(Gaussian(), C=3.0, via="exact", tol=1e-6).fit(X, y)
    twin = SVC(gamma=0.5, C=3.0, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(m.support_, twin.support_)
    np.testing.assert_array_equal(m.n_support_, twin.n_support_)
    np.testing.assert_allclose(np.abs(m.dual_coef_), np.abs(twin.dual_coef_), atol=1e-3)
    np.testing.assert_allclose(m._raw(X) + m.intercept_, twin.decision_function(X), atol=1e-4)
    assert np.mean(m.predict(X) == twin.predict(X)) >= 0.98  # ties between votes are ours to settle
    assert m.decision_function(X).shape == (400, classes)


def test_one_against_the_rest_is_each_alone():
    X, y = data(200, classes=3)
    m = KernelSVC(Gaussian(), via="exact", multiclass="ovr", tol=1e-6).fit(X, y)
    assert m.dual_coef_.shape == (3, len(m.support_))
    for k in range(3):
        alone = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X, y == k)
        np.testing.assert_allclose(m.decision_function(X)[:, k], alone.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_many_rows_go_by_blocks_and_agree_with_one_block(monkeypatch, multiclass):
    X, y = data(420, classes=3)
    whole = KernelSVC(Gaussian(), via="exact", multiclass=multiclass, tol=1e-4).fit(X, y)
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 100)
    monkeypatch.setattr("mercer.models.svm.blocks.MIN_BLOCK", 64)
    blocks = KernelSVC(Gaussian(), via="exact", multiclass=multiclass, tol=1e-4).fit(X, y)
    assert blocks.n_iter_ > whole.n_iter_
    assert blocks.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X), atol=0.02)


def test_a_given_matrix_is_its_kernel():
    X, y = data(150, classes=3)
    own = KernelSVC(Gaussian(), via="exact").fit(X[:100], y[:100])
    given = KernelSVC("precomputed").fit(Gaussian()(X[:100]), y[:100])
    np.testing.assert_allclose(given.decision_function(Gaussian()(X[100:], X[:100])), own.decision_function(X[100:]), atol=1e-4)
    search = GridSearchCV(KernelSVC("precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(Gaussian()(X), y)
    assert search.best_score_ > 0.4
    with pytest.raises(ValueError, match="square"):
        KernelSVC("precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])


def test_weights_and_classes_bound_the_duals():
    X, y = data(150)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X, y, w)
    repeated = KernelSVC(Gaussian(), via="exact", tol=1e-6).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
    assert (w[weighted.support_] > 0).all()
    m = KernelSVC(Gaussian(), via="exact", class_weight={0: 5.0}).fit(X, y)
    twin = SVC(gamma=0.5, class_weight={0: 5.0}).fit(X, y)
    np.testing.assert_allclose(m.decision_function(X), twin.decision_function(X), atol=5e-3)
    with pytest.raises(ValueError, match="class_weight names 7"):
        KernelSVC(via="exact", class_weight={7: 1.0}).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_warm_starts_along_C_end_where_cold_ones_do(classes):
    X, y = data(200, classes=classes)
    m = KernelSVC(Gaussian(), C=1.0, via="exact", warm_start=True).fit(X, y)
    for C in (1.2, 1.5):
        steps = m.set_params(C=C).fit(X, y).plan_.settings["steps"]
        cold = KernelSVC(Gaussian(), C=C, via="exact").fit(X, y)
        assert steps < cold.plan_.settings["steps"]
        assert m.objective_ == pytest.approx(cold.objective_, rel=1e-4)
    assert m.fit(X, 1 - y if classes == 2 else (y + 1) % 3).score(X, 1 - y if classes == 2 else (y + 1) % 3) > 0.5


def test_sparse_rows_are_dense_ones():
    X, y = data(120, d=6)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    dense = KernelSVC(Gaussian(), via="exact").fit(X, y)
    for memory in (None, 100):  # dense tiles, and products of sparse rows
        sparse = KernelSVC(Gaussian(), via="exact", memory_limit=memory).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=2e-3)
        assert sp.issparse(sparse.support_vectors_)


def test_dtypes_names_and_pickles():
    X, y = data(100)
    m = KernelSVC(via="exact").fit(X.astype(np.float32), y)
    assert m.decision_function(X.astype(np.float32)).dtype == np.float32
    assert m.support_vectors_.dtype == np.float32
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    by_name = KernelSVC(Gaussian().on_columns(["c"]), via="exact", probability=True).fit(frame, y)
    by_place = KernelSVC(Gaussian().on_columns([2]), via="exact", probability=True).fit(X, y)
    np.testing.assert_array_equal(by_name.predict_proba(frame), by_place.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(by_name)).predict(frame), by_place.predict(X))


def test_auto_is_exact_for_few_rows_and_features_beyond(monkeypatch):
    X, y = data(100)
    assert KernelSVC().fit(X, y).plan_.way == "exact dual"
    assert hasattr(KernelSVC(lift=Monomials(2)).fit(X, y), "coef_")
    monkeypatch.setattr(plan, "EXACT_ROWS", 50)
    m = KernelSVC(random_state=0).fit(X, y)
    assert "not exact dual: 100 rows are more than 50" in str(m.plan_)
    assert hasattr(m, "coef_")
    assert not hasattr(m.set_params(via="exact").fit(X, y), "coef_")
    assert not hasattr(m.set_params(via=Fourier(50)).fit(X, y), "dual_coef_")


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_calibrated(classes):
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(900, 1))
        score = np.concatenate([np.zeros((900, 1)), 2 * X * np.arange(1, classes)], axis=1)
        truth = np.exp(score) / np.exp(score).sum(1, keepdims=True)
        y = (rng.random((900, 1)) > truth.cumsum(1)).sum(1)
        m = KernelSVC(Gaussian(1.0), C=1.0, via="exact", probability=True).fit(X, y)
        p = m.predict_proba(X)
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
        np.testing.assert_allclose(np.exp(m.predict_log_proba(X)), p, atol=1e-6)
        errors.append(np.abs(p - truth).mean())
    assert np.mean(errors) < (0.1 if classes == 2 else 0.12)
    assert not hasattr(KernelSVC(), "predict_proba")
    with pytest.raises(ValueError, match="two rows of every class"):
        KernelSVC(probability=True).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


@pytest.mark.parametrize(("classes", "multiclass"), [(2, "auto"), (3, "ovo"), (3, "ovr")])
def test_fewer_support_vectors_at_a_measured_cost(classes, multiclass):
    X, y = data(600, d=2, classes=classes)
    m = KernelSVC(Gaussian(1.0), via="exact", multiclass=multiclass).fit(X, y)
    small = m.compress(40, X)
    cost = small.compression_
    assert (len(small.support_), small.n_support_.sum(), cost.before) == (40, 40, len(m.support_))
    before, after = m._raw(X), small._raw(X)
    assert cost.rms == pytest.approx(np.sqrt(np.mean((before - after) ** 2)), rel=1e-3, abs=1e-6)
    assert cost.changed == np.mean(m.predict(X) != small.predict(X))
    assert cost.changed < 0.02
    assert m.compress(5, X).compression_.error > cost.error
    assert len(m.support_) > 40  # the model itself is as it was
    assert f"40 of {len(m.support_)} support vectors" in str(cost)


def test_boundaries_of_note_003():
    """Linear, cubic and RBF boundaries: the moons need more than a line, and an RBF does best."""
    scores = []
    for seed in range(3):
        X, y = make_moons(400, noise=0.15, random_state=seed)
        kernels = (Linear(), Polynomial(3), Gaussian(0.5))
        scores.append([KernelSVC(k, C=10.0, via="exact").fit(X[:200], y[:200]).score(X[200:], y[200:]) for k in kernels])
    linear, cubic, rbf = np.mean(scores, axis=0)
    assert 0.8 < linear < 0.93
    assert cubic > linear + 0.03
    assert rbf > 0.97
    assert rbf >= cubic - 0.01


def test_what_is_refused():
    X, y = data(20)
    for options, text in (
        (dict(via="dual"), "via must be one of exact"),
        (dict(multiclass="all"), "multiclass must be"),
        (dict(via="features", multiclass="ovo"), "need via='exact'"),
        (dict(via="exact", lift=Monomials(2)), "a lift is the feature map itself"),
        (dict(tol=0.0), "tol must be a number > 0"),
        (dict(loss="log"), "loss must be one of"),
    ):
        with pytest.raises(ValueError, match=text):
            KernelSVC(**options).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        KernelSVC(via="exact").fit(X, np.ones(20))
    with pytest.raises(ValueError, match="at least two classes"):
        KernelSVC(via="exact").fit(X, y, y)
    with pytest.raises(ValueError, match="non-zero"):
        KernelSVC(via="exact").fit(X, y, np.zeros(20))
    with pytest.raises(ValueError, match="scale the columns"):
        KernelSVC(Linear(), via="exact").fit(X * 1e150, y)
    with pytest.raises(ValueError, match="budget must be an integer"):
        KernelSVC(via="exact").fit(X, y).compress(0)
    with pytest.raises(ValueError, match="compress needs a kernel"):
        KernelSVC("precomputed").fit(X @ X.T, y).compress(3)


def test_a_warning_where_rounds_run_out(monkeypatch):
    X, y = data(300)
    monkeypatch.setattr("mercer.models.svm.solver.STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol, or lower C"):
        KernelSVC(Linear(), C=1e3, via="exact", max_iter=1, tol=1e-9).fit(X, y)


def test_all_pairs_are_there():
    X, y = data(200, classes=4)
    m = KernelSVC(via="exact").fit(X, y)
    assert len(m.intercept_) == len(list(combinations(range(4), 2)))
    assert m.dual_coef_.shape == (3, len(m.support_))


@pytest.mark.parametrize("change", [{"fit_intercept": True}, {"loss": "squared_hinge"}, {"multiclass": "ovr"}], ids=str)
def test_warm_starts_only_where_the_problems_are_the_same(change):
    X, y = data(150, classes=3)
    first = {"fit_intercept": False, "loss": "hinge", "multiclass": "ovo"}
    m = KernelSVC(Gaussian(), via="exact", warm_start=True, **first).fit(X, y)
    m.set_params(**change, C=2.0).fit(X, y)
    cold = KernelSVC(Gaussian(), C=2.0, via="exact", **{**first, **change}).fit(X, y)
    np.testing.assert_array_equal(m.decision_function(X), cold.decision_function(X))
    assert m.set_params(warm_start=False).fit(X, y)._last is None


@pytest.mark.parametrize("C", [0.1, 0.03, 0.01, 0.003])
@pytest.mark.parametrize("seed", range(3))
def test_a_dual_one_rounding_off_its_bound_does_not_set_the_intercept(C, seed):
    X, y = make_classification(300, 8, n_informative=6, flip_y=0.2, random_state=seed)
    warm = KernelSVC(Gaussian(2.0), C=100.0, via="exact", warm_start=True).fit(X, y).set_params(C=C).fit(X, y)
    cold = KernelSVC(Gaussian(2.0), C=C, via="exact").fit(X, y)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=5e-3)
    assert warm.score(X, y) == pytest.approx(cold.score(X, y), abs=0.01)


@pytest.mark.parametrize("C", [1e-3, 1e-2])
def test_balanced_classes_at_a_small_C_are_both_found(C):
    scores = []
    for seed in range(5):
        X, y = make_classification(200, 8, n_informative=6, weights=[0.7], flip_y=0.1, random_state=seed)
        m = KernelSVC(Gaussian(2.0), C=C, via="exact", class_weight="balanced").fit(X, y)
        scores.append(balanced_accuracy_score(y, m.predict(X)))
    assert min(scores) > 0.75


@pytest.mark.parametrize("bad", [{"C": -1.0}, {"loss": "log"}, {"via": "dual"}, {"kernel": Linear(), "memory_limit": "much"}], ids=str)
def test_a_refused_fit_leaves_the_model_as_it_was(bad):
    X, y = data(60)
    m = KernelSVC(Gaussian(), via="exact", probability=True).fit(X, y)
    before = m.predict_proba(X)
    with pytest.raises(ValueError, match="must be"):
        m.set_params(**bad).fit(X, y)
    m.set_params(kernel=Gaussian(), memory_limit=None)
    np.testing.assert_array_equal(m.predict_proba(X), before)


def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    X, y = data(60)
    m = KernelSVC(Gaussian(), via="exact").fit(X, y)
    before, kept = m.decision_function(X), set(vars(m))

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "one_vs_rest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        m.set_params(C=2.0).fit(X, y)
    assert set(vars(m)) == kept
    np.testing.assert_array_equal(m.decision_function(X), before)


@pytest.mark.parametrize("via", ["exact", "features"])
def test_too_few_rows_for_probabilities_are_told_before_anything_is_solved(monkeypatch, via):
    def solved(*args, **options):
        raise AssertionError("solved first")

    monkeypatch.setattr(fit, "one_vs_rest", solved)
    monkeypatch.setattr(hinge, "HingeDual", solved)
    with pytest.raises(ValueError, match="two rows of every class"):
        KernelSVC(via=via, probability=True, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [100.0, 400.0])
def test_the_gap_is_that_of_the_kernel_not_of_its_rounding(C, dtype):
    X, y = make_classification(2200, 8, n_informative=6, flip_y=0.3, random_state=2)
    X = X.astype(np.float32)
    m = KernelSVC(Gaussian(2.0), C=C, via="exact").fit(X.astype(dtype), y)
    K, s = Gaussian(2.0)(X.astype(np.float64)), np.where(y == 1, 1, -1)
    coef = everywhere(m, len(y))
    hinge = np.maximum(1 - s * (K @ coef + m.intercept_), 0)
    dual = objective(K, coef)
    assert (coef @ K @ coef / 2 + C * hinge.sum() - dual) / dual <= m.gap_ + 2e-4
    assert m.plan_.settings["kernel_values"] == "float64" or EPS * C * len(y) ** 0.5 <= 1e-3


@pytest.mark.parametrize("via", ["exact", "features"])
def test_probabilities_do_not_depend_on_the_unit_of_weights(via):
    X, y = data(150)
    w = np.random.default_rng(0).random(150)
    plain = KernelSVC(Gaussian(), via=via, probability=True, random_state=0).fit(X, y, w)
    scaled = KernelSVC(Gaussian(), C=2.0**10, via=via, probability=True, random_state=0).fit(X, y, w / 2**10)
    np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_folds_go_the_way_of_the_model(monkeypatch):
    X, y = data(100)
    monkeypatch.setattr(plan, "EXACT_ROWS", 90)
    ways = []
    own = {name: getattr(fit, name) for name in ("over_rows", "over_features")}
    for name in own:
        monkeypatch.setattr(fit, name, lambda *args, name=name: ways.append(name) or own[name](*args))
    KernelSVC(probability=True, random_state=0).fit(X, y)
    assert ways == ["over_features"] * (calibration.FOLDS + 1)


def test_nothing_of_a_former_fit_stays():
    X, y = data(80)
    m = KernelSVC(via="exact", probability=True, random_state=0).fit(X, y)
    m.set_params(probability=False, via="features", loss="squared_hinge").fit(X, y)
    for name in ("sigmoid_", "gap_", "support_", "dual_coef_"):
        assert not hasattr(m, name)
    small = KernelSVC(via="exact").fit(X, y).compress(5)
    assert not hasattr(small.fit(X, y), "compression_")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("C", "scale"), [(1e4, 1.0), (1e6, 1.0), (1.0, 1e3)])
def test_linear_kernels_at_a_large_C_end(loss, C, scale):
    X, y = data(300, 6)
    m = KernelSVC(Linear(), C=C, loss=loss, via="exact", max_iter=200).fit(X * scale, y)
    assert m.gap_ <= 1e-3
    assert m.score(X * scale, y) >= KernelSVC(Linear(), C=1.0, via="exact").fit(X, y).score(X, y) - 0.03


def test_the_plan_says_what_ended_it_and_counts_the_blocks():
    X, y = data(100)
    m = KernelSVC(Gaussian(0.01), C=1e5, via="exact").fit(X, y)
    assert m.gap_ <= 1e-3
    assert m.plan_.settings["ended_by"] in ("gap", "slopes")
    assert m.plan_.bytes >= 4 * 100 * 100


def test_blocks_stay_near_the_limit_of_memory():
    X, y = data(3000, 4)
    KernelSVC(Gaussian(), via="exact").fit(X[:2100], y[:2100])  # compiled
    tracemalloc.start()
    m = KernelSVC(Gaussian(), via="exact", memory_limit="4MB").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert m.plan_.bytes <= 4e6
    assert peak < 12e6  # vectors of n and tiles beside the limit; one block of 2,048 would be 17 MB
    assert m.gap_ <= 1e-3


def jaccard(A, B):
    return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in B] for a in A])


def test_targets_of_items_are_checked():
    words, y = ["kitten", "mitten", "dog", "fog"] * 3, [0.0, 0.0, 1.0, 1.0] * 3
    assert KernelSVC(Callable(jaccard)).fit(words, y).predict(["hog"]) == [1]
    with pytest.raises(ValueError, match="NaN"):
        KernelSVC(Callable(jaccard)).fit(words, [np.nan, *y[1:]])
    with pytest.raises(ValueError, match="1d array"):
        KernelSVC(Callable(jaccard)).fit(words, np.column_stack([y, y]))


@pytest.mark.parametrize("C", [1e-300, 1e-30, 1e-12])
def test_the_smallest_C_gives_numbers(C):
    X, y = data(60)
    m = KernelSVC(Gaussian(), C=C, loss="squared_hinge", via="exact").fit(X, y)
    assert np.isfinite(m.decision_function(X)).all()
    mean = np.mean(np.where(y == 1, 1.0, -1.0))
    np.testing.assert_allclose(m.intercept_, mean, atol=1e-3)  # the best constant


def test_given_matrices_that_are_no_kernels():
    X, y = data(80)
    K = Gaussian()(X)
    with pytest.warns(UserWarning, match="negative eigenvalues"):
        KernelSVC("precomputed").fit(K - 2 * np.eye(80), y)
    K[0, 1] += 0.5
    with pytest.raises(ValueError, match="symmetric"):
        KernelSVC("precomputed").fit(K, y)


def test_what_cannot_be_compressed_says_why():
    X, y = data(80)
    m = KernelSVC(via="exact").fit(X, y)
    assert len(m.compress(5, random_state=np.random.RandomState(0)).support_) == 5
    with pytest.raises(ValueError, match="random_state must be"):
        m.compress(5, random_state="a")
    with pytest.raises(ValueError, match="a model over features has none"):
        KernelSVC(via="features", random_state=0).fit(X, y).compress(5)


def test_probabilities_of_float32_are_float32():
    X, y = data(80, classes=3)
    X = X.astype(np.float32)
    for labels in (y, y == 1):
        assert KernelSVC(via="exact", probability=True).fit(X, labels).predict_proba(X).dtype == np.float32


@pytest.mark.parametrize(("name", "of"), [
    ("rbf", lambda X: np.exp(-cdist(X, X, "sqeuclidean") / X.var(0).sum())),
    ("linear", lambda X: X @ X.T),
    ("poly", lambda X: (1 + X @ X.T) ** 3),
    ("laplacian", lambda X: np.exp(-cdist(X, X, "cityblock") / X.shape[1])),
])  # fmt: skip
def test_names_are_the_kernels_that_the_docstring_says(name, of):
    X, y = data(60)
    np.testing.assert_allclose(KernelSVC(name, via="exact").fit(X, y).kernel_(X), of(X), rtol=1e-8)
