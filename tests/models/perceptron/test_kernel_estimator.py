"""KernelPerceptron: the mistakes as points, within a budget, with live mistakes and bounds."""
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Callable, Gaussian, Laplace, Linear
from mercer.kernels.rkhs import RKHSFunction
from mercer.models.perceptron import KernelPerceptron, Perceptron
from mercer.models.perceptron.budget import POLICIES, forgetron_bound


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.5
    radius, angle = np.where(inside, rng.uniform(0, 1, n), rng.uniform(1.5, 2.5, n)), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(inside, "in", "out")


def iris(seed=0):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize(
    "model",
    [KernelPerceptron(), KernelPerceptron(budget=15, average=2, shuffle=True), KernelPerceptron(budget=15, policy="merging", margin=0.5)],
    ids=["plain", "projectron", "merging"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_plus_one_is_the_perceptron_with_offset(classes, average):
    X, y = iris()
    X, y = X.round(), y if classes == 3 else y == 1  # small integers: sums are exact
    ours = KernelPerceptron(Linear() + 1, max_iter=4, average=average).fit(X, y)
    plain = Perceptron(max_iter=4, average=average).fit(X, y)
    assert ours.mistakes_ == plain.mistakes_
    np.testing.assert_array_equal(ours.counts_, plain.counts_)
    np.testing.assert_allclose(ours.dual_coef_ @ ours.points_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-9)


def test_the_mistakes_are_a_multiset():
    X, y = rings(seed=3)
    m = KernelPerceptron(Gaussian(1.5), max_iter=200).fit(X, y)
    assert m.converged_
    assert m.score(X, y) == 1.0
    assert m.counts_.sum() == m.mistakes_
    assert m.counts_.max() > 1  # a set would not do
    assert len(m.points_) == np.count_nonzero(m.counts_)
    sign = np.where(y == "out", 1.0, -1.0)
    np.testing.assert_allclose(m.decision_function(X), Gaussian(1.5)(X) @ (m.counts_ * sign), atol=1e-10)


def test_the_set_version_need_not_converge():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1, -1, 1, 1])
    k = Linear() + 1
    m = KernelPerceptron(k, max_iter=100).fit(X, y)
    assert m.converged_
    kept = set()
    for _ in range(50):  # M as a set: a row that is in it already adds nothing
        before = set(kept)
        for i in range(4):
            f = sum(y[j] * k(X[[i]], X[[j]])[0, 0] for j in kept)
            kept |= {i} if y[i] * f <= 0 else set()
        if kept == before:
            break
    f = k(X, X[sorted(kept)]) @ y[sorted(kept)]
    assert (y * f <= 0).any()


def test_a_score_of_zero_is_a_mistake():
    m = KernelPerceptron(Linear()).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert m.counts_.tolist() == [1, 1]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("classes", [2, 3])
def test_budgets_are_kept_and_learn(policy, classes):
    X, y = iris() if classes == 3 else rings()
    kernel = Gaussian(1.0)
    m = KernelPerceptron(kernel, 25, policy, max_iter=4, average=policy.startswith("projectron"), random_state=0).fit(X, y)
    assert len(m.points_) <= 25
    assert m.dual_coef_.shape == (1 if classes == 2 else 3, len(m.points_))
    assert m.score(X, y) > 0.85
    assert policy in str(m.plan_)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_is_the_whole(policy):
    X, y = rings(300)
    options = dict(budget=12, policy=policy, average=True, random_state=5)
    whole, parts = KernelPerceptron(Gaussian(), **options).fit(X, y), KernelPerceptron(Gaussian(), **options)
    for rows in (slice(0, 1), slice(1, 100), slice(100, 101), slice(101, 300)):
        parts.partial_fit(X[rows], y[rows], classes=["in", "out"])
    assert whole.mistakes_ == parts.mistakes_
    np.testing.assert_allclose(whole.decision_function(X), parts.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "merging"])
def test_precomputed_is_the_kernel(policy):
    X, y = rings(200)
    k = Laplace(1.0)
    a = KernelPerceptron(k, 15, policy, random_state=0).fit(X[:150], y[:150])
    b = KernelPerceptron("precomputed", 15, policy, random_state=0).fit(k(X[:150]), y[:150])
    np.testing.assert_allclose(a.decision_function(X[150:]), b.decision_function(k(X[150:], X[:150])), atol=1e-9)
    np.testing.assert_array_equal(a.points_, X[b.support_])
    assert not hasattr(b, "partial_fit")


@pytest.mark.parametrize("policy", [None, "projectron", "merging"])
def test_sparse_rows_are_the_dense_ones(policy):
    X, y = rings(200)
    X[np.abs(X) < 0.3] = 0
    models = [KernelPerceptron(Gaussian(), 15 if policy else None, policy or "oldest").fit(A, y) for A in (X, sp.csr_array(X))]
    np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(sp.csr_array(X)), atol=1e-8)


