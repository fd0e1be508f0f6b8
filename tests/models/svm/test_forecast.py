"""Beyond so many rows "auto" asks two samples what the exact dual would take, and goes by that."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelSVC
from mercer.costs.choice import forced
from mercer.costs.sparse import AS_DENSE
from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.lifts import Monomials
from mercer.models.svm import fit, plan
from mercer.models.svm import forecast as room
from mercer.models.svm.fit import expected
from mercer.models.svm.forecast import Forecast, columns_of, forecast, samples
from mercer.models.svm.plan import ClassifierSettings, LabelledRows, choose, left_open


@pytest.fixture
def few_are_many(monkeypatch):
    """300 rows are many, and samples have 160 and 40."""
    monkeypatch.setattr(plan, "EXACT_ROWS", 300)
    monkeypatch.setattr(room, "SMALLEST", 160)
    monkeypatch.setattr(room, "LARGEST", 160)


def data(n=600, noise=0.0, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = np.stack([X[:, 0], -X[:, 0], X[:, 1]][:classes], axis=1)
    return X, (f + noise * rng.normal(size=f.shape)).argmax(1)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_support_grows_as_a_power_of_the_rows(power):
    at = lambda n: 20.0 * n**power
    found = forecast(10**6, 4096, (at(1024), at(4096)), 36.0, 2048.0)
    assert found.support == round(at(10**6))
    assert found.exact == pytest.approx(100 * at(10**6))


def test_support_neither_falls_nor_outgrows_the_rows():
    assert forecast(10**6, 4096, (50.0, 20.0), 1.0, 1.0).support == 20
    assert forecast(8192, 4096, (1.0, 4000.0), 1.0, 1.0).support == 8000
    assert forecast(8192, 4096, (0.0, 0.0), 1.0, 1.0).support == 1


@pytest.mark.parametrize("seed", range(5))
def test_samples_hold_every_class_and_lie_in_one_another(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1000, 9000))
    codes = (rng.random(n) < 0.5).astype(int)
    codes[rng.integers(n)] = 2  # one row of its own
    small, large = samples(codes, float(rng.integers(1, 10**5)))
    assert set(codes[small]) == set(codes[large]) == {0, 1, 2}
    assert set(small) <= set(large)
    assert len(small) == len(large) // 4
    assert len(samples(codes, 1e9)[1]) == min(n, 512)
    assert len(samples(codes, 0.0)[1]) == min(n, 4096)


def test_sparse_rows_cost_what_they_share():
    X = sp.random_array(
        (50, 400), density=0.02, random_state=np.random.default_rng(0), format="csr"
    )
    assert columns_of(Table(X), 1e9) == columns_of(Table(X.toarray()), 1e9) == 400
    counts = np.bincount(X.indices, minlength=400)
    assert columns_of(Table(X), 1.0) == pytest.approx(256 + 48 * np.sum(counts**2) / 50**2)


def test_auto_goes_by_the_price():
    s = ClassifierSettings.of(KernelSVC())
    cheap, dear = Forecast(10, 1.0, 2.0), Forecast(10**6, 2.0, 1.0)
    assert choose(10**6, s, cost=cheap).way == "exact"
    found = choose(10**6, s, cost=dear)
    assert found.way == "features"
    assert "about 1,000,000 support vectors expected" in found.rejected[0][1]


@pytest.mark.parametrize(
    ("options", "open_"),
    [
        ({}, True),
        ({"via": "features"}, False),
        ({"via": "exact"}, False),
        ({"lift": Monomials(2)}, False),
    ],
)
def test_only_auto_asks(options, open_):
    s = ClassifierSettings.of(KernelSVC(**options))
    assert left_open(10**6, s) is open_
    assert not left_open(10**6, s, own=True)
    assert not left_open(plan.EXACT_ROWS, s)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_easy_rows_are_exact_at_any_number_and_the_plan_says_why(few_are_many, classes, sparse):
    X, y = data(classes=classes)
    given = sp.csr_array(np.maximum(X, 0)) if sparse else X
    m = KernelSVC().fit(given, y)
    assert m.plan_.way == "exact dual"
    assert "support vectors expected" in m.plan_.why
    again, exact = KernelSVC().fit(given, y), KernelSVC(via="exact").fit(given, y)
    np.testing.assert_array_equal(m.decision_function(given), again.decision_function(given))
    np.testing.assert_array_equal(m.dual_coef_, exact.dual_coef_)
    assert m.plan_.why == again.plan_.why


def test_the_expected_support_is_near_that_found(few_are_many):
    X, y = data(n=1200, noise=0.3)
    m = KernelSVC().fit(X, y)
    said = int(m.plan_.why.split("about ")[1].split()[0].replace(",", ""))
    assert 0.5 < said / len(m.support_) < 2


def test_noisy_rows_go_over_features_where_the_dual_is_dear(few_are_many, monkeypatch):
    monkeypatch.setattr(room, "SWEEPS", 6)
    easy, hard = data(), data(noise=3.0)
    assert KernelSVC(Gaussian(2.0)).fit(*easy).plan_.way == "exact dual"
    m = KernelSVC(Gaussian(2.0), random_state=0).fit(*hard)
    assert hasattr(m, "coef_")
    assert "support vectors expected" in m.plan_.rejected[0][1]


def test_kernels_of_few_features_need_no_samples(few_are_many, monkeypatch):
    X, y = data()
    monkeypatch.setattr(room, "SWEEPS", np.inf)
    assert hasattr(KernelSVC(Linear()).fit(X, y), "coef_")
    assert hasattr(KernelSVC(Linear()).fit(sp.csr_array(np.where(X > 1.2, X, 0)), y), "coef_")


def test_samples_of_rows_that_stay_sparse_stay_so_too(few_are_many, monkeypatch):
    made = []
    of = fit.operator_of
    monkeypatch.setattr(fit, "operator_of", lambda *a, **o: made.append(of(*a, **o)) or made[-1])
    X, y = data()
    wide = sp.hstack([sp.csr_array(np.maximum(X, 0)), sp.csr_array((600, 2000))], format="csr")
    for limit, sparse in (("1GB", False), ("15MB", True)):
        made.clear()
        rows = LabelledRows.of(Table(wide), y, None, gram=False)
        with forced(sparse_rows=AS_DENSE):
            expected(ClassifierSettings.of(KernelSVC(memory_limit=limit)), rows)
        assert [len(op.X) for op in made] == [40, 160]
        assert all(op.X.sparse is sparse for op in made)


@pytest.mark.parametrize(("classes", "told"), [(20, True), (21, False)])
def test_more_classes_than_a_sample_tells_of(few_are_many, classes, told):
    rows = LabelledRows.of(Table(data()[0]), np.arange(600) % classes, None, gram=False)
    assert (expected(ClassifierSettings.of(KernelSVC()), rows) is not None) is told


def test_weights_of_zero_and_classes_of_one_row(few_are_many):
    X, y = data(n=500)
    y[7], w = 2, np.ones(500)
    w[50:90] = 0
    m = KernelSVC().fit(X, y, sample_weight=w)
    assert m.plan_.way == "exact dual"
    assert list(m.classes_) == [0, 1, 2]
    assert not set(range(50, 90)) & set(m.support_)


def test_rows_without_weight_are_no_rows(few_are_many):
    X, y = data(400, 0.5)
    w = np.zeros(400)
    w[:12] = 1.0
    m, few = KernelSVC().fit(X, y, sample_weight=w), KernelSVC().fit(X[:12], y[:12])
    assert m.plan_ == few.plan_
    assert m.plan_.way == "exact dual"
    np.testing.assert_array_equal(m.decision_function(X), few.decision_function(X))
