"""The same on a client: threads of this process, so that the default suite stays small; and one of two
processes, to which all that a model is must travel."""

import numpy as np
import pytest

from mercer import KernelLogistic, KernelRidge
from mercer.engines import checkpointed
from mercer.engines.scheduler import WorkerError
from mercer.kernels import Gaussian, Matern
from mercer.methods import Fourier
from mercer.operators.partitioned import PartitionedOperator

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).normal(size=(500, 3))
Y = np.sin(X).sum(1)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def ridge(lazy=None):
    made = KernelRidge(Gaussian(2.0), via=Fourier(40), random_state=0, cv=3)
    lazy = lazy if lazy is not None else da.from_array(X, chunks=(21, 2))
    return made.fit(lazy, da.from_array(Y, chunks=100))


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # of older Dask
def test_a_client_and_no_client_give_the_same_bits(client, tmp_path):
    there = ridge()
    with checkpointed(tmp_path):
        kept = ridge()
    with distributed.Client(client.cluster, set_as_default=False):
        pass
    persisted = ridge(da.from_array(X, chunks=(21, 2)).persist())
    client.as_current()
    import dask

    with dask.config.set(scheduler="synchronous"):
        here = ridge()
    for m in (there, kept, persisted):
        assert np.array_equal(m.coef_, here.coef_)
        assert all(np.array_equal(a.S, b.S) for a, b in zip(m.moments_, here.moments_, strict=True))


def test_rounds_on_a_client(client):
    two = (Y > 0).astype(int)
    m = KernelLogistic(via=Fourier(30), random_state=0, tol=1e-9)
    m.fit(da.from_array(X, chunks=(100, 3)), da.from_array(two, chunks=100))
    own = KernelLogistic(via=Fourier(30), random_state=0, tol=1e-9).fit(X, two)
    np.testing.assert_allclose(m.coef_, own.coef_, rtol=1e-5, atol=1e-7)
    assert (m.predict(da.from_array(X, chunks=(100, 3))).compute() == own.predict(X)).all()


@pytest.mark.filterwarnings("ignore")  # of a client that is closed
def test_targets_that_a_client_holds_and_that_are_cut_anew(client):
    def fit():
        X_lazy = da.from_array(X, chunks=(70, 3))
        m = KernelRidge(Gaussian(2.0), via=Fourier(40), random_state=0)
        return m.fit(X_lazy, y)

    y = da.from_array(Y, chunks=100)
    own = fit()
    y = y.persist()
    assert np.array_equal(fit().coef_, own.coef_)
    with distributed.Client(client.cluster) as other:
        y = da.from_array(Y, chunks=100).persist()
    assert other.status == "closed"
    client.as_current()
    with pytest.raises(WorkerError, match="client was closed"):
        fit()


@pytest.fixture
def processes():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.long  # two processes import everything
@pytest.mark.filterwarnings("ignore")  # of processes that end
def test_exact_ridge_in_processes_is_that_of_memory(processes, monkeypatch):
    """Kernel and penalty differ from the defaults, rows are in several blocks, some are copies, and
    products are made by the workers."""
    r = np.random.default_rng(1)
    rows = np.concatenate([r.normal(size=(900, 3)), np.ones((50, 3)), X[:50]])
    y, w = np.sin(rows).sum(1) + 0.1 * r.normal(size=1000), r.uniform(0.5, 2, 1000)
    asked = []
    whole = PartitionedOperator._blocks

    def blocks(self, client, W):
        asked.append(client.id)
        return whole(self, client, W)

    monkeypatch.setattr(PartitionedOperator, "_blocks", blocks)
    monkeypatch.setattr("mercer.operators.partitioned.BLOCK_ROWS", 300)
    for way in ("exact", "iterative"):
        s = dict(kernel=Matern((2.0, 5.0, 0.7)), via=way, alpha=0.03, tol=1e-10, random_state=0)
        own = KernelRidge(**s).fit(rows, y, w)
        asked.clear()
        m = KernelRidge(**s)
        m.fit(*(da.from_array(v, chunks=(170, 3)[: v.ndim]) for v in (rows, y, w)))
        assert set(asked) == ({processes.id} if way == "iterative" else set())
        np.testing.assert_allclose(m.predict(rows), own.predict(rows), rtol=0, atol=1e-7)
        lazy = m.predict(da.from_array(rows, chunks=(170, 3)))
        np.testing.assert_allclose(lazy.compute(), own.predict(rows), rtol=0, atol=1e-7)
        plain = KernelRidge(via=way, random_state=0).fit(rows, y, w).predict(rows)
        assert np.abs(plain - own.predict(rows)).max() > 0.01  # kernel and penalty matter here
