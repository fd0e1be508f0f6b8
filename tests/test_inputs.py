import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from mercer.inputs import table
from mercer.kernels import AllSubsets, Anova, Cauchy, Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.lifts import HashedFeatures, Monomials, NGrams
from mercer.models import KernelRidge
from tests.market import KERNELS, WITH_FUNCTIONS, rows

X = rows(12)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (np.array([[1.0, np.nan]]), "X contains NaN"),
        (np.array([[1.0, np.inf]]), "X contains infinity"),
        (sp.csr_array(np.array([[1.0, np.nan]])), "X contains NaN"),
        (np.zeros((0, 3)), "X has 0 rows"),
        (np.zeros((3, 0)), "at least one column"),
        (np.zeros(3), "must have rows and columns, but it has 1 dimension"),
        (np.zeros((2, 2, 2)), "must have rows and columns, but it has 3 dimension"),
        (np.array([["a", "b"]]), "X must hold numbers"),
        (np.array([[{}, 1]], dtype=object), "X must hold numbers"),
        (np.array([[1j, 1]]), "X is complex"),
        ([[1.0, 2.0], [3.0]], "rows of unequal length"),
        (pd.DataFrame({"a": ["x", "y"]}), "X must hold numbers"),
        (3.0, "must have rows and columns"),
    ],
)
def test_bad_input_is_named_in_one_sentence(bad, says):
    with pytest.raises(ValueError, match=says) as e:
        Gaussian()(bad)
    assert "\n" not in str(e.value)


class LazyFrame:
    """Rows that are described, as those of polars."""

    columns = property(lambda self: pytest.fail("names were asked for, which may read a file"))

    def collect(self):
        return pd.DataFrame({"a": [1.0]})


@pytest.mark.parametrize(
    "read",
    [
        Gaussian(),
        lambda X: KernelRidge().fit(X, [1.0]),
        Monomials().fit_transform,
        NGrams().transform,
        HashedFeatures().fit,
    ],
)
def test_lazy_rows_are_to_be_collected(read):
    with pytest.raises(ValueError, match=r"is a LazyFrame, .*; give \w+\.collect\(\)"):
        read(LazyFrame())


def test_the_second_argument_is_named_too():
    with pytest.raises(ValueError, match="Z has 2 columns, 3 expected"):
        Gaussian()(X, X[:, :2])
    with pytest.raises(ValueError, match="Z contains NaN"):
        Gaussian()(X, X * np.nan)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        lambda X: np.asfortranarray(X),
        lambda X: X[::-1][::-1],
        lambda X: pd.DataFrame(X),
        lambda X: pa.table({f"c{j}": X[:, j] for j in range(3)}),
        lambda X: X.astype(">f8"),
    ],
)
def test_equal_input_in_any_form(convert):
    np.testing.assert_allclose(Gaussian()(convert(X)), Gaussian()(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i8", "f8"), ("u1", "f8"), ("?", "f8")],
)
def test_dtypes(given, kept):
    assert Gaussian()(np.ones((2, 2), given)).dtype == kept


def test_mixed_precision_gives_the_better():
    assert Gaussian()(X.astype("f4"), X).dtype == np.float64


def test_columns_by_name_in_any_dataframe():
    frame = pd.DataFrame(X, columns=["age", "pay", "size"])
    k = Gaussian().on_columns(["size", "age"])
    for native in (frame, pa.Table.from_pandas(frame), nw.from_native(frame).to_arrow()):
        np.testing.assert_allclose(k(native), Gaussian()(X[:, [2, 0]]))
    with pytest.raises(ValueError, match="column 'rent' is not in X; X has age, pay, size"):
        Gaussian().on_columns(["rent"])(frame)


def test_input_is_never_changed():
    before = X.copy()
    for k in KERNELS.values():
        k(X)
        k.diag(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in WITH_FUNCTIONS])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sparse_equals_dense(name, dtype):
    A = sp.random_array(
        (9, 3), density=0.4, random_state=np.random.default_rng(0), dtype=dtype
    ).tocsr()
    B = sp.random_array(
        (5, 3), density=0.4, random_state=np.random.default_rng(1), dtype=dtype
    ).tocsr()
    k = KERNELS[name]
    tol = {"rtol": 1e-4, "atol": 1e-4} if dtype == "f4" else {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(k(A, B), k(A.toarray(), B.toarray()), **tol)
    np.testing.assert_allclose(k(A), k(A.toarray()), **tol)
    np.testing.assert_allclose(k.diag(A), k.diag(A.toarray()), **tol)
    np.testing.assert_allclose(k(A, B.toarray()), k(A.toarray(), B.toarray()), **tol)
    assert k(A).dtype == dtype


def test_wide_sparse_rows_are_not_made_dense():
    """A dense row of ten million columns would take 80 MB; a thousand of them 80 GB."""
    A = sp.random_array(
        (200, 10_000_000), density=1e-6, random_state=np.random.default_rng(0)
    ).tocsr()
    for k in (
        Gaussian(),
        Linear(),
        Polynomial(),
        AllSubsets(),
        Anova(),
        Cauchy(),
        Laplace(norm=1),
        Matern(),
    ):
        assert k(A).shape == (200, 200)


@pytest.mark.parametrize(
    "k", [Gaussian(), Laplace(), Laplace(norm=1), Matern(), Cauchy()], ids=repr
)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_values(k, scale):
    far = k(np.array([[0.0, 0.0], [scale, scale], [-scale, scale]]))
    expected = np.ones((3, 3)) if scale < 1 else np.eye(3)
    np.testing.assert_allclose(far, expected, atol=1e-6 if scale < 1 else 1e-29)


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-6, 1e6, 1e300])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, Matern, Cauchy])
def test_huge_and_tiny_bandwidths(kind, bandwidth):
    K = kind(bandwidth)(X)
    assert np.isfinite(K).all()
    assert (np.diag(K) == 1).all()
    assert np.linalg.eigvalsh(K)[0] > -1e-9
    if bandwidth < 1:
        assert K[0, 1] < 1e-5


def test_table_names_one_row_and_one_column():
    assert Gaussian()([[1.0]]).shape == (1, 1)
    assert len(table([[1, 2]])[0:1]) == 1
    assert Gaussian()(np.ones((4, 3))).min() == 1
