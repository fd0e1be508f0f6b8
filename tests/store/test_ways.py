"""Every public method of every estimator, in every way it can be fitted, gives equal answers after
loading."""

import inspect
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import mercer
from mercer import lifts, methods
from mercer.kernels import Gaussian
from mercer.store import load, save

RNG = np.random.default_rng(1)
X = RNG.normal(size=(50, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=50)
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
WEIGHT = np.where(np.arange(50) < 45, 1.0, 0.0)
WAYS = (
    "auto",
    "exact",
    "iterative",
    "features",
    "landmarks",
    methods.Fourier(32),
    methods.Landmarks(8),
    methods.Exact(),
)
CHANGES = (
    "fit",
    "partial_fit",
    "merge",
    "forget",
    "save",
    "set",
    "get",
    "plot",
    "fit_transform",
    "fit_predict",
    "update",
)

NEEDED = {
    "WeightedUnion": {
        "transformers": [("a", lifts.Monomials(2), [0]), ("b", lifts.Identity(), [1, 0])]
    }
}


def models():
    for name in mercer.models.__all__:
        cls = getattr(mercer, name, None)
        if not (inspect.isclass(cls) and hasattr(cls, "fit")):
            continue
        given = inspect.signature(cls).parameters
        seed = {"random_state": 0} if "random_state" in given else {}
        seed |= NEEDED.get(name, {})
        for via in WAYS if "via" in given else (None,):
            yield (
                f"{name} {via}",
                cls,
                {**seed, **({} if via is None else {"via": via})},
                "kernel" in given,
            )
        if "kernel" in given:
            yield f"{name} precomputed", cls, {**seed, "kernel": "precomputed"}, False
    yield "KernelRidge weighted", mercer.KernelRidge, {}, True
    yield "KernelSVC warm", mercer.KernelSVC, {"warm_start": True}, True
    yield "KernelSVC probability", mercer.KernelSVC, {"probability": True, "random_state": 0}, True


def flat(value):
    """An answer as arrays."""
    if isinstance(value, dict):
        return [np.asarray(list(value)), *flat(list(value.values()))]
    if isinstance(value, list | tuple):
        return [a for v in value for a in flat(v)]
    if callable(value):  # a function of a kernel's space, or a draw
        return [np.asarray(value(X[:5]))]
    return (
        [value.toarray() if sp.issparse(value) else np.asarray(value)]
        if not hasattr(value, "get_params")
        else []
    )


def answers(m, A, t):
    """What each public method says, by name; the type of the error where it refuses."""
    found = {}
    for name in sorted(
        n
        for n in dir(m)
        if not n.startswith("_") and n.split("_")[0] not in CHANGES and n not in CHANGES
    ):
        method = getattr(m, name, None)
        if not inspect.ismethod(method):
            continue
        given = inspect.signature(method).parameters.values()
        needed = [
            p.name for p in given if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
        ]
        if not set(needed) <= {"X", "y", "Z"} or inspect.isgeneratorfunction(method):
            continue
        try:
            found[name] = flat(
                method(
                    *(
                        {"X": A, "y": t, "Z": np.zeros((3, getattr(m, "n_components", 2)))}[n]
                        for n in needed
                    )
                )
            )
        except (ValueError, AttributeError, NotImplementedError, TypeError) as e:
            found[name] = [np.asarray(str(e))]
    return found


@pytest.mark.parametrize(
    ("name", "cls", "options", "kernel"),
    list(models()),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_loaded_model_answers_all_that_it_did(name, cls, options, kernel, tmp_path):
    m = cls(**({"kernel": Gaussian(1.5)} if kernel else {}), **options)
    t = LABELS if is_classifier(m) else Y
    A = Gaussian(1.5)(X) if options.get("kernel") == "precomputed" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            m.fit(A, t, **({"sample_weight": WEIGHT} if "weighted" in name else {}))
        # such a way, or kernel, is none of this estimator's; anything else is a failure
        except ValueError as refusal:
            if not re.match(
                "via must be |kernel must be .* got 'precomputed'|a Gram matrix |.* has no finite feature map",
                str(refusal),
            ):
                raise
            pytest.skip("refused")
        before = answers(m, A[:20], t[:20])
        save(m, tmp_path / "m")
        after = answers(load(tmp_path / "m"), A[:20], t[:20])
    assert "predict" in before or "transform" in before
    assert before.keys() == after.keys()
    for way in before:
        assert len(before[way]) == len(after[way]), way
        for a, b in zip(before[way], after[way], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=way)


@pytest.mark.parametrize(
    "options",
    [
        dict(via="exact"),
        dict(via=methods.Fourier(32)),
        dict(via=methods.Landmarks(8)),
        dict(kernel="precomputed"),
    ],
)
@pytest.mark.parametrize("method", ["split", "jackknife+"])
def test_intervals_of_loaded_ridge(options, method, tmp_path):
    A = Gaussian()(X) if "kernel" in options else X
    m = mercer.KernelRidge(**{"kernel": Gaussian(), "random_state": 0, **options}).fit(A, Y, WEIGHT)
    save(m, tmp_path / "m")
    back = load(tmp_path / "m")
    if method == "jackknife+" and options.get("via") != "exact":
        with pytest.raises(AttributeError, match="over features or landmarks have none"):
            back.predict_interval(A, 0.8, method)
        return
    ours, theirs = m.predict_interval(A, 0.8, method), back.predict_interval(A, 0.8, method)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.guarantee == theirs.guarantee
    if options.get("via") == "exact":
        np.testing.assert_array_equal(back.loo_predictions_, m.loo_predictions_)
