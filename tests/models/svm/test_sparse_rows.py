"""Support vector machines of sparse rows as they are, and of the same rows made dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelSVC, KernelSVR
from mercer.costs.choice import forced, watched
from mercer.costs.sparse import AS_DENSE, AS_THEY_ARE
from mercer.kernels import Gaussian
from mercer.models import OneClassSVM
from mercer.ops.threads import limit


def hostile(n, d, dtype, index=np.int32):
    """CSR rows with entries twice, in no order, zeros that are given, and rows without any."""
    rng = np.random.default_rng([n, d])
    X = sp.random_array((n, d), density=0.05, random_state=rng, data_sampler=rng.normal).tocsr()
    pieces = [
        rng.permutation(np.arange(a, b)) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    order = np.repeat(np.concatenate(pieces).astype(int), 2)  # each twice, halved
    data = (X.data[order] / 2).astype(dtype)
    data[rng.random(len(data)) < 0.02] = 0
    A = sp.csr_matrix(X.shape, dtype=dtype)
    A.data, A.indices, A.indptr = data, X.indices[order].astype(index), 2 * X.indptr.astype(index)
    return A, np.asarray(A.sum(1)).ravel() + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "classes"), [(70, 2), (330, 2), (330, 5), (2100, 2)])
def test_both_ways_have_the_same_duals(n, classes, dtype, index):
    X, f = hostile(n, 300, dtype, index)
    y = np.searchsorted(np.quantile(f, np.arange(1, classes) / classes), f)
    parts = X.data.copy(), X.indices.copy(), X.indptr.copy()
    found = {}
    for way in (AS_THEY_ARE, AS_DENSE):
        with forced(sparse_rows=way):
            found[way] = KernelSVC(Gaussian(3.0), C=5.0, tol=1e-5).fit(X, y)
    ours, dense = found[AS_THEY_ARE], found[AS_DENSE]
    assert ours.plan_.settings["sparse_rows"] == AS_THEY_ARE
    assert "sparse_rows" not in dense.plan_.settings
    assert ours.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert ours.gap_ <= 1e-5
    np.testing.assert_allclose(ours.decision_function(X), dense.decision_function(X), atol=3e-3)
    assert sp.issparse(ours.support_vectors_)
    for before, now in zip(parts, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(before, now)  # what is given is never changed


def test_regressions_and_regions_read_them_too():
    X, f = hostile(400, 300, np.float64)
    for m in (KernelSVR(Gaussian(3.0), tol=1e-6), OneClassSVM(Gaussian(3.0), tol=1e-6)):
        values = []
        for way in (AS_THEY_ARE, AS_DENSE):
            with forced(sparse_rows=way):
                values.append(
                    m.fit(X, f).decision_function(X) if hasattr(m, "nu") else m.fit(X, f).predict(X)
                )
        np.testing.assert_allclose(*values, atol=1e-3)


def test_the_same_bits_on_one_thread_and_on_many():
    X, f = hostile(900, 700, np.float32)
    found = []
    for threads in (1, 3):
        with limit(threads):
            found.append(KernelSVC(Gaussian(4.0)).fit(X, f > 0).decision_function(X))
    np.testing.assert_array_equal(*found)


def test_which_rows_have_a_choice():
    X, f = hostile(400, 300, np.float64)
    for kernel, A, there in (
        (Gaussian(3.0), X, {AS_THEY_ARE, AS_DENSE}),
        (Gaussian(1e4), X, set()),  # which share most of k(x, x): their differences need dense ones
        (Gaussian(3.0), X.toarray(), set()),
        ("laplacian", X, set()),
    ):
        with watched() as met:
            KernelSVC(kernel, via="exact").fit(A, f > 0)
        assert met.get("sparse_rows", {"there": set()})["there"] == there


def test_the_choice_is_by_how_many_entries_there_are():
    rng = np.random.default_rng(0)
    for density, way in ((0.02, AS_THEY_ARE), (0.4, AS_DENSE)):
        X = sp.random_array((500, 400), density=density, random_state=rng, format="csr")
        with watched() as met:
            KernelSVC(Gaussian(2.0)).fit(X, np.arange(500) % 2)
        assert met["sparse_rows"]["taken"] == {way}
