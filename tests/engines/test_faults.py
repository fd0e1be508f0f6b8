"""Faults with real worker processes: killed, stopped, out of memory; a client that dies. The sums are
those of a run that nothing disturbed, bit for bit."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.engines.scheduler import WorkerError
from mercer.kernels import Gaussian
from mercer.methods import Fourier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # of workers that are gone
]

ROWS, PARTS = 400, 24


def rows(pause=0.0, log="", fatal=None):
    """PARTS partitions that take their time, of rows that their number gives."""
    size = ROWS

    class Make:
        def __call__(self, block, block_info=None):
            import os
            import time

            import numpy as np

            i = block_info[0]["chunk-location"][0]
            if log:
                with open(log, "a") as file:
                    file.write(f"{i} ")
            time.sleep(pause)
            if fatal is not None and i == fatal:
                held = []
                for _ in range(200):
                    held.append(np.ones(4_000_000))  # 32 MB, until the nanny sees it
                    time.sleep(0.05)
                os._exit(1)
            return np.random.default_rng(i).normal(size=(size, 4))

        def __dask_tokenize__(self):  # older Dask adds it to the name
            return fatal

    blank = da.zeros((ROWS * PARTS, 4), chunks=(ROWS, 4))
    name = f"rows-{fatal}"  # the same for the same rows, however long they take
    return blank.map_blocks(Make(), name=name, dtype=float)


TARGETS = np.random.default_rng(99).normal(size=ROWS * PARTS)


def fitted(X):
    m = KernelRidge(Gaussian(2.0), via=Fourier(50), random_state=0)
    return m.fit(X, da.from_array(TARGETS, chunks=ROWS))


@pytest.fixture(scope="module")
def undisturbed():
    with dask.config.set(scheduler="synchronous"):
        return fitted(rows())


def cluster(**options):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", **options
    )


def same(m, o):
    return np.array_equal(m.moments_[0].S, o.moments_[0].S) and m.moments_[0].count == ROWS * PARTS


def during(client, act, pause=0.3):
    """A fit, with `act(pid of a worker)` when some partitions are done."""
    found = {}

    def work():
        try:
            found["model"] = fitted(rows(pause))
        except Exception as error:
            found["error"] = error

    pid = next(iter(client.run(os.getpid).values()))
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(6 * pause)
    act(pid)
    thread.join(400)
    assert not thread.is_alive()
    if "error" in found:
        raise found["error"]
    return found["model"]


def test_a_worker_that_is_killed_changes_no_bit(undisturbed):
    with cluster() as c, distributed.Client(c) as client:
        assert same(during(client, lambda pid: os.kill(pid, signal.SIGKILL)), undisturbed)


def test_a_worker_that_hangs_is_given_up_and_changes_no_bit(undisturbed):
    stopped = []
    ttl = dask.config.set({"distributed.scheduler.worker-ttl": "10s"})
    with ttl, cluster() as c, distributed.Client(c) as client:
        c.scheduler.worker_ttl = 600  # while workers import, which takes longer on a busy machine
        fitted(rows())

        def stop(pid):
            c.scheduler.worker_ttl = 10
            stopped.append(pid)
            os.kill(pid, signal.SIGSTOP)

        try:
            assert same(during(client, stop), undisturbed)
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_partition_that_no_memory_holds_is_named():
    told = r"^partition 5 of 24 \(rows 2,000 to 2,399\) ended every worker .*smaller"
    once = dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 1,
            "distributed.scheduler.worker-saturation": 1.0,  # no other waits beside it, and is blamed
        }
    )
    with (
        once,
        cluster(memory_limit="700MB") as c,
        distributed.Client(c),
        pytest.raises(WorkerError, match=told),
    ):
        fitted(rows(fatal=5))


def test_a_client_that_is_closed_is_told_in_a_sentence():
    with cluster() as c:
        client = distributed.Client(c)
        X = rows().persist()
        client.close()
        with distributed.Client(c), pytest.raises(WorkerError, match="client was closed"):
            fitted(X)


CLIENT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, distributed
from mercer.engines import checkpointed
from test_faults import fitted, rows
address, kept, log, out = sys.argv[1:]
if __name__ == "__main__":
    context = distributed.Client(address) if address else __import__("contextlib").nullcontext()
    with context, checkpointed(kept):
        m = fitted(rows(float({pause}), log))
    np.savez(out, S=m.moments_[0].S, coef=m.coef_, count=m.moments_[0].count)
"""


def start(tmp_path, address, pause):
    code = CLIENT.format(folder=os.path.dirname(__file__), pause=pause)
    names = [str(tmp_path / name) for name in ("kept", "log", "out.npz")]
    return subprocess.Popen([sys.executable, "-c", code, address, *names])


def test_a_client_that_dies_resumes_from_what_was_done(tmp_path, undisturbed):
    with cluster() as c:
        first = start(tmp_path, c.scheduler_address, 0.5)
        while len(list(tmp_path.glob("kept/*/*.npz"))) < 2:  # the first rows, and a branch
            time.sleep(0.05)
            assert first.poll() is None
        first.send_signal(signal.SIGKILL)
        first.wait()
        done = len(list(tmp_path.glob("kept/*/*.npz"))) - 1
        time.sleep(2)  # tasks under way end
        (tmp_path / "log").unlink()
        assert start(tmp_path, c.scheduler_address, 0.0).wait(400) == 0
    again = (tmp_path / "log").read_text().split()
    assert done
    assert len(again) <= PARTS - 8 * done
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["S"], undisturbed.moments_[0].S)
        assert int(out["count"]) == ROWS * PARTS


def test_twenty_kills_at_any_moment_change_no_bit(tmp_path, undisturbed):
    rng, pause = np.random.default_rng(int(time.time())), 0.1
    began = time.monotonic()
    whole = start(tmp_path, "", pause)
    assert whole.wait(300) == 0
    took = time.monotonic() - began
    (tmp_path / "out.npz").unlink()
    kills, in_sums = 0, 0
    while kills < 20 or in_sums < 3:
        assert kills < 60
        process = start(tmp_path, "", pause)
        try:
            process.wait(rng.uniform(0.3, 1.0) * took)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
            process.wait()
            # of the first rows, and of moments, some of whose three branches are there
            passes = [len(list(folder.glob("0-*.npz"))) for folder in tmp_path.glob("kept/pass-*")]
            in_sums += len(passes) == 2 and all(passes)
        process.wait()
        if (tmp_path / "out.npz").exists():  # it was done before the kill: begin anew
            check(tmp_path, undisturbed)
    assert start(tmp_path, "", pause).wait(300) == 0
    check(tmp_path, undisturbed)


def check(tmp_path, undisturbed):
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["S"], undisturbed.moments_[0].S)
        assert np.array_equal(out["coef"], undisturbed.coef_)
    (tmp_path / "out.npz").unlink()
