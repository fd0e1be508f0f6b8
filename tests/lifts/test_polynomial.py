"""Monomials, interactions and subsets equal their kernels, dense and sparse, by scikit-learn's
order and by name."""

import tracemalloc
from itertools import combinations, product
from math import comb, factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

from mercer.kernels import AllSubsets, Anova, Linear, Polynomial
from mercer.lifts import Interactions, Monomials, Subsets
from mercer.lifts.polynomial import kept_weights
from mercer.testing import check_lift

LIFTS = {
    "plain": Monomials(),
    "constant": Monomials(0),
    "linear": Monomials(1, include_bias=False),
    "cubic": Monomials(3, include_bias=False),
    "kernel": Monomials(3, weights="kernel", bias=0.7),
    "kernel, no constant": Monomials(3, weights="kernel", bias=0.7, include_bias=False),
    "kernel, homogeneous": Monomials(3, weights="kernel", bias=0.0),
    "kernel, homogeneous, no constant": Monomials(
        2, weights="kernel", bias=0.0, include_bias=False
    ),
    "ordered": Monomials(3, ordered=True),
    "ordered, no constant": Monomials(2, ordered=True, include_bias=False),
    "ordered kernel": Monomials(3, weights="kernel", ordered=True, bias=2.0),
    "ordered kernel, homogeneous": Monomials(2, weights="kernel", ordered=True, bias=0.0),
    "interactions only": Monomials(2, interaction_only=True),
    "interactions only, all": Monomials(3, interaction_only=True),
    "interactions only, too many": Monomials(5, interaction_only=True, include_bias=False),
    "interactions only, kernel": Monomials(4, weights="kernel", interaction_only=True, bias=0.5),
    "capped": Monomials(4, degree_per_column=[1, 0, 3]),
    "capped kernel": Monomials(4, weights="kernel", degree_per_column={0: 1, 2: 3}, bias=0.5),
    "capped, no total": Monomials(None, degree_per_column=[1, 2, 1]),
    "capped interactions": Monomials(3, interaction_only=True, degree_per_column=[1, 0, 1]),
    "from degree 2": Monomials((2, 3)),
    "from degree 2, no constant": Monomials((2, 3), include_bias=False),
    "degree 2 alone": Monomials((2, 2)),
    "from degree 1": Monomials((1, 2)),
    "from degree 0": Monomials((0, 2), include_bias=False),
    "kernel, from degree 2": Monomials((2, 3), weights="kernel", bias=0.7),
    "kernel, from degree 2, homogeneous": Monomials((2, 3), weights="kernel", bias=0.0),
    "ordered, from degree 2": Monomials((2, 3), ordered=True),
    "ordered kernel, from degree 2": Monomials((2, 3), weights="kernel", ordered=True),
    "interactions only, from degree 2": Monomials((2, 3), interaction_only=True),
    "interactions only, none but the constant": Monomials((5, 6), interaction_only=True),
    "capped, from degree 2": Monomials((2, 4), degree_per_column=[1, 0, 3]),
    "pairs": Interactions(),
    "triples": Interactions(3),
    "pairs of columns": Interactions(2, columns=[2, 0]),
    "too high an order": Interactions(5),
    "subsets": Subsets(),
    "small subsets": Subsets(max_size=2),
    "empty subset": Subsets(max_size=0),
}


@pytest.mark.parametrize("name", LIFTS)
def test_lift_equals_kernel(name):
    check_lift(LIFTS[name])


