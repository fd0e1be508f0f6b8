import math
from functools import reduce
from operator import mul

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from mercer.inputs import Table
from mercer.kernels import (
    AllSubsets,
    Anova,
    ArcCosine,
    Callable,
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    exp,
)
from mercer.kernels.defaults import resolve
from mercer.lifts import Concatenate, Nystrom, Tensor
from mercer.lifts.duality import width
from mercer.lifts.kernel import KernelLift
from mercer.methods import Exact, Landmarks, Sketch
from mercer.testing import check_lift
from tests.conftest import ALL
from tests.market import bounded, rows, size, trees

X = rows(10)

EXACT = {
    "constant": Constant(),
    "linear": Linear(),
    "metric": Linear(metric=np.diag([1.0, 2.0, 3.0])),
    "polynomial": Polynomial(3, bias=0.5),
    "homogeneous": Polynomial(3, bias=0.0),
    "subsets": AllSubsets(),
    "anova": Anova(2),
    "sum": 2 * Linear() + Polynomial(2) + 1,
    "product": Linear() * Polynomial(2),
    "power": (Linear() + 0.5) ** 3,
    "power of linear": Linear() ** 2,
    "power zero": Linear() ** 0,
    "series": Linear().compose([1.0, 0.0, 2.0]),
    "weighted": Polynomial(2).weighted(size),
    "warped": Polynomial(2).warped(bounded),
    "normalized": Polynomial(2).normalized(),
    "columns": Polynomial(2).on_columns([2, 0]) * Linear().on_columns([1]),
}
RANDOM = {
    "gaussian": Gaussian(),
    "sum": 0.5 * Gaussian() + Laplace(norm=1) + Linear(),
    "mixed product": Linear() * Gaussian(),
    "sketched": Polynomial(4) * Gaussian(),
    "power of a sum": (Gaussian() + Linear()) ** 2,
    "exponential": exp(0.5 * Linear()),
    "exponential of a sum": exp(0.3 * Gaussian() + 0.2 * Linear()),
    "weighted": Gaussian().weighted(size),
    "warped": Gaussian((1.0, 2.0)).warped(bounded),
    "normalized": (Gaussian() + Linear()).normalized(),
    "columns": (Gaussian() + Linear()).on_columns([0, 1]) * Matern().on_columns([2]),
    "arc-cosine": ArcCosine(1) + Linear(),
    "polynomial": Polynomial(5),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_lifts_equal_their_kernels(name):
    phi = EXACT[name].lift()
    check_lift(phi, X)
    assert phi.fit(X).n_features_out_ == width(EXACT[name], Table(X))
    np.testing.assert_allclose(phi.kernel_(X), EXACT[name](X))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.long] * (n == "exponential of a sum")) for n in RANDOM],
)
def test_random_lifts_are_unbiased(name):
    check_lift(RANDOM[name].lift(40, random_state=0), rows(6), exact=False, seeds=80 if ALL else 40)


@given(trees)
def test_random_trees_have_maps(k):
    """Any tree of ours turns into features whose kernel it is; its error is that of a random map,
    not of a wrong rule."""
    K, seeds = k(X), 24 if ALL else 8
    F = np.array(
        [G @ G.T for G in (k.lift(64, random_state=s).fit_transform(X) for s in range(seeds))]
    )
    allowed = (
        6 * F.std(0, ddof=1) / np.sqrt(seeds) + 1e-6 * np.abs(K).max()
    )  # six standard errors: hundreds of entries, many trees
    assert (np.abs(F.mean(0) - K) <= allowed).mean() > 0.97


def test_no_size_is_exact_or_that_of_the_rows():
    assert Polynomial(2).lift().fit(X).n_features_out_ == 10
    wide = np.random.default_rng(0).normal(size=(100, 3))
    for many, n in ((X, 256), (wide, 400), (np.repeat(wide, 6, axis=0), 2048)):
        phi = KernelLift(random_state=0).fit(many)
        assert (phi.kernel_, phi.n_features_out_) == (resolve(None, Table(many)), n)
        assert Gaussian().lift(method="landmarks", random_state=0).fit(many).n_features_out_ <= n
        both = (Linear() + Gaussian()).lift(random_state=0).fit(many)
        assert both.n_features_out_ in (n, n - 1)  # frequencies come in pairs
    with pytest.raises(ValueError, match="no finite feature map; give n_features"):
        Gaussian().lift(method="exact").fit(X)


