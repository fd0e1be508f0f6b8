import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from mercer.automl import text_kinds
from mercer.automl.text_kinds import (
    LinearPath,
    Squares,
    held_out_score,
    log_ratios,
    n_bits,
    vectorised,
)
from mercer.tables.arrow import pa
from mercer.tables.texts import LinearScores, weighed
from tests.automl.texts import drawn


def rows(n, d, seed, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.2, random_state=rng, dtype=dtype, format="csr")
    return X, rng


def objective(X, y, f, penalty, classes):
    """Of a model, in float64."""
    size = float(X.multiply(X).sum()) / X.shape[0]
    left = np.maximum(1 - y * f(X)[:, 0], 0) if classes else (f(X)[:, 0] - y) ** 2
    return left.sum() + penalty * size / 2 * (f.coef.astype(np.float64) ** 2).sum()


@pytest.mark.parametrize(("n", "d"), [(60, 25), (25, 60), (3, 4)])
@pytest.mark.parametrize("classes", [False, True])
def test_scores_are_near_the_least_of_their_objective(n, d, classes, monkeypatch):
    X, rng = rows(n, d, n)
    y = np.where(np.arange(n) % 2, 1.0, -1.0) if classes else rng.normal(size=n)
    rough = LinearPath(X, y[:, None], None, False, classes).at(0.3)
    monkeypatch.setattr(text_kinds, "GAP", 1e-9)
    monkeypatch.setattr(text_kinds, "TOL", 1e-9)
    monkeypatch.setattr(text_kinds, "MAX_SWEEPS", 5000)
    f = LinearPath(X, y[:, None], None, False, classes).at(0.3)
    least = objective(X, y, f, 0.3, classes)
    assert objective(X, y, rough, 0.3, classes) < 1.06 * least + 1e-6
    for _ in range(20):
        step = np.zeros_like(f.coef)
        step[rng.integers(0, d, 3)] = rng.normal(size=(3, 1)) * 0.02
        moved = type(f)(f.coef + step, f.intercept + rng.normal() * 0.02)
        assert objective(X, y, moved, 0.3, classes) > least * (1 - 1e-4)


def test_squares_are_ridge_regression():
    X, rng = rows(80, 30, 5, np.float64)
    y, w = rng.normal(size=80), rng.uniform(0, 2, 80)
    f = LinearPath(X, y[:, None], w, False, False).at(1.0)
    size = float(X.multiply(X).sum()) / 80
    peer = Ridge(size / 2, solver="sparse_cg", tol=1e-10).fit(X, y, sample_weight=w)
    assert f(X)[:, 0] == pytest.approx(peer.predict(X), abs=2e-2)


def test_slope_and_curvature_of_squares():
    rng = np.random.default_rng(0)
    f, Y, w = rng.normal(size=(5, 1)), rng.normal(size=(5, 1)), rng.uniform(size=5)
    h, loss = 1e-6, Squares()
    for i in range(5):
        step = np.zeros((5, 1))
        step[i] = h
        slope = (loss.value(f + step, Y, w) - loss.value(f - step, Y, w)) / (2 * h)
        assert slope == pytest.approx(loss.slope(f, Y, w)[i, 0], abs=1e-6)
        bend = (loss.slope(f + step, Y, w) - loss.slope(f - step, Y, w))[i, 0] / (2 * h)
        assert bend == pytest.approx(loss.curvature(f, Y, w)[i], abs=1e-6)


def test_path_ends_where_a_fresh_fit_does():
    X, rng = rows(120, 40, 7)
    Y = np.where(rng.random((120, 2)) < 0.4, 1.0, -1.0)
    path = LinearPath(X, Y, None, False, True)
    for penalty in (3.0, 1.0, 0.3):
        warm, cold = path.at(penalty), LinearPath(X, Y, None, False, True).at(penalty)
        for k in range(2):
            one, other = (
                objective(X, Y[:, k], LinearScores(f.coef[:, [k]], f.intercept[[k]]), penalty, True)
                for f in (warm, cold)
            )
            assert one == pytest.approx(other, rel=0.1)
    assert warm.coef.shape == (40, 2)
    assert warm.coef.dtype == np.float32