def overlap(X, Z):
    return np.array([[float(len(set(a) & set(b))) for b in Z] for a in X])


def test_items_are_compared_by_their_kernel():
    class Overlap(Callable):
        items = True

    words, y = ["abc", "abd", "xyz", "xyw", "abe", "xyv"] * 5, ["a", "a", "x", "x", "a", "x"] * 5
    m = KernelPerceptron(Overlap(overlap), budget=3, policy="oldest", max_iter=3).fit(words, y)
    assert m.predict(["abq", "xyq"]).tolist() == ["a", "x"]
    assert set(m.points_) <= set(words)


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


def test_the_bound_is_live_until_the_policy_acts():
    X, y = rings(400)
    u = RKHSFunction(Gaussian(1.0), [[0.0, 0.0]], [-0.3])
    m = KernelPerceptron(Gaussian(1.0), 100, "forgetron", comparator=u)
    n = KernelPerceptron(Gaussian(1.0), 4, "oldest", comparator=u)
    bounds = []
    for i in range(0, 400, 50):
        m.partial_fit(X[i : i + 50], y[i : i + 50], classes=["in", "out"])
        n.partial_fit(X[i : i + 50], y[i : i + 50], classes=["in", "out"])
        bounds.append(m.bound_)
        assert m.mistakes_ <= m.bound_
    assert bounds == sorted(bounds)
    with pytest.raises(AttributeError, match="no bound holds"):
        n.bound_  # noqa: B018
    with pytest.raises(AttributeError, match="margin=0"):
        KernelPerceptron(Gaussian(1.0), margin=1.0, comparator=u).fit(X, y).bound_  # noqa: B018
    with pytest.raises(AttributeError, match="comparator"):
        KernelPerceptron().fit(X, y).bound_  # noqa: B018


@pytest.mark.parametrize("seed", range(4))
def test_the_forgetrons_bound_holds_after_it_has_forgotten(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=3000) > 0, 1, -1)
    u = RKHSFunction(Gaussian(2.0), [[1.5, 0.0], [-1.5, 0.0]], [0.8, -0.8])
    m = KernelPerceptron(Gaussian(2.0), 100, "forgetron", comparator=u).fit(X, y)
    assert m.plan_.settings["acted"] > 100
    assert m.mistakes_ <= m.bound_ == forgetron_bound(u.norm(), m.scan_.bound.hinge, 100)


def test_a_comparator_of_another_space_is_refused():
    X, y = rings(50)
    for u in (RKHSFunction(Gaussian(3.0), [[0.0, 0.0]], [1.0]), [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"comparator must be 1 RKHSFunction"):
            KernelPerceptron(Gaussian(1.0), comparator=u).fit(X, y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(budget=10, policy="newest"), "policy must be one of random"), (dict(budget=1), "budget must be an integer >= 2"),
        (dict(kernel=Linear(), budget=5, policy="merging"), "needs a Gaussian"), (dict(margin=-1.0), "margin must be a number >= 0"),
        (dict(average="late"), "average must be a number"), (dict(max_iter=0), "max_iter"), (dict(eta=0.0), "eta must be"),
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
    bad = [(X[:, :1], y, "1 features"), (X * np.nan, y, "NaN"), (X, np.full(100, "on"), "'on'"), (1e200 * X, y, "too large")]
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
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [1e6, 0.0], [0.0, 0.0]], 40, axis=0)[np.random.default_rng(0).permutation(160)]
    y = np.where(X[:, 0] > 0.5, 1, 0)
    m = KernelPerceptron(Gaussian(), 3, policy, margin=0.3, average=True, random_state=0).fit(X, y)
    assert np.isfinite(m.decision_function(X)).all()
    assert len(m.points_) <= 3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_stream_takes_no_more_memory(policy):
    m, sizes = KernelPerceptron(Gaussian(0.3), 30, policy, average=True), []
    for seed in range(12):
        X, y = rings(200, seed)
        m.partial_fit(X, np.where(np.random.default_rng(100 + seed).random(200) < 0.3, "in", y), classes=["in", "out"])
        sizes.append(sum(a.nbytes for a in m.scanner_.memory) + m.points_.nbytes)
    assert m.plan_.settings["acted"] > 100
    assert len(set(sizes[2:])) == 1
    assert m.plan_.settings["rows"] == 2400


def test_seeds_decide_what_is_dropped():
    X, y = rings()
    m = KernelPerceptron(Gaussian(0.5), 6, "random", random_state=0)
    a, b, c = m.fit(X, y).points_, clone(m).fit(X, y).points_, clone(m).set_params(random_state=1).fit(X, y).points_
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