def test_the_map_of_no_size_is_the_one_of_that_size():
    one, other = (KernelLift(n_features=n, random_state=3).fit_transform(X) for n in (None, 256))
    np.testing.assert_array_equal(one, other)
    check_estimator(KernelLift(random_state=0), on_skip=None)


def test_exact_parts_are_served_first():
    phi = (Linear() + Gaussian()).lift(103, random_state=0).fit(X)
    assert [p.n_features_out_ for p in phi.map_.lifts_] == [3, 100]


def test_wide_exact_terms_are_not_starved():
    Z = np.random.default_rng(0).normal(size=(80, 60))
    phi = (Linear() + Gaussian()).lift(150, random_state=0).fit(Z)
    assert [p.n_features_out_ for p in phi.map_.lifts_] == [60, 90]
    many = (
        (Polynomial(2) + Gaussian(8.0)).lift(150, random_state=0).fit(Z)
    )  # 1,891 exact ones do not fit: sketched
    assert many.n_features_out_ <= 150


def test_exp_of_a_kernel_is_cut_where_the_longest_row_allows():
    Z = np.vstack(
        [
            0.1 * np.random.default_rng(0).normal(size=(500, 2)),
            [[0.9, 0.9]],
            0.1 * np.ones((300, 2)),
        ]
    )
    k = exp(Linear() * Linear())
    seeds = 40 if ALL else 15
    grams = [
        F[500] @ F[500]
        for F in (k.lift(400, random_state=s).fit_transform(Z) for s in range(seeds))
    ]
    exact = k.diag(Z[[500]])[0]
    assert (
        abs(np.mean(grams) - exact) <= 5 * np.std(grams) / np.sqrt(seeds) + 1e-6 * exact
    )  # where the series is cut


@pytest.mark.parametrize(
    ("k", "few"),
    [
        ((Linear() + 0.5) ** 2 * (Linear() + 1), 20),
        ((Linear() + Polynomial(2)) ** 2, 35),
        ((Linear() + 1) ** 2 + (Linear() + 0.5) ** 3, 20),
        (Linear() + Linear(), 3),
        (2.0 * Linear() * Polynomial(2, 0.0) + Linear() ** 3, 10),
        (Linear().compose([1.0, 0.5, 2.0]) * Linear(), 19),
        (Linear() * (Linear() + AllSubsets()), 33),
        (Linear() + 1, 4),
    ],
    ids=str,
)
def test_a_polynomial_in_products_of_rows_has_each_feature_once(k, few):
    phi = k.lift(method=Exact()).fit(X)
    F = phi.transform(X)
    assert F.shape[1] == phi.n_features_out_ == few
    np.testing.assert_allclose(F @ F.T, k(X), rtol=1e-9, atol=1e-12)


def test_the_rest_goes_by_the_root_of_the_variance():
    """A term four times as large has four times the error, so it gets four times the features."""
    sizes = [
        p.n_features_out_
        for p in (4 * Gaussian() + Gaussian(1.0001))
        .lift(1000, random_state=0)
        .fit(rows(60))
        .map_.lifts_
    ]
    assert sizes[0] / sizes[1] == pytest.approx(4, rel=0.5)
    assert abs(sum(sizes) - 1000) <= 2


def test_the_users_own_split_is_honoured():
    phi = (Gaussian() + Laplace()).lift([20, 60], random_state=0).fit(X)
    assert [p.n_features_out_ for p in phi.map_.lifts_] == [20, 60]
    with pytest.raises(ValueError, match="n_features has 3 numbers, but the kernel is a sum of 2"):
        (Gaussian() + Laplace()).lift([1, 2, 3]).fit(X)


def test_no_map_names_landmarks():
    k = Callable(lambda X, Z: X @ Z.T)
    with pytest.raises(ValueError, match=r"no feature map is known for .*Landmarks"):
        k.lift(10).fit(X)
    assert isinstance(k.lift(4, method=Landmarks()).fit(X).map_, Nystrom)


