"""Settings that are none: one sentence in every family; transformers are maps in every family."""

import copy

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from mercer import models
from mercer.kernels import Gaussian
from mercer.lifts import Identity, Leaves

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
CLASSIFIERS = {
    "GaussianProcessClassifier",
    "KernelSVC",
    "KernelLogistic",
    "KernelPerceptron",
    "Perceptron",
    "NadarayaWatsonClassifier",
    "SoftNeighborsClassifier",
}
HUGE = 10**400
WRONG = [
    ("lift", 3),
    ("lift", "fourier"),
    ("lift", StandardScaler),
    ("memory_limit", HUGE),
    ("memory_limit", "many"),
    ("memory_limit", True),
    ("alpha", "1"),
    ("alpha", ["1"]),
    ("alpha", HUGE),
    ("alpha", None),
    ("fit_intercept", "no"),
    ("fit_intercept", None),
    ("tol", HUGE),
    ("C", HUGE),
    ("epsilon", HUGE),
    ("noise", HUGE),
    ("prior_mean", HUGE),
    ("shuffle", "no"),
    ("probability", "no"),
    ("warm_start", "no"),
    ("restore_variance", "no"),
    ("verbose", "no"),
    ("verbose", None),
    ("verbose", -1),
]
EVERY = [
    getattr(models, name)
    for name in models.__all__
    if hasattr(getattr(models, name), "get_params") and name != "WeightedUnion"  # needs blocks
]


def target(cls):
    return (y > 0).astype(int) if cls.__name__ in CLASSIFIERS else y


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda v: str(v)[:12])
def test_what_no_setting_can_be_is_told_in_one_sentence(name, value):
    mean = [cls for cls in EVERY if name in cls().get_params(deep=False)]
    assert mean
    for cls in mean:
        with pytest.raises(ValueError, match=f"^{name}.* must be .*got") as told:
            cls(**{name: value}).fit(X, target(cls))
        assert str(told.value).endswith("."), cls
        assert "\n" not in str(told.value)


def test_a_flag_of_a_perceptron_is_one():
    for name in ("average", "shuffle", "fit_intercept"):
        with pytest.raises(ValueError, match=f"{name} must be True or False"):
            models.Perceptron(**{name: "no"}).partial_fit(X, y > 0)


# transformers
MAPPED = [
    cls
    for cls in EVERY
    if "lift" in cls().get_params(deep=False) and not cls.__name__.startswith("Sparse")
]  # sparse models scale columns before their map


@pytest.mark.parametrize("cls", MAPPED)
@pytest.mark.parametrize(
    "make",
    [
        StandardScaler,
        lambda: RBFSampler(n_components=20, random_state=0),
        lambda: KBinsDiscretizer(4),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_transformer_is_a_map(cls, make):
    model = cls(lift=make()).fit(X, target(cls))
    ask = model.predict if hasattr(model, "predict") else model.transform
    lifted = make().fit(X).transform(X)
    lifted = lifted.toarray() if hasattr(lifted, "toarray") else lifted
    assert model.n_features_lifted_ == lifted.shape[1]
    assert not hasattr(model, "kernel_")
    again = copy.deepcopy(model)
    np.testing.assert_array_equal(
        (again.predict if hasattr(again, "predict") else again.transform)(X), ask(X)
    )
    same = cls(lift=Identity()).fit(lifted, target(cls))
    expected = same.predict(lifted) if hasattr(same, "predict") else same.transform(lifted)
    if cls.__name__ != "KernelKMeans":  # whose labels have no order
        np.testing.assert_allclose(ask(X), expected, rtol=1e-6, atol=1e-6)


def test_features_that_are_whole_numbers_are_taken_as_numbers():
    codes = rng.integers(0, 3, size=(60, 2)).astype(float)
    lift = OneHotEncoder(sparse_output=False, dtype=np.int64)
    model = models.KernelRidge(lift=lift, alpha=0.1).fit(codes, y)
    F = lift.fit(codes).transform(codes).astype(float)
    np.testing.assert_allclose(
        model.predict(codes),
        models.KernelRidge(lift=Identity(), alpha=0.1).fit(F, y).predict(F),
        rtol=1e-10,
    )


def test_streams_over_a_transformer_merge():
    make = lambda: models.KernelRidge(lift=RBFSampler(n_components=20, random_state=0))
    left, right, whole = make().fit(X[:30], y[:30]), make().fit(X[30:], y[30:]), make().fit(X, y)
    np.testing.assert_allclose(left.merge(right).predict(X), whole.predict(X), rtol=1e-8)


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
def test_a_map_in_the_place_of_the_kernel_is_told_where_it_belongs(cls):
    params = cls().get_params(deep=False)
    if "kernel" not in params:
        return
    for wrong in (Leaves(), StandardScaler(), StandardScaler):
        with pytest.raises(ValueError, match="kernel must be a kernel") as e:
            cls(kernel=wrong).fit(X, target(cls))
        remedy = "give it as lift=." if "lift" in params else "in a pipeline."
        assert str(e.value).endswith(remedy)
    with pytest.raises(ValueError, match=r"got the class Gaussian: write Gaussian\(\)\.$"):
        cls(kernel=Gaussian).fit(X, target(cls))