@pytest.mark.parametrize("y", [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
def test_rows_of_nothing_and_of_one_class(y):
    f = LinearPath(
        sp.csr_matrix((3, 5), dtype=np.float32), np.array(y)[:, None], None, False, True
    ).at(1.0)
    assert np.isfinite(f(sp.csr_matrix(np.eye(5, dtype=np.float32)))).all()
    assert not f.coef.any()
    X = sp.csr_matrix(np.eye(3, 5, dtype=np.float32))
    g = LinearPath(X, np.array(y)[:, None], np.array([1.0, 0.0, 1.0]), False, True).at(1.0)
    assert np.isfinite(g(X)).all()


def test_penalties_mean_the_same_whatever_the_units():
    X, rng = rows(90, 30, 9)
    Y = np.where(rng.random((90, 1)) < 0.5, 1.0, -1.0)
    one, other = (LinearPath(X * s, Y, None, False, True).at(1.0)(X * s) for s in (1.0, 100.0))
    assert one == pytest.approx(other, abs=1e-2)


def test_ratios_tell_classes_apart():
    X = sp.csr_array(np.array([[1, 0, 1], [1, 0, -1], [0, 1, 1], [0, 1, 0]], np.float32))
    r = log_ratios(X, np.array([1.0, 1, -1, -1]), np.ones(4))
    assert r[0] > 0.5 > -0.5 > r[1]
    assert r[0] == pytest.approx(np.log(3 / 7) - np.log(1 / 6))
    made = weighed(X, r).toarray()
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert made[0] / np.linalg.norm(made[0]) == pytest.approx(
        (X.toarray()[0] * r) / np.linalg.norm(X.toarray()[0] * r), abs=1e-6
    )
    assert X.toarray()[0].tolist() == [1, 0, 1]  # as it was
    none = log_ratios(X, np.array([1.0, 1, -1, -1]), np.array([1.0, 0, 1, 0]))
    assert none == pytest.approx(log_ratios(X[[0, 2]], np.array([1.0, -1]), np.ones(2)))


def test_ratio_model_scores_new_rows_as_it_scored_its_own():
    X, rng = rows(60, 30, 3)
    X.data[:] = 1
    Y = np.where(rng.random((60, 1)) < 0.5, 1.0, -1.0)
    path = LinearPath(X, Y, None, True, True)
    f = path.at(1.0)
    direct = weighed(X, path.ratios) @ f.coef + f.intercept
    assert f(X) == pytest.approx(direct, abs=1e-5)


def test_scores_of_scores():
    rng = np.random.default_rng(2)
    s, y = rng.normal(size=(50, 1)), np.where(rng.random((50, 1)) < 0.4, 1.0, -1.0)
    assert held_out_score(s, y, True) == pytest.approx(roc_auc_score(y[:, 0] > 0, s[:, 0]))
    assert held_out_score(s, s + 1, False) == pytest.approx(1.0)
    assert held_out_score(-s, s, False) == 0.0
    assert held_out_score(s, np.ones((50, 1)), True) == 0.5


@pytest.mark.parametrize(("n_bytes", "outputs"), [(1, 1), (1e5, 1), (1e9, 1), (1e9, 32)])
def test_columns_are_bounded(n_bytes, outputs):
    for memory in (6e7, 4e9, 1e12):
        bits = n_bits(n_bytes, outputs, memory)
        assert 14 <= bits <= 22
        assert outputs << bits <= 1 << 23
        assert bits == 14 or 200 << bits <= memory / 4


@pytest.mark.parametrize("two", [False, True])
def test_every_kind_gives_sparse_rows_of_its_documents(two):
    texts, _ = drawn(40)
    cells = pa.chunked_array([texts[:15], [*texts[15:], ""]], pa.large_string())
    kinds = text_kinds.text_kinds(float(cells.nbytes), len(cells), 14, two)
    assert sum(k.ratio for k in kinds) == two
    for kind in kinds:
        rows = vectorised(kind, cells)
        X = rows.X
        assert X.shape == (41, len(rows.columns))
        assert (np.diff(X.tocsc().indptr) > 0).all()
        whole = np.hstack([lift.transform(cells).toarray() for lift in rows.lifts])
        assert np.array_equal(whole[:, rows.columns], X.toarray())
        assert np.count_nonzero(whole) == X.nnz
        assert X.dtype == np.float32
        assert X.has_canonical_format
        assert np.diff(X.indptr)[-1] == 0
        assert (np.diff(X.indptr)[:-1] > 0).all()
