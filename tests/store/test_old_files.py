"""Files of earlier layouts load and answer as they did: `old` and `old/gp` are from before explicit
names, `old/ridge` from before that; in `old/posteriors` every way of a Gaussian process is a class,
in `old/beside` rows and warm starts lie beside fitted values.

Written by fitting each model to `X` (24 rows) and asking it about `new`; `answers.npz` holds both
and what was answered.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from mercer.kernels import Gaussian, Laplace
from mercer.lifts.spectral import spectrum
from mercer.store import decode, encode

FOLDER = Path(__file__).parent / "old"
FILES = sorted(FOLDER.rglob("*.mercer"))


def answered(path):
    with np.load(path.parent / "answers.npz") as kept:
        given = path.stem.startswith("given")
        rows = Gaussian(1.2)(kept["new"], kept["X"]) if given else kept["new"]
        return rows, {
            key.partition("|")[2]: kept[key]
            for key in kept.files
            if key.partition("|")[0] == path.stem
        }


@pytest.mark.parametrize(
    "path",
    [f for f in FILES if not f.stem.startswith(("table", "functions"))],
    ids=lambda f: f"{f.parent.name}-{f.stem}",
)
def test_models_answer_as_they_did(path):
    model, (rows, kept) = mercer.load(path), answered(path)
    assert kept or path.stem == "one-class"
    for what, before in kept.items():
        now = (
            model.predict(rows, return_std=True)[1] if what == "std" else getattr(model, what)(rows)
        )
        assert now.dtype == before.dtype
        if before.dtype.kind == "f":
            solved = what == "std" and "iterative" in path.stem  # anew, to a residual of 1e-6
            np.testing.assert_allclose(now, before, rtol=1e-6 if solved else 1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(now, before)
    again = decode(*encode(model))
    np.testing.assert_array_equal(
        *(
            getattr(m, "predict" if hasattr(m, "predict") else "transform")(rows)
            for m in (model, again)
        )
    )


@pytest.mark.parametrize("name", ["table-regression", "table-classes"])
def test_tables_answer_as_they_did(name):
    now = mercer.load(FOLDER / f"{name}.mercer").predict(pd.read_csv(FOLDER / f"{name}.csv"))
    pd.testing.assert_frame_equal(
        now, pd.read_csv(FOLDER / f"{name}-answers.csv"), rtol=1e-9, check_dtype=False
    )


def test_functions_of_before_are_the_same():
    path = FOLDER / "posteriors" / "functions.mercer"
    f, (rows, kept) = mercer.load(path), answered(path)
    np.testing.assert_allclose(f(rows), kept["__call__"], rtol=1e-9)
    np.testing.assert_array_equal(decode(*encode(f))(rows), f(rows))


@pytest.mark.parametrize("name", ["gp-exact", "gp-grown", "gp-iterative", "gp-landmarks"])
def test_posteriors_of_before_go_on(name):
    """Rows come and go as in a posterior that was never in a file of before."""
    old = mercer.load(FOLDER / "posteriors" / f"{name}.mercer")
    with np.load(FOLDER / "posteriors" / "answers.npz") as kept:
        rows, X = kept["new"], kept["X"]
    before = old.predict(rows)
    y = np.ones((5, *before.shape[1:]))
    grown = old.partial_fit(rows, y).predict(rows)
    assert np.abs(grown - before).max() > 1e-3
    np.testing.assert_allclose(old.forget(rows, y).predict(rows), before, rtol=1e-5, atol=1e-6)
    assert old.predict(X).shape == (24, *before.shape[1:])


@pytest.mark.parametrize("lost", ["kernel", "X", "noise", "scale", "Y", "coef"])
def test_a_posterior_of_before_that_lacks_a_part_is_refused(lost):
    tree, arrays = encode(mercer.load(FOLDER / "posteriors" / "gp-exact.mercer"))
    posterior = tree["object"][1]["posterior_"]["value"]
    system = posterior[1].pop("system")["value"][1]
    points = system.pop("points")["value"][1]
    posterior[0] = "gp.ExactPosterior"
    posterior[1].update(system, **points)
    decode(tree, arrays)
    del posterior[1][lost]
    with pytest.raises(ValueError, match=r"older layout|PointPosterior|coef"):
        decode(tree, arrays)


def test_streams_of_before_go_on():
    model = mercer.load(FOLDER / "ridge" / "ridge-lift.mercer")
    with np.load(FOLDER / "answers.npz") as kept:
        X = kept["X"]
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    new = clone(model).fit(np.vstack([X, X[:5]]), np.concatenate([y, y[:5]]))
    np.testing.assert_allclose(
        model.partial_fit(X[:5], y[:5]).predict(X), new.predict(X), rtol=1e-9
    )


@pytest.mark.parametrize("name", ["ridge", "ridge-weights", "ridge-features", "given-ridge"])
def test_what_lay_beside_a_solution_is_with_it(name):
    model = mercer.load(FOLDER / "beside" / f"{name}.mercer")
    with np.load(FOLDER / "beside" / "answers.npz") as kept:
        new, X, known = kept["new"], kept["X"], dict(kept)
    rows = Gaussian(1.2)(new, X) if name.startswith("given") else new
    for m in (model, decode(*encode(model))):
        np.testing.assert_allclose(
            m.predict_interval(rows, 0.5), known[f"interval|{name}"], rtol=1e-9
        )
        assert hasattr(m, "loo_predictions_") == (f"left out|{name}" in known)
        if hasattr(m, "loo_predictions_"):
            np.testing.assert_allclose(m.loo_predictions_, known[f"left out|{name}"], rtol=1e-9)


def test_a_fit_starts_where_one_of_before_ended():
    model = mercer.load(FOLDER / "beside" / "svc.mercer")
    with np.load(FOLDER / "beside" / "answers.npz") as kept:
        X = kept["X"]
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    cold = clone(model).set_params(C=1.5).fit(X, y)
    for m in (decode(*encode(model)), model):
        ended = m.machine_.last
        assert len(ended.rules) == 3
        np.testing.assert_array_equal(ended.codes, y)
        assert all(r.solution.b.any() for r in ended.rules)
        m.set_params(C=1.5).fit(X, y)
        np.testing.assert_allclose(m.dual_coef_, cold.dual_coef_, atol=1e-6)


def test_the_factor_of_a_kernel_had_another_name():
    k = 2.0 * Gaussian(1.5)
    tree, arrays = encode(k)
    (name, fields), factor = tree["value"], tree["value"][1].pop("factor")
    assert (name, factor, decode({"value": [name, {**fields, "by": factor}]}, arrays)) == (
        "kernels.Scale",
        2.0,
        k,
    )
    with pytest.raises(ValueError, match="Scale has no field 'times'"):
        decode({"value": [name, {**fields, "times": factor}]}, arrays)


def test_frequencies_of_before_had_no_map():
    atoms = spectrum(Laplace((1.0, 2.0), norm=1) * Gaussian()).atoms
    for atom in atoms:
        tree, arrays = encode(atom)
        del tree["value"][1]["map"]
        assert decode(tree, arrays) == atom