def test_methods_take_whole_subtrees():
    k = Gaussian() + Linear()
    assert isinstance(k.lift(6, method=Landmarks()).fit(X).map_, Nystrom)
    assert isinstance(k.lift(10).fit(X).map_, Concatenate)
    assert isinstance((Linear() * AllSubsets()).lift(method=Exact()).fit(X).map_, Tensor)
    assert (Linear() * Linear()).lift(5, method=Sketch(), random_state=0).fit(
        X
    ).n_features_out_ == 5
    with pytest.raises(ValueError, match="no finite feature map"):
        k.lift(method=Exact()).fit(X)
    with pytest.raises(ValueError, match="method must be one of"):
        k.lift(5, method="best").fit(X)


def test_eps_and_delta_size_the_map_by_the_bound():
    phi = (2.0 * Gaussian()).lift(eps=0.3, delta=0.1, random_state=0).fit(X)
    F = phi.transform(X)
    assert np.abs(F @ F.T - 2 * Gaussian()(X)).max() <= 0.3
    assert phi.map_.frequencies == "iid"
    assert phi.plan_.way == "bound"


def test_where_the_bound_is_absurd_a_probe_decides_and_a_certificate_says_so():
    Z = np.random.default_rng(0).normal(size=(300, 3))
    phi = Gaussian(2.0).lift(eps=0.02, random_state=0).fit(Z)
    assert phi.n_features_out_ < 5000
    assert phi.certificate_.bound <= 0.02
    assert "asks for" in str(phi.plan_)


def test_eps_without_a_bound():
    assert Polynomial().lift(eps=0.1).fit(X).plan_.way == "exact"
    probed = (Gaussian() + Laplace()).lift(eps=0.3, random_state=0).fit(X)
    assert probed.certificate_.bound <= 0.3
    assert "no bound is known" in str(probed.plan_)
    with pytest.raises(ValueError, match="not both"):
        Gaussian().lift(10, eps=0.1).fit(X)


def test_columns_by_name():
    frame = pd.DataFrame(X, columns=["age", "pay", "size"])
    k = Gaussian().on_columns(["pay"]) * Linear().on_columns(["age"]) + Linear().on_columns(
        ["size"]
    )
    F = k.lift(4000, random_state=0).fit(frame).transform(frame)
    assert np.abs(F @ F.T - k(frame)).max() < 0.2
    assert "size" in Linear().on_columns(["size"]).lift().fit(frame).get_feature_names_out()


def test_inside_a_pipeline():
    y = np.sin(3 * X[:, 0])
    model = make_pipeline(Gaussian(0.7).lift(200, random_state=0), Ridge(1e-3)).fit(X, y)
    assert model.score(X, y) > 0.9


LIFTS = [
    KernelLift(n_features=32, random_state=0),
    Polynomial(2).lift(),
    (Gaussian() + Linear()).lift(64, random_state=0),
]


@pytest.mark.parametrize("phi", LIFTS, ids=["default", "exact", "sum"])
def test_scikit_learns_contract(phi):
    check_estimator(phi, on_skip=None)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "k",
    [
        Linear(),
        Linear() + 0.5,
        0.5 + Linear(),
        2 * Linear() + 0.5,
        Linear() + Anova(2),
        Polynomial(2),
        Linear(metric=np.diag([1.0, 2.0, 0.5])),
        Linear().normalized(),
        Linear().on_columns([0, 2]) + AllSubsets().on_columns([1]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("times", [False, True])
def test_powers_have_symmetric_features(k, n, times):
    """x'z to the n has C(D + n - 1, n) of them, not D^n; as a power, or as a product of equal
    factors."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    D, power = width(k, Table(X)), reduce(mul, [k] * n) if times and n else k**n
    phi = power.lift().fit(X)
    assert phi.n_features_out_ == width(power, Table(X)) <= (math.comb(D + n - 1, n) if n else 1)
    F, S = phi.transform(X), phi.transform(sp.csr_array(X))
    np.testing.assert_allclose(F @ F.T, power(X), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(S.toarray() if sp.issparse(S) else S, F, atol=1e-12)
    assert len(set(phi.get_feature_names_out())) == phi.n_features_out_


def test_the_cube_of_linear_plus_a_half():
    X = np.random.default_rng(0).normal(size=(12, 3))
    assert ((Linear() + 0.5) ** 3).lift().fit(X).n_features_out_ == 20
