"""KernelPerceptron: the mistakes as points, within a budget, with live mistakes and bounds."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Laplace, Linear
from mercer.kernels.rkhs import RKHSFunction
from mercer.models.perceptron import KernelPerceptron
from mercer.models.perceptron.budget import POLICIES


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.5
    radius, angle = (
        np.where(inside, rng.uniform(0, 1, n), rng.uniform(1.5, 2.5, n)),
        rng.uniform(0, 2 * np.pi, n),
    )
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(
        inside, "in", "out"
    )


def iris(seed=0):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize(
    "model",
    [
        KernelPerceptron(),
        KernelPerceptron(budget=15, average=2, shuffle=True),
        KernelPerceptron(budget=15, policy="merging", margin=0.5),
    ],
    ids=["plain", "projectron", "merging"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_for_any_comparator(seed):
    X, y = rings(seed=seed)
    k = Gaussian(1.0)
    u = KernelPerceptron(k, max_iter=50).fit(X, y).as_functions()[0]
    for scale in (0.1, 1.0):
        m = KernelPerceptron(k, max_iter=7, comparator=scale * u).fit(X, y)
        assert m.mistakes_ <= m.bound_ < np.inf
        assert m.mistakes_ <= m.mistake_bound(X, y, scale * u) <= m.bound_ * (1 + 1e-9)


def test_the_bound_holds_for_many_classes():
    X, y = iris()
    u = KernelPerceptron(Gaussian(1.0), max_iter=100).fit(X, y).as_functions()
    m = KernelPerceptron(Gaussian(1.0), max_iter=20, comparator=u).fit(X, y)
    assert m.mistakes_ <= m.mistake_bound(X, y, u) <= m.bound_ * (1 + 1e-9)


def test_a_comparator_of_another_space_is_refused():
    X, y = rings(50)
    for u in (RKHSFunction(Gaussian(3.0), [[0.0, 0.0]], [1.0]), [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"comparator must be 1 RKHSFunction"):
            KernelPerceptron(Gaussian(1.0), comparator=u).fit(X, y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(budget=10, policy="newest"), "policy must be one of random"),
        (dict(budget=1), "budget must be an integer >= 2"),
        (dict(kernel=Linear(), budget=5, policy="merging"), "needs a Gaussian"),
        (dict(margin=-1.0), "margin must be a number >= 0"),
        (dict(average="late"), "average must be a number"),
        (dict(max_iter=0), "max_iter"),
        (dict(eta=0.0), "eta must be"),
    ],
    ids=["policy", "budget", "merging", "margin", "average", "max_iter", "eta"],
)
def test_wrong_settings_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        KernelPerceptron(**options).fit(*rings(50))


def test_refused_batches_change_nothing():
    X, y = rings(100)
    m = KernelPerceptron(Linear() + 1, 10).partial_fit(X, y)
    before = m.decision_function(X), m.mistakes_
    bad = [
        (X[:, :1], y, "1 features"),
        (X * np.nan, y, "NaN"),
        (X, np.full(100, "on"), "'on'"),
        (1e200 * X, y, "too large"),
    ]
    for rows, labels, match in bad:
        with pytest.raises(ValueError, match=match):
            m.partial_fit(rows, labels)
        np.testing.assert_array_equal(m.decision_function(X), before[0])
        assert m.mistakes_ == before[1]


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only, 1"):
        KernelPerceptron().partial_fit([[1.0]], [1])
    assert KernelPerceptron().partial_fit([[1.0]], [1], classes=[0, 1]).predict([[1.0]]) == [1]


@pytest.mark.parametrize("policy", POLICIES)
def test_float32_stays(policy):
    X, y = rings()
    m = KernelPerceptron(Gaussian(), 20, policy).fit(X.astype(np.float32), y)
    assert m.decision_function(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("policy", POLICIES)
def test_copies_and_far_points_do_no_harm(policy):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [1e6, 0.0], [0.0, 0.0]], 40, axis=0)[
        np.random.default_rng(0).permutation(160)
    ]
    y = np.where(X[:, 0] > 0.5, 1, 0)
    m = KernelPerceptron(Gaussian(), 3, policy, margin=0.3, average=True, random_state=0).fit(X, y)
    assert np.isfinite(m.decision_function(X)).all()
    assert len(m.points_) <= 3


BAD = {
    "policy": (dict(policy="x"), 1.0),
    "policies": (dict(policy=["x"]), 1.0),
    "budget": (dict(budget=1), 1.0),
    "eta": (dict(eta=-1.0), 1.0),
    "comparator": (dict(comparator=3), 1.0),
    "merging": (dict(kernel=Linear(), budget=5, policy="merging"), 1.0),
    "huge": (dict(kernel=Linear()), 1e200),
    "unsquarable": (dict(kernel="rbf"), 1e200),
    "kernel": (dict(kernel="cosines"), 1.0),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_a_refusal_changes_nothing(way, fitted, name):
    X, y = rings(60)
    options, size = BAD[name]
    m = KernelPerceptron(Laplace())
    if fitted:
        m.fit(X, y)
    m.set_params(**options)
    before = dict(vars(m))
    with pytest.raises(ValueError, match=r"\.$"):
        getattr(m, way)(size * X, y)
    assert list(vars(m)) == list(before)
    assert all(vars(m)[key] is before[key] for key in before)


def test_a_bad_first_batch_leaves_an_unfitted_model():
    m = KernelPerceptron(Gaussian())
    before = dict(vars(m))
    for X, y, classes in (([[1.0]], [1], None), ([[np.nan]], [1], [0, 1]), ([[1.0]], [2], [0, 1])):
        with pytest.raises(ValueError, match=r"one class only|NaN|does not know"):
            m.partial_fit(X, y, classes)
        assert vars(m) == before
    assert m.partial_fit([[1.0, 2.0]], [1], [0, 1]).n_features_in_ == 2


def test_other_classes_in_the_middle_of_a_stream_are_refused():
    X, y = rings(60)
    m = KernelPerceptron(Gaussian()).partial_fit(X, y)
    m.partial_fit(X, y, classes=["out", "in", "in"])
    with pytest.raises(
        ValueError, match="classes differ from those of the first partial_fit, 'in', 'out'"
    ):
        m.partial_fit(X, y, classes=["in", "out", "on"])


@pytest.mark.parametrize("passes", [0, -1, 1.5, "x"])
def test_passes_of_a_bound(passes):
    X, y = rings(60)
    m = KernelPerceptron(Gaussian()).fit(X, y)
    with pytest.raises(ValueError, match="passes must be an integer >= 1, got"):
        m.mistake_bound(X, y, passes=passes)
    assert m.mistake_bound(X, y, passes=1) <= m.mistake_bound(X, y, passes=5)


@pytest.mark.parametrize(
    "options",
    [
        dict(policy=["x"]),
        dict(policy=np.zeros(10_000)),
        dict(comparator=3),
        dict(comparator=np.zeros(10_000)),
        dict(comparator=["u"]),
        dict(margin=np.zeros(10_000)),
        dict(average=list(range(10_000))),
        dict(budget=np.zeros(10_000)),
        dict(max_iter=np.zeros(10_000)),
        dict(comparator=RKHSFunction(Laplace(), np.zeros((500, 2)), np.zeros(500))),
    ],
    ids=[
        "list",
        "policies",
        "number",
        "numbers",
        "names",
        "margins",
        "averages",
        "budgets",
        "passes",
        "another",
    ],
)
def test_odd_settings_are_refused_by_a_short_sentence(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"^{name} must be .* got .*\\.$") as told:
        KernelPerceptron(Gaussian(), **options).fit(*rings(60))
    assert len(str(told.value)) < 160


def test_the_fitted_kernel_reads_the_rows():
    X, y = rings(60)
    m = KernelPerceptron(Gaussian()).fit(X, y)
    want = m.decision_function(X)
    np.testing.assert_array_equal(m.set_params(kernel="precomputed").decision_function(X), want)
    assert m.points_.shape[1] == 2
    m.fit(Gaussian()(X), y)
    np.testing.assert_allclose(
        m.set_params(kernel=Gaussian()).decision_function(Gaussian()(X)), want
    )
    assert m.support_.max() < 60
    assert m.fit(X, y).points_.shape[1] == 2


def test_what_average_means():
    X, y = rings(200)
    scores = {
        repr(a): KernelPerceptron(Gaussian(), average=a).fit(X, y).decision_function(X)
        for a in (False, True, 0, 1, 0.0)
    }
    np.testing.assert_array_equal(scores["0"], scores["True"])
    np.testing.assert_array_equal(scores["0.0"], scores["True"])
    assert not np.allclose(scores["0"], scores["False"])
    assert not np.allclose(scores["1"], scores["True"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_too_large_are_refused_by_a_sentence_alone(dtype):
    X, y = rings(60)
    big = (1e200 if dtype == np.float64 else 1e30) * X.astype(dtype)
    m = KernelPerceptron(Linear()).fit(1e5 * X.astype(dtype), y)
    for call in (
        lambda: KernelPerceptron(Linear()).fit(big, y),
        lambda: KernelPerceptron(Linear() ** 2).fit(big, y),
        lambda: m.mistake_bound(big, y),
        lambda: m.predict(big * dtype(1e5 if dtype == np.float32 else 1e105)),
    ):
        with pytest.raises(ValueError, match="too large"):
            call()


def test_a_stream_after_a_fit_has_no_end():
    X, y = rings(60)
    m = KernelPerceptron(Gaussian(), max_iter=50).fit(X, y)
    n = m.n_iter_
    m.partial_fit(X, y)
    assert not hasattr(m, "converged_")
    assert not hasattr(m, "counts_")
    assert m.n_iter_ == n > 1


def test_a_kernel_matrix_has_no_stream():
    X, y = rings(60)
    for m in (
        KernelPerceptron("precomputed"),
        KernelPerceptron(Gaussian()).partial_fit(X, y).set_params(kernel="precomputed"),
    ):
        assert not hasattr(m, "partial_fit")
        with pytest.raises(AttributeError, match="'partial_fit'") as told:
            m.partial_fit(X, y)
        assert "so it has no stream; give a kernel" in str(told.value.__cause__)
    m = KernelPerceptron("precomputed").fit(Gaussian()(X), y).set_params(kernel=Gaussian())
    with pytest.raises(ValueError, match="so it has no stream; give a kernel"):
        m.partial_fit(X, y)
