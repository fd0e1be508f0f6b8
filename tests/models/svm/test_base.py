"""Attributes of before are put together to one machine, which answers the same."""

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer import KernelSVC, KernelSVR, OneClassSVM
from mercer.invariants import check
from mercer.kernels import Callable, Gaussian
from mercer.models.svm.base import LEARNT, upgraded

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])
MODELS = {
    "ovo": KernelSVC(Gaussian(), warm_start=True),
    "ovr": KernelSVC(Gaussian(), multiclass="ovr", probability=True),
    "features": KernelSVC(Gaussian(), via="features", probability=True, random_state=0),
    "squared": KernelSVC(Gaussian(), via="features", loss="squared_hinge", random_state=0),
    "svr": KernelSVR(Gaussian()),
    "one-class": OneClassSVM(Gaussian(), nu=0.2),
    "given": KernelSVR("precomputed"),
}


def rows_of(m):
    return Gaussian()(X) if m.kernel == "precomputed" else X


def before(m):
    """The attributes that such a model had."""
    state = {k: v for k, v in vars(m).items() if k not in ("machine_", "_last")}
    state |= {
        name: getattr(m, name) for name in LEARNT if hasattr(m, name) and not name.startswith("_")
    }
    if isinstance(m, OneClassSVM):
        state["_size"] = m.machine_.size
    if (last := getattr(m, "_last", None)) is not None:
        state["_last"] = (
            (last.loss, last.bias, last.multiclass),
            last.codes,
            last.c,
            list(last.rules),
        )
    return state


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_before_answers_the_same(name):
    m = MODELS[name]
    rows = rows_of(m)
    m.fit(rows, Y)
    again = object.__new__(type(m))
    vars(again).update(upgraded(before(m)))
    assert vars(again).keys() == vars(m).keys() - (
        {"_last"} if getattr(m, "_last", None) is None else set()
    )
    for ask in ("predict", "decision_function", "score_samples", "predict_proba"):
        if hasattr(m, ask):
            np.testing.assert_array_equal(getattr(again, ask)(rows), getattr(m, ask)(rows))
    assert str(again.plan_) == str(m.plan_)
    if name == "ovo":
        for one in (m, again):
            one.set_params(C=1.5).fit(rows, Y)
        np.testing.assert_array_equal(again.decision_function(rows), m.decision_function(rows))


def test_items_and_compressed_models_of_before():
    words = ["".join(RNG.choice(list("ab"), 5)) for _ in range(30)]
    k = Callable(
        lambda A, B: np.array(
            [[float(len(set(pairwise(a)) & set(pairwise(b)))) for b in B] for a in A]
        )
    )
    m = KernelSVR(k + 1.0).fit(words, [w.count("a") for w in words]).compress(3)
    again = object.__new__(KernelSVR)
    vars(again).update(upgraded(before(m)))
    np.testing.assert_array_equal(again.predict(words), m.predict(words))
    assert again.compression_ == m.compression_


def test_states_of_now_and_of_models_that_are_not_fitted_stay():
    for m in (KernelSVR(), KernelSVR().fit(X, Y)):
        assert upgraded(vars(m)) is vars(m)


@pytest.mark.parametrize("cls", [KernelSVC, KernelSVR, OneClassSVM])
def test_what_is_learnt_is_not_there_before_fit(cls):
    names = [
        name
        for c in cls.__mro__
        for name, v in vars(c).items()
        if isinstance(v, property) and name.endswith("_") and name[0] != "_"
    ]
    assert {"plan_", "support_vectors_", "intercept_"} <= set(names)
    for name in names:
        assert not hasattr(cls(), name)
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(cls(), name)
    with pytest.raises(NotFittedError):
        cls().compress(2)


@pytest.mark.parametrize("name", ["ovr", "features", "svr", "one-class"])
def test_a_limit_of_memory_set_after_fit_is_for_the_next_fit(name):
    m = clone(MODELS[name]).set_params(memory_limit="2MB").fit(X, Y)
    said = m.predict(sp.csr_array(X))
    np.testing.assert_array_equal(m.set_params(memory_limit="junk").predict(sp.csr_array(X)), said)
    with pytest.raises(ValueError, match="memory_limit must be"):
        m.fit(X, Y)


def test_a_machine_keeps_its_limit_of_memory_in_files(tmp_path):
    m = KernelSVR(Gaussian(), memory_limit="3MB").fit(X, Y)
    m.save(tmp_path / "m")
    assert mercer.load(tmp_path / "m").machine_.memory == m.machine_.memory == 3e6


@pytest.mark.parametrize("name", MODELS)
def test_a_model_holds_one_machine(name):
    m = clone(MODELS[name])
    m.fit(rows_of(m), Y)
    held = {"machine_", "n_features_in_", "_of_items"}
    held |= {"classes_"} if isinstance(m, KernelSVC) else set()
    assert vars(m).keys() - m.get_params().keys() == held


def test_the_end_of_a_fit_goes_with_its_machine(tmp_path):
    m = clone(MODELS["ovo"]).fit(X, Y)
    m.save(tmp_path / "m")
    ended, others = m._last, [mercer.load(tmp_path / "m"), copy.deepcopy(m), m.compress(5)]
    m.set_params(C=1.5).fit(X, Y)
    assert len(ended.rules) == 3
    for other in others:
        for mine, theirs in zip(ended.rules, other._last.rules, strict=True):
            np.testing.assert_array_equal(mine.solution.b, theirs.solution.b)
        np.testing.assert_array_equal(other.set_params(C=1.5).fit(X, Y).dual_coef_, m.dual_coef_)
    wrong = replace(m.machine_.last, codes=m.machine_.last.codes + 3)
    m.machine_ = replace(m.machine_, last=wrong)
    with pytest.raises(ValueError, match="starts at classes that are not there"):
        check(m)
