"""LearnedMetric, alone and before estimators."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import KernelRidge, LearnedMetric
from mercer.kernels import Callable, Gaussian, Laplace, Polynomial
from mercer.models.feature_machine.learned_metric import is_classes


def ridge_function(seed: int, n: int = 240, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.05 * rng.normal(size=n)


def test_check_estimator() -> None:
    check_estimator(LearnedMetric(random_state=0), on_skip=None)


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0), Laplace(3.0, norm=1), Polynomial(3)])
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_columns_that_matter_are_found(kernel: object, form: str) -> None:
    X, y = ridge_function(0)
    m = LearnedMetric(kernel, form, random_state=0).fit(X, y)
    assert m.importances_[:2].sum() > 0.85
    assert m.importances_.sum() == pytest.approx(1)
    assert m.metric_.shape == ((5,) if form == "diagonal" else (5, 5))


def test_the_direction_is_found() -> None:
    X, y = ridge_function(1)
    m = LearnedMetric(form="full", random_state=0).fit(X, y)
    assert abs(m.directions_[0] @ [1, 1, 0, 0, 0]) / np.sqrt(2) > 0.98
    np.testing.assert_allclose(m.directions_ @ m.directions_.T, np.eye(5), atol=1e-8)


def test_rows_are_mapped_linearly() -> None:
    X, y = ridge_function(2)
    m = LearnedMetric(None, "full", random_state=0).fit(X, y)
    Z = m.transform(X)
    np.testing.assert_allclose(m.transform(2 * X) - Z, Z, atol=1e-8)
    gaps = np.einsum("ij,jk,ik->i", X, m.metric_, X)
    np.testing.assert_allclose(np.square(Z).sum(1), gaps, rtol=1e-6)


def test_units_of_columns_do_not_matter() -> None:
    X, y = ridge_function(3)
    scale = np.array([1e-3, 1e3, 1.0, 10.0, 1e6])
    a = LearnedMetric(random_state=0).fit(X, y)
    b = LearnedMetric(random_state=0).fit(X * scale + 7, y)
    np.testing.assert_allclose(a.importances_, b.importances_, atol=1e-3)
    gaps = np.linalg.norm(np.diff(a.transform(X), axis=0), axis=1)
    moved = np.linalg.norm(np.diff(b.transform(X * scale + 7), axis=0), axis=1)
    np.testing.assert_allclose(gaps, moved, rtol=1e-2)


def test_it_helps_estimators_behind_it() -> None:
    X, y = ridge_function(4, 400, 12)
    train, test = slice(0, 200), slice(200, 400)
    plain = KernelRidge(Gaussian(3.0), alpha=0.01).fit(X[train], y[train])
    learnt = make_pipeline(LearnedMetric(random_state=0), KernelRidge(Gaussian(3.0), alpha=0.01))
    learnt.fit(X[train], y[train])
    gaps = [np.mean((m.predict(X[test]) - y[test]) ** 2) for m in (plain, learnt)]
    assert gaps[1] < 0.5 * gaps[0]


def test_cross_fitted_rows_have_not_seen_their_targets() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 30)), rng.normal(size=60)  # nothing to learn

    def left_out(m: LearnedMetric) -> float:
        Z = m.fit_transform(X, y)
        return KernelRidge(Gaussian(5.0), alpha=0.1).fit(Z, y).loo_score_

    seen = left_out(LearnedMetric(form="full", rounds=2, random_state=0))
    apart = left_out(LearnedMetric(form="full", rounds=2, cross_fit=5, random_state=0))
    assert apart <= seen + 0.05
    m = LearnedMetric(cross_fit=3, random_state=0)
    assert m.fit_transform(X, y).shape == (60, 30)


def test_classes_are_targets_too() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 4))
    for y in (X[:, 2] > 0, np.digitize(X[:, 2], [-0.5, 0.5]).astype(str)):
        assert LearnedMetric(random_state=0).fit(X, y).importances_[2] > 0.8


def test_files_names_and_sentences(tmp_path) -> None:
    X, y = ridge_function(7, 80)
    m = LearnedMetric(random_state=0).fit(X, y)
    m.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").transform(X), m.transform(X))
    assert (
        LearnedMetric(form="full", rounds=1).fit(X, y).get_feature_names_out()[0]
        == "learnedmetric0"
    )
    assert LearnedMetric(form="diagonal").fit(X, y).get_feature_names_out()[1] == "x1"
    with pytest.raises(ValueError, match="form must be 'auto', 'diagonal' or 'full', got 'round'"):
        LearnedMetric(form="round").fit(X, y)
    with pytest.raises(ValueError, match="rounds must be an integer >= 0, got -1"):
        LearnedMetric(rounds=-1).fit(X, y)
    with pytest.raises(ValueError, match="cross_fit must be an integer >= 2, got 1"):
        LearnedMetric(cross_fit=1).fit(X, y)
    with pytest.raises(ValueError, match="Callable"):
        LearnedMetric(Callable(lambda A, B: A @ B.T)).fit(X, y)
    assert LearnedMetric(rounds=0).fit(X, y).rounds_ == 0


def test_whole_numbers_are_numbers() -> None:
    X, y = ridge_function(8, 300)
    whole = np.round(1000 * y)
    for target in (whole, whole.astype(int)):
        m = LearnedMetric(random_state=0).fit(X, target)
        assert m.importances_[:2].sum() > 0.85
    assert is_classes(np.array([0, 1] * 20))
    assert is_classes(np.array(["a", "b"]))
    assert not is_classes(np.array([0.0, 1.0] * 20))
    assert not is_classes(np.arange(300))