@pytest.mark.parametrize("name", LIFTS)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_is_dense(name, kind, dtype):
    X = (
        sp.random_array(
            (11, 4 if "capped" not in name else 3),
            density=0.5,
            random_state=np.random.default_rng(1),
        )
        .toarray()
        .astype(dtype)
    )
    phi = clone(LIFTS[name]).fit(X)
    F = phi.transform(kind(X))
    assert isinstance(F, kind)
    assert F.dtype == dtype
    np.testing.assert_allclose(F.toarray(), phi.transform(X), rtol=1e-6)
    np.testing.assert_allclose(
        F.toarray() @ F.toarray().T, phi.kernel_(kind(X)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("kernel", Polynomial(3, 0.7)),
        ("kernel, homogeneous", Polynomial(3, 0.0)),
        ("ordered kernel", Polynomial(3, 2.0)),
        ("ordered", Linear().compose([1, 1, 1, 1])),
        ("interactions only, all", AllSubsets()),
        ("pairs", Anova(2)),
        ("pairs of columns", Anova(2).on_columns([2, 0])),
        ("subsets", AllSubsets()),
    ],
)
def test_kernels_by_name(name, kernel):
    assert clone(LIFTS[name]).fit(np.zeros((1, 3))).kernel_ == kernel


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        {"degree": degree, "interaction_only": alone, "include_bias": bias}
        for degree in (1, 2, 3, (0, 2), (1, 2), (2, 2), (2, 4), (3, 3))
        for alone in (False, True)
        for bias in (False, True)
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_scikit_learn_twin(d, options):
    X = np.random.default_rng(0).normal(size=(7, d))
    theirs = PolynomialFeatures(**options).fit(X)
    if not theirs.n_output_features_:
        with pytest.raises(ValueError, match="no feature left"):
            Monomials(**options).fit(X)
        return
    ours = Monomials(**options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X))
    np.testing.assert_allclose(ours.transform(sp.csr_array(X)).toarray(), theirs.transform(X))
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    assert [
        name.replace("*", " ") for name in ours.get_feature_names_out()
    ] == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_weights_by_their_formula(degree):
    phi = Monomials(degree, weights="kernel", bias=0.3).fit(np.zeros((1, 3)))
    a = PolynomialFeatures(degree).fit(np.zeros((1, 3))).powers_
    k, factorials = a.sum(1), np.prod([[factorial(p) for p in row] for row in a], axis=1)
    weights = [
        factorial(degree) / factorial(degree - i) / f * 0.3 ** (degree - i)
        for i, f in zip(k, factorials, strict=True)
    ]
    np.testing.assert_allclose(phi.weights_, np.sqrt(weights))


def test_ordered_monomials():
    phi = Monomials(3, weights="kernel", ordered=True, bias=0.5).fit([[1.0, 2.0]])
    x, F = np.array([1.5, -2.0]), phi.transform([[1.5, -2.0]])[0]
    words = [word for k in range(4) for word in product(range(2), repeat=k)]
    np.testing.assert_allclose(
        F, [np.sqrt(comb(3, len(w)) * 0.5 ** (3 - len(w))) * np.prod(x[list(w)]) for w in words]
    )
    assert phi.get_feature_names_out()[:7].tolist() == [
        "1",
        "x0",
        "x1",
        "x0^2",
        "x0*x1",
        "x1*x0",
        "x1^2",
    ]


def test_slip_of_the_square():
    """Note 001 leaves 2 x1 z1 out of (1 + x'z)^2."""
    x, z = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    u = x * z
    noted = 1 + u[0] ** 2 + u[1] ** 2 + 2 * u[1] + 2 * u[0] * u[1]
    phi = Monomials(2, weights="kernel").fit([x])
    found = (phi.transform([x]) @ phi.transform([z]).T).item()
    np.testing.assert_allclose(found, Polynomial(2)(x, z))
    np.testing.assert_allclose(found, noted + 2 * u[0])


def test_degree_per_column_is_what_was_asked():
    """scikit-learn issue 24552: one degree a column, by position or by name."""
    frame = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 5.0]})
    names = ["1", "age", "income", "age*income", "income^2", "age*income^2"]
    for given in ([1, 2], np.array([1, 2]), {"age": 1, "income": 2}, {0: 1, -1: 2}):
        phi = Monomials(None, degree_per_column=given).fit(frame)
        assert phi.get_feature_names_out().tolist() == names
        np.testing.assert_allclose(phi.transform(frame)[1], [1, 2, 5, 10, 25, 50])
    assert (
        Monomials(2, degree_per_column={"age": 1}).fit(frame).get_feature_names_out().tolist()
        == names[:-1]
    )


def test_names_with_dataframes():
    frame = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 5.0], "age^2": [0.0, 1.0]})
    phi = Monomials(2).set_output(transform="pandas").fit(frame)
    out = phi.transform(frame)
    assert out["age*income"].tolist() == [3, 10]
    assert out["age^2~2"].tolist() == [1, 4]  # a square that has the name of a column
    assert Interactions(columns=["income", "age"]).fit(frame).get_feature_names_out().tolist() == [
        "income*age"
    ]
    assert Subsets(1).fit(frame).get_feature_names_out().tolist() == ["1", "age", "income", "age^2"]


