"""KernelSVC: scikit-learn's contract, what is refused, fits that fail and leave the model, given
matrices, items, types."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from mercer.kernels import Callable, Gaussian, Linear, Polynomial
from mercer.lifts import Monomials
from mercer.models.svm import fit
from mercer.models.svm.classifier import KernelSVC
from tests.contract import keeps_contract

EQUIVALENCE = (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "squared_hinge", "multiclass": "ovr"}, {"kernel": "precomputed"}],
    ids=str,
)
def test_scikit_learn_contract(options):
    exact = options.get("kernel") == "precomputed"  # Gram matrices of whole numbers, few steps
    digits = {} if exact else {f.__name__: "compares to 1e-7; see below" for f in EQUIVALENCE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        keeps_contract(KernelSVC(via="exact", **options), digits)


@pytest.mark.parametrize("check", EQUIVALENCE)
def test_weights_are_repetitions_to_the_digits_that_the_contract_asks_for(check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check("KernelSVC", KernelSVC(tol=1e-12))


def test_a_given_matrix_is_its_kernel():
    X, y = data(150, classes=3)
    own = KernelSVC(Gaussian(), via="exact").fit(X[:100], y[:100])
    given = KernelSVC("precomputed").fit(Gaussian()(X[:100]), y[:100])
    np.testing.assert_allclose(
        given.decision_function(Gaussian()(X[100:], X[:100])),
        own.decision_function(X[100:]),
        atol=1e-4,
    )
    search = GridSearchCV(KernelSVC("precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(Gaussian()(X), y)
    assert search.best_score_ > 0.4
    with pytest.raises(ValueError, match="square"):
        KernelSVC("precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])


def test_sparse_rows_are_dense_ones():
    X, y = data(120, d=6)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    dense = KernelSVC(Gaussian(), via="exact").fit(X, y)
    for memory in (None, 100):  # dense tiles, and products of sparse rows
        sparse = KernelSVC(Gaussian(), via="exact", memory_limit=memory).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(
            sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=2e-3
        )
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
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(by_name)).predict(frame), by_place.predict(X)
    )


def test_boundaries_of_note_003():
    """Linear, cubic and RBF boundaries: the moons need more than a line, and an RBF does best."""
    scores = []
    for seed in range(3):
        X, y = make_moons(400, noise=0.15, random_state=seed)
        kernels = (Linear(), Polynomial(3), Gaussian(0.5))
        scores.append(
            [
                KernelSVC(k, C=10.0, via="exact").fit(X[:200], y[:200]).score(X[200:], y[200:])
                for k in kernels
            ]
        )
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


@pytest.mark.parametrize("C", [1e-3, 1e-2])
def test_balanced_classes_at_a_small_C_are_both_found(C):
    scores = []
    for seed in range(5):
        X, y = make_classification(
            200, 8, n_informative=6, weights=[0.7], flip_y=0.1, random_state=seed
        )
        m = KernelSVC(Gaussian(2.0), C=C, via="exact", class_weight="balanced").fit(X, y)
        scores.append(balanced_accuracy_score(y, m.predict(X)))
    assert min(scores) > 0.75


@pytest.mark.parametrize(
    "bad",
    [{"C": -1.0}, {"loss": "log"}, {"via": "dual"}, {"kernel": Linear(), "memory_limit": "much"}],
    ids=str,
)
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


def test_nothing_of_a_former_fit_stays():
    X, y = data(80)
    m = KernelSVC(via="exact", probability=True, random_state=0).fit(X, y)
    m.set_params(probability=False, via="features", loss="squared_hinge").fit(X, y)
    for name in ("sigmoid_", "gap_", "support_", "dual_coef_"):
        assert not hasattr(m, name)
    small = KernelSVC(via="exact").fit(X, y).compress(5)
    assert not hasattr(small.fit(X, y), "compression_")


def jaccard(A, B):
    return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in B] for a in A])


def test_targets_of_items_are_checked():
    words, y = ["kitten", "mitten", "dog", "fog"] * 3, [0.0, 0.0, 1.0, 1.0] * 3
    assert KernelSVC(Callable(jaccard)).fit(words, y).predict(["hog"]) == [1]
    with pytest.raises(ValueError, match="NaN"):
        KernelSVC(Callable(jaccard)).fit(words, [np.nan, *y[1:]])
    with pytest.raises(ValueError, match="1d array"):
        KernelSVC(Callable(jaccard)).fit(words, np.column_stack([y, y]))


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


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("rbf", lambda X: np.exp(-cdist(X, X, "sqeuclidean") / X.var(0).sum())),
        ("linear", lambda X: X @ X.T),
        ("poly", lambda X: (1 + X @ X.T) ** 3),
        ("laplacian", lambda X: np.exp(-cdist(X, X, "cityblock") / X.shape[1])),
    ],
)
def test_names_are_the_kernels_that_the_docstring_says(name, of):
    X, y = data(60)
    np.testing.assert_allclose(KernelSVC(name, via="exact").fit(X, y).kernel_(X), of(X), rtol=1e-8)
