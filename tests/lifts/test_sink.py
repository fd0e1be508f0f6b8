"""The kitchen sink stays within its number of features, says where each comes from, and drops what
adds nothing."""

import numpy as np
import pandas as pd
import pytest

from mercer.lifts import KitchenSink
from mercer.testing import check_lift


def rows(n=60, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_lift_equals_kernel():
    check_lift(KitchenSink())
    check_lift(KitchenSink(max_features=20, functions=[np.cbrt]))


@pytest.mark.parametrize("d", [1, 3, 10, 40, 100])
@pytest.mark.parametrize("most", [100, 500, 2000])
def test_never_more_than_asked(d, most):
    phi = KitchenSink(max_features=most).fit(rows(30, d))
    assert d <= phi.n_features_out_ <= most
    assert phi.get_feature_names_out()[:d].tolist() == [f"columns__x{j}" for j in range(d)]
    assert len(set(phi.get_feature_names_out())) == phi.n_features_out_


def test_parts_and_what_was_left_out():
    every = KitchenSink().fit(rows())
    assert list(every.parts_) == ["columns", "squares", "pairs", "splines", "functions", "jumps"]
    assert every.left_out_ == []
    some = KitchenSink(max_features=1500).fit(rows(30, 100))
    assert some.left_out_ == ["pairs"]  # 4,950 of them
    assert some.parts_["jumps"].n == 2  # of 10: the room that 100 + 100 + 700 + 400 leave
    assert KitchenSink(n_knots=0, n_jumps=0, functions=()).fit(rows()).left_out_ == [
        "splines",
        "functions",
        "jumps",
    ]


def test_names_say_where_a_feature_comes_from():
    frame = pd.DataFrame(rows(50, 2), columns=["age", "income"])
    phi = KitchenSink().set_output(transform="pandas").fit(frame)
    out = phi.transform(frame)
    np.testing.assert_allclose(out["pairs__age*income"], frame["age"] * frame["income"])
    np.testing.assert_allclose(out["squares__age^2"], frame["age"] ** 2)
    np.testing.assert_allclose(out["functions__cos(income)"], np.cos(frame["income"]))
    assert {name.split("__")[0] for name in out} == set(phi.parts_)


def test_constant_and_repeated_features_are_dropped():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5000)
    X = np.column_stack(
        [x, rng.integers(0, 2, 5000), np.full(5000, 3.0), x]
    )  # two batches; binary, constant and repeated columns
    phi = KitchenSink(n_jumps=3).fit(X)
    names, F = phi.get_feature_names_out().tolist(), phi.transform(X)
    assert "columns__x1" in names
    assert "squares__x1^2" not in names  # 0 and 1 are their own squares
    assert "columns__x2" not in names
    assert "columns__x3" not in names
    assert (np.ptp(F, axis=0) > 0).all()
    assert len(np.unique(F, axis=1).T) == F.shape[1]


def test_every_feature_that_differs_is_kept():
    X = rows(30, 2)
    phi = KitchenSink(n_knots=0, n_jumps=0, functions=()).fit(X)
    assert phi.get_feature_names_out().tolist() == [
        "columns__x0",
        "columns__x1",
        "squares__x0^2",
        "squares__x1^2",
        "pairs__x0*x1",
    ]


def test_where_nothing_varies_the_columns_stay():
    phi = KitchenSink().fit([[1.0, 2.0]])
    assert phi.get_feature_names_out().tolist() == ["columns__x0", "columns__x1"]


@pytest.mark.parametrize(
    ("phi", "match"),
    [
        (KitchenSink(max_features=3), "max_features=3 is less than the 4 columns"),
        (KitchenSink(max_features=0), "max_features must be"),
        (KitchenSink(n_jumps=-1), "n_jumps must be"),
        (KitchenSink(n_knots=1), "n_knots must be"),
        (KitchenSink(functions=["sine"]), "'sine' is not known"),
    ],
    ids=repr,
)
def test_refusals(phi, match):
    with pytest.raises(ValueError, match=match):
        phi.fit(rows())


def test_huge_values_are_named():
    with pytest.raises(ValueError, match=r"x1\^2 is not finite"):
        KitchenSink().fit([[1.0, 1e200], [2.0, 1.0]])