@pytest.mark.parametrize("d", [1, 4, 7])
def test_all_subsets_product_is_the_sum_over_all_subsets(d):
    x, z = np.random.default_rng(d).normal(size=(2, d))
    subsets = [list(s) for k in range(d + 1) for s in combinations(range(d), k)]
    total = sum(np.prod(x[s]) * np.prod(z[s]) for s in subsets)
    phi = Subsets().fit([x])
    assert phi.n_features_out_ == len(subsets) == 2**d
    np.testing.assert_allclose(total, np.prod(1 + x * z))
    np.testing.assert_allclose((phi.transform([x]) @ phi.transform([z]).T).item(), total)


def test_millions_of_features_make_no_lists():
    X = sp.random_array((3, 200), density=0.05, format="csr", random_state=np.random.default_rng(0))
    tracemalloc.start()
    phi = Monomials(3, weights="kernel").fit(X)
    F = phi.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert phi.n_features_out_ == comb(203, 3)
    assert (
        peak < 60 * phi.n_features_out_
    )  # a few arrays of that length, where one tuple takes 64 bytes
    np.testing.assert_allclose((F @ F.T).toarray(), Polynomial(3)(X))


@pytest.mark.parametrize(
    ("phi", "match"),
    [
        (Monomials(-1), "degree must be an integer >= 0"),
        (Monomials((3, 2)), r"a pair \(lowest, highest\), got \(3, 2\)"),
        (Monomials((1, 2, 3)), "a pair"),
        (Monomials((-1, 2)), "degree must be an integer >= 0"),
        (Monomials((0.5, 2)), "degree must be an integer >= 0"),
        (Monomials((0, 0), include_bias=False), "no feature left"),
        (Monomials(weights="other"), "weights must be None or"),
        (Monomials(weights="kernel", bias=-1.0), "bias must be a number >= 0"),
        (Monomials(0, include_bias=False), "no feature left"),
        (Monomials(None), "needs degree_per_column"),
        (Monomials(None, degree_per_column={0: 1}), "for every column"),
        (Monomials(degree_per_column={"age": 1}), "'age' is not a column of X"),
        (Monomials(degree_per_column=[1]), "must hold 30 whole numbers"),
        (Monomials(2, ordered=True, interaction_only=True), "ordered=True lists every"),
        (Interactions(0), "order must be an integer >= 1"),
        (Interactions(columns=[0, 0]), "different columns"),
        (Interactions(columns=[40]), "40 is not a column"),
        (Subsets(), "more than 1048576 subsets"),
        (Subsets(max_size=-1), "max_size must be"),
    ],
    ids=repr,
)
def test_refusals(phi, match):
    with pytest.raises(ValueError, match=match):
        phi.fit(np.zeros((2, 30)))


@pytest.mark.parametrize(
    "phi", [Monomials(), Monomials(weights="kernel"), Interactions(), Subsets()], ids=repr
)
def test_odd_rows(phi):
    with pytest.raises(ValueError, match="NaN"):
        phi.fit([[np.nan, 1.0]])
    assert np.isfinite(clone(phi).fit_transform([[1e100, -1e100]])).all()
    assert np.isinf(clone(phi).fit_transform([[1e200, -1e200]])).any()  # and without a warning
    assert clone(phi).fit(np.ones((1, 2))).transform(np.ones((4, 2))).shape[0] == 4


def test_numpy_numbers_are_numbers():
    assert Monomials(np.int64(2), weights="kernel", bias=np.float32(1)).fit(
        [[1.0]]
    ).kernel_ == Polynomial(2)
    assert Interactions(np.int64(1)).fit([[1.0]]).kernel_ == Anova(1)


@pytest.mark.parametrize("name", [name for name in LIFTS if isinstance(LIFTS[name], Monomials)])
def test_powers_and_weights_give_the_features(name):
    X = np.random.default_rng(0).normal(size=(5, 3))
    phi = clone(LIFTS[name]).fit(X)
    weights = kept_weights(phi)
    products = np.prod(X[:, None, :] ** phi.powers_, axis=2)
    expected = products * (1 if weights is None else weights)
    np.testing.assert_allclose(phi.transform(X), expected, rtol=1e-10)
    assert phi.powers_.shape == (phi.n_features_out_, 3)
    assert "powers_" not in vars(phi)
