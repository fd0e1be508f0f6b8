"""Tables at the edge: targets as large and as small as they may be, very many classes."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from mercer import fit_table
from mercer.automl.budget import Clock
from mercer.automl.crossval import ridge_path
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import LogTarget
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.select import select_candidate
from mercer.automl.splits import make_folds
from mercer.linalg.least_squares import penalised

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)).astype(np.float32)
Y = X[:, 0].astype(np.float64) + 0.3 * X[:, 1] ** 2


@pytest.mark.parametrize("size", [np.inf, np.nan])
def test_a_system_that_is_not_finite_is_refused_at_once(size):
    """Infinity on the diagonal was tried for ever."""
    A = np.full((3, 3), size)
    with pytest.raises(ValueError, match="not finite"):
        penalised(A, 1.0)(np.ones((3, 1)))


@pytest.mark.parametrize("scale", [2.0**64, 2.0**-90, 2.0**98])
def test_paths_scale_with_the_target(scale):
    """Squares of 2^64 do not fit single precision."""
    rows = TableRows(X, Y, np.arange(len(X)))
    lift, split, alphas = LINEAR.lift(3, 0), make_folds(rows, seed=0), np.array([1e-3, 1.0])
    plain = ridge_path(lift, X, Y[:, None], None, split, alphas)
    assert np.allclose(
        ridge_path(lift, X, scale * Y[:, None], None, split, alphas) / scale,
        plain,
        rtol=1e-3,
        atol=1e-4,
    )


def test_a_target_of_large_whole_numbers():
    whole = ((Y - Y.min()) / (Y.max() - Y.min()) * (2**64 - 2**12)).astype(np.uint64)
    model = fit_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": whole}), "y", time=0.01)
    assert model.result.rows_train == 240
    assert np.isfinite(model.predict(pa.table({"a": X[:, 0], "b": X[:, 1]}))).all()


def test_many_classes_are_given_up_in_time_and_in_silence():
    """What is dear is tried only where there is time: 1,000 classes with 5 seconds took 71."""
    y = np.arange(900) % 150
    rows = TableRows(RNG.normal(size=(900, 2)).astype(np.float32), y, np.arange(900))
    said = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        found = select_candidate(
            SearchProblem(rows, METRICS["accuracy"], 150), Clock(0.01, said.append)
        )
    assert sum(text.startswith("trying ") for text in said) == 1
    said = {one.name: one.sentence for one in found.left_out}["Fourier features"]
    assert said.startswith("Fourier features was not tried: it would have taken about ")
    assert "machine" not in {f.kind for f in found.candidates}


def test_many_classes_leak_no_warning(recwarn):
    y = [f"c{i % 120}" for i in range(360)]
    fit_table(
        pa.table({"a": RNG.normal(size=360), "b": RNG.normal(size=360), "y": y}), "y", time=0.01
    )
    assert not [str(w.message) for w in recwarn.list]


@pytest.mark.parametrize("seed", range(2))
def test_no_row_is_sent_to_many_times_the_largest_target(seed):
    """Prices that grow with a size: rows of many times the largest size, of any mix of columns."""
    rng = np.random.default_rng(seed)
    size, room = np.exp(rng.normal(size=(2, 300)))
    price = 1e5 * size**1.5 * np.exp(0.1 * rng.normal(size=300))
    model = fit_table(pa.table({"size": size, "room": room, "price": price}), "price", time=0.01)
    wild = pa.table({"size": size * 10.0 ** np.arange(300), "room": -1e9 * room})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that they are unlike those of training
        told = np.asarray(model.predict(wild)["prediction"])
    assert told.max() <= 1.51 * price.max()
    assert told.min() >= 0


def test_a_logarithm_goes_no_further_than_half_as_much_again():
    y = np.exp(3 * RNG.normal(size=200))
    target = LogTarget().retransformed(y, np.log(y))
    assert target.back(np.array([1e3]))[0] <= 1.5 * y.max() * target.retransformation
