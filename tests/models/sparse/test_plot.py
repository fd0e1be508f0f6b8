"""The path as a picture and as a table."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from mercer import SparseClassifier, SparseRegressor
from mercer.lifts import Identity
from mercer.models.sparse.solve import SparsePath

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)) * np.array([1, 10, 100, 1, 1])
Y = 2 * X[:, 0] - 0.3 * X[:, 1] + 0.1 * RNG.normal(size=120)


class Axes:
    """What a plot asks of Matplotlib's."""

    def __init__(self):
        self.lines, self.names, self.at = [], [], None

    def plot(self, x, y, label=None, color=None, linewidth=None):
        self.lines.append((np.asarray(x), np.asarray(y)))
        self.names.append(label)

    def axvline(self, x, **_):
        self.at = x

    def set(self, xscale, **_):
        assert xscale == "log"

    def invert_xaxis(self):
        self.turned = True

    def legend(self):
        self.told = True


def test_lines_are_the_effects_of_features():
    m = SparseRegressor(Identity(), n_alphas=20, refit=False).fit(X, Y)
    ax = m.plot_path(Axes())
    assert ax.at == m.alpha_
    assert {name for name in ax.names if name} == set(m.names_) == {"x0", "x1"}
    assert len(ax.lines) == len(m.path_.ids)
    for (x, y), name in zip(ax.lines, ax.names, strict=True):
        np.testing.assert_array_equal(x, m.path_.alphas)
        if name:
            j = int(name[1:])
            at = m.path_.ids.tolist().index(j)
            np.testing.assert_allclose(y, m.path_.coef[:, 0, at] * X[:, j].std())


def test_many_classes_have_lines_of_their_own():
    y = np.digitize(Y, [-3, 3])
    m = SparseClassifier(Identity(), n_alphas=8, eps=0.1).fit(X, y)
    names = [name for name in m.plot_path(Axes()).names if name]
    assert "x0, 0" in names
    assert all(name.split(", ")[1] in "012" for name in names)


def test_without_features_there_is_a_picture_still():
    m = SparseRegressor(Identity(), alpha=1e9).fit(X, Y)
    ax = m.plot_path(Axes())
    assert not ax.lines
    assert not hasattr(ax, "told")


def test_matplotlib_is_asked_for():
    m = SparseRegressor(Identity(), n_alphas=3).fit(X, Y)
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ImportError, match="plot_path draws with Matplotlib"):
            m.plot_path()


def test_the_table_of_a_path():
    m = SparseRegressor(Identity(), n_alphas=12).fit(X, Y)
    table = m.path_table_
    assert list(table) == ["alpha", "features", "gap", "loss", "error"]
    assert {len(v) for v in table.values()} == {12}
    assert table["features"][0] == 0
    assert table["loss"][-1] == pytest.approx(m.cv_losses_[-1].mean())
    assert min(table["error"]) == 0
    single = SparseRegressor(Identity(), alpha=0.1, n_alphas=4).fit(X, Y)
    assert list(single.path_table_) == ["alpha", "features", "gap"]


def test_a_path_of_before_has_no_deviations():
    m = SparseRegressor(Identity(), n_alphas=5).fit(X, Y)
    values = {k: v for k, v in vars(m.path_).items() if k != "deviations"}
    path = SparsePath(**SparsePath._upgraded(values))
    assert path.deviations is None
    m.model_ = replace(m.model_, path=path)
    lines = m.plot_path(Axes()).lines
    assert any(np.array_equal(y, path.coef[:, 0, 0]) for _, y in lines)
