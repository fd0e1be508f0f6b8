"""Names are loaded when they are first asked for: all of them are there, files find their classes,
and what is not used is not imported. Every case in a fresh process, which has imported nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer.lifts
import mercer.models
from mercer.kernels import Gaussian
from mercer.lifts import Chain, Monomials, NGrams, Nystrom
from mercer.models import KernelRidge, SparseClassifier

SOURCE = str(Path(__file__).parents[1] / "src")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TEXTS = ["red fish", "blue fish", "old dog", "new dog"]
HEAVY = ("numba", "pandas", "pyarrow", "torch", "dask", "distributed", "plotly", "typer", "rich")
THEIRS = ("sklearn.ensemble", "sklearn.model_selection", "sklearn.metrics", "sklearn.preprocessing")
OURS = ("automl", "tables", "report", "cli", "strings", "models.svm", "models.gp", "lifts.sink")


def fresh(code, *arguments):
    """What a process prints that has imported what Python itself does."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    env = os.environ | {"PYTHONPATH": SOURCE}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded(code, names):
    """Those of some modules that the code loads, beyond scikit-learn's base."""
    told = fresh(
        "import json, sys, numpy as np, sklearn.base\n"
        f"before = set(sys.modules)\n{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    return {
        m for m in json.loads(told) if m in names or m.startswith(tuple(f"{n}." for n in names))
    }


@pytest.mark.parametrize("package", [mercer.lifts, mercer.models], ids=["lifts", "models"])
def test_every_public_name_is_there(package):
    names = [name for some in package.ROOMS.values() for name in some]
    assert sorted(names) == sorted(package.__all__) == dir(package)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
        assert vars(package)[name] is getattr(package, name)  # asked for once
    told = fresh(f"from {package.__name__} import *; print(len(dir()))")
    assert int(told) >= len(names)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"module 'mercer.lifts' has no attribute 'Nowhere'"):
        _ = mercer.lifts.Nowhere
    with pytest.raises(ImportError, match="Nowhere"):
        exec("from mercer.lifts import Nowhere")


def test_mercer_itself_imports_nothing():
    told = fresh(
        "import sys, mercer, mercer.lifts, mercer.models\n"
        "print({'numpy', 'scipy', 'sklearn', 'numba', 'mercer.lifts.base'} & set(sys.modules))"
    )
    assert told == "set()"


def test_a_first_fit_leaves_what_it_does_not_need():
    ours = tuple(f"mercer.{name}" for name in OURS)
    code = "from mercer import KernelRidge\nX = np.eye(5)\nKernelRidge().fit(X, X[0]).predict(X)"
    assert not loaded(code, (*HEAVY, *THEIRS, *ours))
    assert loaded("from mercer.lifts import KitchenSink", ours) == {"mercer.lifts.sink"}


def test_a_first_sparse_model_of_few_rows_needs_no_compiler():
    code = (
        "from mercer import SparseClassifier\nX = np.random.default_rng(0).normal(size=(60, 3))\n"
        "SparseClassifier(n_alphas=5).fit(X, X[:, 0] > 0).predict(X)"
    )
    assert not loaded(code, ("numba", "sklearn.model_selection"))


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (Chain([Monomials(2), Nystrom(Gaussian(), 5)]).fit(X), X),
        (NGrams().fit(TEXTS), TEXTS),
        (KernelRidge(via=mercer.methods.Fourier(20)).fit(X, X[:, 0]), X),
        (SparseClassifier(n_alphas=5).fit(X, X[:, 0] > 0), X),
    ],
    ids=["lifts", "texts", "ridge", "sparse"],
)
def test_files_load_where_nothing_was_imported(model, rows, tmp_path):
    model.save(tmp_path / "model")
    (tmp_path / "rows.json").write_text(json.dumps(np.asarray(rows).tolist()))
    told = fresh(
        "import json, sys, numpy as np\nfrom mercer import load\n"
        "m = load(sys.argv[1])\nrows = json.load(open(sys.argv[2]))\n"
        "rows = rows if isinstance(rows[0], str) else np.array(rows)\n"
        "f = m.predict(rows) if hasattr(m, 'predict') else m.transform(rows)\n"
        "print(float(abs(f).sum()))",
        str(tmp_path / "model"),
        str(tmp_path / "rows.json"),
    )
    mine = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    assert float(told) == pytest.approx(float(abs(mine).sum()), rel=1e-12)
