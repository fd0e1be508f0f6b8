"""The same bits for any number of BLAS threads, under loky and from several Python threads at once;
or to rounding, as documented."""

import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks

K = Gaussian(2.0)
SAME = {
    "logistic": mercer.KernelLogistic(K, via=Fourier(32), random_state=0),
    "vectors": mercer.KernelSVC(K, via="exact"),
    "vectors of features": mercer.KernelSVC(K, via=Fourier(32), random_state=0),
    "regression vectors": mercer.KernelSVR(K),
    "one class": mercer.OneClassSVM(K),
    "clusters": mercer.KernelKMeans(4, K, random_state=0),
    "clusters of features": mercer.KernelKMeans(4, K, via=Fourier(32), random_state=0),
    "average": mercer.NadarayaWatson(K),
    "neighbours": mercer.SoftNeighborsClassifier(K),
    "components by products": mercer.KernelPCA(3, K, via="iterative", random_state=0),
    "perceptron": mercer.KernelPerceptron(K),
    "perceptron of features": mercer.Perceptron(K, random_state=0),
}
ROUNDED = {
    "ridge": mercer.KernelRidge(K, 0.1, via="exact"),
    "ridge iterative": mercer.KernelRidge(K, 0.1, via="iterative"),
    "ridge of features": mercer.KernelRidge(K, 0.1, via=Fourier(64), random_state=0),
    "ridge of landmarks": mercer.KernelRidge(K, 0.1, via=Landmarks(40), random_state=0),
    "process": mercer.GaussianProcessRegressor(K, 0.1, via="exact"),
    "process iterative": mercer.GaussianProcessRegressor(K, 0.1, via="iterative"),
    "process of landmarks": mercer.GaussianProcessRegressor(
        K, 0.1, via=Landmarks(40), random_state=0
    ),
    "process classifier": mercer.GaussianProcessClassifier(K, fixed=True),
    "components": mercer.KernelPCA(3, K, via="exact", random_state=0),
}
CLASSIFIERS = (
    mercer.KernelLogistic,
    mercer.KernelSVC,
    mercer.SoftNeighborsClassifier,
    mercer.KernelPerceptron,
    mercer.Perceptron,
    mercer.GaussianProcessClassifier,
)


def said(name, seed, n):
    """All that a model says, as one list of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    m = clone({**SAME, **ROUNDED}[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.fit(X, (y > 0).astype(int) if isinstance(m, CLASSIFIERS) else y)
        ways = [
            way
            for way in ("predict", "decision_function", "predict_proba", "transform")
            if hasattr(m, way)
        ]
        return np.concatenate(
            [np.ravel(np.asarray(getattr(m, way)(X[:60]), float)) for way in ways]
        ).tolist()


def check(found, want):
    for name in want:
        if name in SAME:
            assert found[name] == want[name], name
        else:
            np.testing.assert_allclose(
                np.abs(found[name]), np.abs(want[name]), rtol=1e-5, atol=1e-6, err_msg=name
            )


def all_of(n, names=(*SAME, *ROUNDED)):
    return {name: said(name, 0, n) for name in names}


@pytest.mark.parametrize("n", [90])
def test_several_python_threads_at_once(n):
    jobs = [(name, seed, n) for name in (*SAME, *ROUNDED) for seed in (0, 1)]
    alone = [said(*job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(lambda job: said(*job), jobs))
    for (name, seed, _), a, b in zip(jobs, alone, beside, strict=True):
        check({name: b}, {name: a})
        assert seed in (0, 1)


@pytest.mark.long
@pytest.mark.parametrize("n", [150, 900])
def test_any_number_of_blas_threads_and_loky(n):
    from joblib import Parallel, delayed

    code = f"import json; from tests.models.test_bits import all_of; print(json.dumps(all_of({n})))"
    places = ({**os.environ, "OMP_NUM_THREADS": t} for t in ("1", "2"))
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        for env in places
    ]
    one, two = (json.loads(run.stdout) for run in runs)
    check(two, one)
    with Parallel(2, backend="loky") as pool:
        found = pool(delayed(said)(name, 0, n) for name in one)
    check(dict(zip(one, found, strict=True)), one)