BAD = {
    "policy": (dict(policy="x"), 1.0), "policies": (dict(policy=["x"]), 1.0), "budget": (dict(budget=1), 1.0), "eta": (dict(eta=-1.0), 1.0),
    "comparator": (dict(comparator=3), 1.0), "merging": (dict(kernel=Linear(), budget=5, policy="merging"), 1.0),
    "huge": (dict(kernel=Linear()), 1e200), "unsquarable": (dict(kernel="rbf"), 1e200), "kernel": (dict(kernel="cosine"), 1.0),
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
    with pytest.raises(ValueError, match="classes differ from those of the first partial_fit, 'in', 'out'"):
        m.partial_fit(X, y, classes=["in", "out", "on"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(budget=9), "budget changed"), (dict(policy="oldest"), "policy changed"), (dict(budget=None), "policy, budget changed"),
        (dict(margin=1.0), "margin changed"), (dict(average=2.0), "average changed"), (dict(kernel=Laplace()), "kernel changed"),
        (dict(comparator=RKHSFunction(Gaussian(), [[0.0, 0.0]], [1.0])), "comparator changed"),
        (dict(eta=0.2, kernel="linear"), "eta, kernel changed"),
    ],
    ids=["budget", "policy", "no budget", "margin", "average", "kernel", "comparator", "both"],
)
def test_a_stream_goes_on_as_it_began(options, match):
    X, y = rings(60)
    m = KernelPerceptron(Gaussian(), 8, "projectron").partial_fit(X, y)
    m.set_params(average=True).partial_fit(X, y)  # the mean is kept in any case
    plan = str(m.plan_)
    with pytest.raises(ValueError, match=match + " in the middle of a stream; set it back, or begin anew with fit"):
        m.set_params(**options).partial_fit(X, y)
    assert str(m.plan_) == plan


def test_a_kernel_matrix_has_no_stream():
    X, y = rings(60)
    for m in (KernelPerceptron("precomputed"), KernelPerceptron(Gaussian()).partial_fit(X, y).set_params(kernel="precomputed")):
        assert not hasattr(m, "partial_fit")
        with pytest.raises(AttributeError, match="'partial_fit'") as told:
            m.partial_fit(X, y)
        assert "so it has no stream; give a kernel" in str(told.value.__cause__)
    m = KernelPerceptron("precomputed").fit(Gaussian()(X), y).set_params(kernel=Gaussian())
    with pytest.raises(ValueError, match="so it has no stream; give a kernel"):
        m.partial_fit(X, y)


@pytest.mark.parametrize("kernel", [None, "rbf", "linear", "laplacian", "poly", Gaussian().on_columns(["b"]) + Linear()], ids=str)
def test_streams_with_any_kernel_go_on(kernel):
    pd = pytest.importorskip("pandas")
    X, y = rings(60)
    m = KernelPerceptron(kernel)
    for _ in range(2):
        m.partial_fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert m.plan_.settings["rows"] == 120


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
        dict(policy=["x"]), dict(policy=np.zeros(10_000)), dict(comparator=3), dict(comparator=np.zeros(10_000)), dict(comparator=["u"]),
        dict(margin=np.zeros(10_000)), dict(average=list(range(10_000))), dict(budget=np.zeros(10_000)), dict(max_iter=np.zeros(10_000)),
        dict(comparator=RKHSFunction(Laplace(), np.zeros((500, 2)), np.zeros(500))),
    ],
    ids=["list", "policies", "number", "numbers", "names", "margins", "averages", "budgets", "passes", "another"],
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
    np.testing.assert_allclose(m.set_params(kernel=Gaussian()).decision_function(Gaussian()(X)), want)
    assert m.support_.max() < 60
    assert m.fit(X, y).points_.shape[1] == 2


def test_what_average_means():
    X, y = rings(200)
    scores = {repr(a): KernelPerceptron(Gaussian(), average=a).fit(X, y).decision_function(X) for a in (False, True, 0, 1, 0.0)}
    np.testing.assert_array_equal(scores["0"], scores["True"])
    np.testing.assert_array_equal(scores["0.0"], scores["True"])
    assert not np.allclose(scores["0"], scores["False"])
    assert not np.allclose(scores["1"], scores["True"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_too_large_are_refused_by_a_sentence_alone(dtype):
    X, y = rings(60)
    big = (1e200 if dtype == np.float64 else 1e30) * X.astype(dtype)
    m = KernelPerceptron(Linear()).fit(1e5 * X.astype(dtype), y)
    for call in (lambda: KernelPerceptron(Linear()).fit(big, y), lambda: KernelPerceptron(Linear() ** 2).fit(big, y),
                 lambda: m.mistake_bound(big, y), lambda: m.predict(big * dtype(1e5 if dtype == np.float32 else 1e105))):
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
