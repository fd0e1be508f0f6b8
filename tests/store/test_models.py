"""Every estimator and map comes back as it was: the same bits, the same plan, and able to go on."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import KernelPCA, KernelRidge, lifts
from mercer.kernels import Gaussian, Laplace
from mercer.lifts import Basis, Monomials, RandomFourier, WarpedLift, WeightedLift
from mercer.store import encode, fingerprint, load, save
from tests.market import KERNELS
from tests.store.market import FEW, LABELS, MODELS, X, Y, fitted, outputs

ROOT = Path(__file__).parents[2]


def holds_function(k):
    return any(callable(v) and not isinstance(v, mercer.Kernel) for v in k.get_params().values())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.mercer"


def again(m, path):
    save(m, path)
    return load(path)


def test_every_public_class_is_in_the_market():
    shown = {type(m).__name__ for m in MODELS.values()}
    everything = {
        n
        for module in (mercer.models, lifts)
        for n in module.__all__
        if hasattr(getattr(module, n), "fit")
    }
    assert everything - shown == {
        "Lift",
        "WarpedLift",
        "WeightedLift",
    }  # no map itself; these hold functions, and are refused


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name, path):
    m = fitted(name)
    back = again(m, path)
    assert type(back) is type(m)
    for ours, theirs in zip(outputs(m), outputs(back), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert getattr(back, "plan_", None) == getattr(m, "plan_", None)
    assert repr(getattr(back, "kernel_", None)) == repr(getattr(m, "kernel_", None))
    assert fingerprint(clone(back)) == fingerprint(clone(m))


@pytest.mark.parametrize("name", MODELS)
def test_a_file_says_all_there_is(name, path, tmp_path):
    """Saving what was loaded gives the same bytes, and both have one fingerprint, as has a pickled
    copy."""
    m, second = fitted(name), tmp_path / "second"
    back = again(m, path)
    save(back, second)
    assert second.read_bytes() == path.read_bytes()
    assert fingerprint(back) == fingerprint(m) == fingerprint(pickle.loads(pickle.dumps(m)))


def test_all_models_load_in_a_fresh_process(tmp_path):
    for i, name in enumerate(MODELS):
        save(fitted(name), tmp_path / f"{i}.mercer")
    code = (
        "import sys, numpy as np, mercer.store as s, tests.store.market as t\n"
        "for i in range(int(sys.argv[2])):\n"
        "    m = s.load(f'{sys.argv[1]}/{i}.mercer')\n"
        "    np.savez(f'{sys.argv[1]}/{i}.npz', *[A for A in t.outputs(m) if A.dtype != object], s.fingerprint(m))\n"
    )
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path), str(len(MODELS))],
        check=True,
        timeout=300,
        cwd=ROOT,
    )
    for i, name in enumerate(MODELS):
        with np.load(tmp_path / f"{i}.npz") as theirs:
            ours = [A for A in outputs(fitted(name)) if A.dtype != object]
            for j, A in enumerate(ours):
                np.testing.assert_array_equal(A, theirs[f"arr_{j}"], err_msg=name)
            assert str(theirs[f"arr_{len(ours)}"]) == fingerprint(fitted(name))


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if not holds_function(k)])
def test_kernels_come_back_equal(name, path):
    k = KERNELS[name]
    back = again(k, path)
    assert back == k
    assert hash(back) == hash(k)
    assert repr(back) == repr(k)


def test_a_stream_goes_on_after_loading(path):
    new = KernelRidge(Gaussian(2.0), via=FEW, cv=3, alphas=[0.1, 1.0], random_state=0)
    m, other = (clone(new).partial_fit(X[:20], Y[:20]) for _ in range(2))
    back = again(m, path)
    for model in (m, back):
        model.partial_fit(X[20:40], Y[20:40])
    np.testing.assert_array_equal(back.predict(X), m.predict(X))
    other.partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(
        back.merge(again(other, path)).predict(X), m.merge(other).predict(X)
    )
    np.testing.assert_array_equal(
        back.forget(X[:5], Y[:5]).predict(X), m.forget(X[:5], Y[:5]).predict(X)
    )


def test_components_go_on_after_loading(path):
    m = KernelPCA(2, Gaussian(2.0), via=FEW, random_state=0).partial_fit(X[:30])
    back = again(m, path)
    np.testing.assert_array_equal(
        back.partial_fit(X[30:]).transform(X), m.partial_fit(X[30:]).transform(X)
    )


def test_maps_of_other_kernels_have_other_fingerprints():
    a, b, c = (
        RandomFourier(k, 8, random_state=s).fit(X)
        for k, s in ((Gaussian(), 0), (Laplace(), 0), (Gaussian(), 1))
    )
    assert len({fingerprint(a), fingerprint(b), fingerprint(c)}) == 3
    assert fingerprint(RandomFourier(Gaussian(), 8, random_state=0).fit(X)) == fingerprint(a)


def test_training_rows_do_not_travel():
    tall, y = np.random.default_rng(0).normal(size=(5000, 3)), np.zeros(5000)
    m = KernelRidge(lift=Monomials(2)).fit(tall, y)
    assert (
        max(a.size for a in encode(m)[1]) <= 1000
    )  # the errors of the fifth that calibrates intervals


def test_names_and_labels_come_back(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["größe", "b", "c d"])
    m = mercer.KernelLogistic(Gaussian(2.0), via=FEW, random_state=0).fit(frame, LABELS)
    back = again(m, path)
    assert list(back.feature_names_in_) == ["größe", "b", "c d"]
    assert back.classes_.dtype == m.classes_.dtype
    np.testing.assert_array_equal(back.predict(frame), m.predict(frame))


def test_items_come_back(path):
    words = ["ab", "abc", "b", "längst"]
    m = mercer.lifts.Nystrom(mercer.kernels.Constant(), 2, random_state=0).fit(words)
    np.testing.assert_array_equal(again(m, path).transform(words), m.transform(words))


@pytest.mark.parametrize(
    "model",
    [
        lambda: mercer.kernels.Callable(lambda X, Z: X @ Z.T),
        lambda: Gaussian().warped(lambda X: X),
        lambda: Gaussian().weighted(np.linalg.norm),
        lambda: KernelRidge(Gaussian().warped(lambda X: 2 * X), via=FEW).fit(X, Y),
        lambda: Basis([lambda x: x + 1]).fit(X),
        lambda: Basis({"mine": abs}),
        lambda: WarpedLift(Monomials(2), lambda X: X),
        lambda: WeightedLift(Monomials(2), lambda X: X[:, 0]).fit(X),
    ],
    ids=[
        "callable",
        "warped",
        "weighted",
        "ridge",
        "basis",
        "builtin",
        "warped lift",
        "weighted lift",
    ],
)
def test_functions_are_refused_and_nothing_is_written(model, path):
    with pytest.raises(ValueError, match=r"Python function .*files hold no code"):
        save(model(), path)
    assert not path.exists()


def test_classes_of_others_are_refused(path):
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(ValueError, match=r"Chain\.lifts.*sklearn.*not a class of Mercer"):
        save((Monomials(2) >> StandardScaler()).fit(X), path)


def test_an_unfitted_model_comes_back(path):
    m = again(KernelRidge(Gaussian(2.0), alpha=np.float64(0.5)), path)
    assert m.get_params()["kernel"] == Gaussian(2.0)
    assert not hasattr(m, "coef_")


def test_parameters_that_an_older_file_lacks_take_their_defaults():
    from mercer.store import decode

    tree, arrays = encode(KernelRidge())
    del tree["object"][1]["memory_limit"]
    assert decode(tree, arrays).memory_limit is None
