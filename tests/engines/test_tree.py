"""The fixed tree: the same bits whatever runs it, and the sum of what each partition has."""

from dataclasses import dataclass

import numpy as np
import pytest

from mercer.engines.checkpoint import checkpointed
from mercer.engines.tree import fold, runs

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

from mercer.engines.partitions import Partitions  # noqa: E402


@dataclass(frozen=True, eq=False)
class Sums:
    values: np.ndarray

    def __add__(self, o):
        return Sums(self.values + o.values)

    def arrays(self):
        return {"values": self.values}

    @classmethod
    def of_arrays(cls, arrays):
        return cls(arrays["values"])


@dataclass(frozen=True, eq=False)
class Rowwise:
    """Sums of columns, in float32 so that another order shows; and a line for every partition."""

    log: str = ""
    kind = Sums
    identity = "sums"

    def __call__(self, X, y, weight, place):
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{place.number}\n")
        return Sums(np.asarray(X, np.float32).sum(0))


def partitions(n=400, size=7):
    X = np.random.default_rng(0).lognormal(sigma=4, size=(n, 3))
    return X, Partitions.of(da.from_array(X, chunks=(size, 2)))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 511, 512, 4096, 5000, 100_000])
def test_runs_hold_every_partition_once_and_in_order(n):
    assert [i for run in runs(n) for i in run] == list(range(n))
    assert len({len(run) for run in runs(n)[:-1]}) <= 1
    assert len(runs(n)) <= 2 * 4096


def test_the_sum_is_that_of_all_rows_and_the_same_bits_under_every_scheduler():
    X, data = partitions()
    with dask.config.set(scheduler="synchronous"):
        one = fold(data, Rowwise())
    with dask.config.set(scheduler="threads"):
        other = fold(data, Rowwise())
    np.testing.assert_allclose(one.values, X.sum(0), rtol=1e-5)
    assert np.array_equal(one.values, other.values)


def test_a_sum_through_a_checkpoint_has_the_same_bits_and_leaves_nothing(tmp_path):
    _, data = partitions()
    plain = fold(data, Rowwise())
    with checkpointed(tmp_path):
        kept = fold(data, Rowwise())
        assert [p.name for p in tmp_path.glob("*/*")] == ["1-0.npz"]
    assert np.array_equal(plain.values, kept.values)
    assert not list(tmp_path.iterdir())


class Stop(Exception):
    """Ends a fold from inside."""


def stopped_after(data, gather, count, folder, monkeypatch):
    """A fold that ends when so many sums were written."""
    from mercer.engines import checkpoint

    plain, left = checkpoint.write_atomically, [count]

    def write(path, arrays):
        if not left[0]:
            raise Stop
        left[0] -= 1
        plain(path, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_atomically", write)
        with pytest.raises(Stop), checkpointed(folder):
            fold(data, gather)


@pytest.mark.parametrize("count", [0, 1, 5, 7, 8])
def test_a_fold_that_was_stopped_goes_on_where_it_was(count, tmp_path, monkeypatch):
    _, data = partitions()  # 58 partitions, 8 branches
    log = tmp_path / "log"
    log.touch()
    stopped_after(data, Rowwise(), count, tmp_path / "kept", monkeypatch)
    with checkpointed(tmp_path / "kept"):
        found = fold(data, Rowwise(str(log)))
    again = log.read_text().split()
    assert len(again) == len(set(again)) == max(0, 58 - 8 * min(count, 8))
    assert np.array_equal(found.values, fold(data, Rowwise()).values)


def test_a_damaged_sum_is_made_again(tmp_path, monkeypatch):
    _, data = partitions()
    stopped_after(data, Rowwise(), 3, tmp_path, monkeypatch)
    for path, cut in zip(sorted(tmp_path.glob("*/*.npz")), (0, 10, -1), strict=True):
        content = path.read_bytes()
        path.write_bytes(content[:cut] if cut >= 0 else content[:-30] + b"x" * 30)
    next(tmp_path.glob("pass-*")).joinpath("half.part").write_bytes(b"junk")
    with checkpointed(tmp_path):
        found = fold(data, Rowwise())
    assert np.array_equal(found.values, fold(data, Rowwise()).values)


def test_sums_of_other_data_or_of_another_kind_are_never_taken(tmp_path, monkeypatch):
    X, data = partitions()
    stopped_after(data, Rowwise(), 8, tmp_path, monkeypatch)
    other = Partitions.of(da.from_array(X + 1, chunks=(7, 2)))
    with checkpointed(tmp_path):
        found = fold(other, Rowwise())
    assert np.array_equal(found.values, fold(other, Rowwise()).values)


def test_empty_partitions_change_nothing():
    X = np.random.default_rng(1).normal(size=(20, 2))
    some = da.from_array(X, chunks=(5, 2))
    empty = da.from_array(np.empty((0, 2)), chunks=(0, 2))
    data = Partitions.of(da.concatenate([empty, some[:10], empty, some[10:], empty]))
    assert np.array_equal(fold(data, Rowwise()).values, fold(Partitions.of(some), Rowwise()).values)


def test_a_checkpoint_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ValueError, match=r"is a file; give a folder"), checkpointed(path):
        pass


@dataclass(frozen=True, eq=False)
class Fails(Rowwise):
    error: type = RuntimeError

    def __call__(self, X, y, weight, place):
        if place.number == 3:
            raise self.error("no such thing")
        return super().__call__(X, y, weight, place)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError, r"could not be read: RuntimeError: no such thing"),
        (ValueError, r": no such thing"),
        (MemoryError, r"does not fit in memory; make partitions smaller"),
    ],
)
def test_a_partition_that_fails_is_named_with_its_rows(error, told):
    _, data = partitions()
    with pytest.raises(
        ValueError, match=rf"^partition 3 of 58 \(rows 21 to 27\){' ' * (told[0] != ':')}{told}"
    ):
        fold(data, Fails("", error))


def test_an_error_while_a_partition_is_read_is_of_that_partition():
    def read(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 2:
            raise OSError("disk gone")
        return block

    data = Partitions.of(da.zeros((50, 2), chunks=(10, 2)).map_blocks(read, dtype=float))
    assert data.graphs is not None
    with pytest.raises(
        ValueError,
        match=r"^partition 2 of 5 \(rows 20 to 29\) could not be read: OSError: disk gone",
    ):
        fold(data, Rowwise())


def test_partitions_that_share_work_do_it_once():
    calls = []

    def shared():
        calls.append(1)
        return np.ones((10, 2))

    base = dask.delayed(shared)()
    parts = [da.from_delayed(dask.delayed(np.add)(base, i), (10, 2), float) for i in range(4)]
    data = Partitions.of(da.concatenate(parts))
    assert data.graphs is None
    assert fold(data, Rowwise()).values.tolist() == [10 * (4 + 6)] * 2
    assert len(calls) == 1


def test_a_small_graph_is_computed_as_dask_does_and_lets_go_of_what_is_used():
    import dask

    there = {"now": 0, "most": 0}

    class Held:
        def __init__(self, value):
            self.value = value
            there["now"] += 1
            there["most"] = max(there["most"], there["now"])

        def __del__(self):
            there["now"] -= 1

    add = dask.delayed(lambda *v: Held(sum(x.value for x in v)), pure=False)
    first = dask.delayed(Held, pure=False)(1)
    last = first
    for _ in range(20):
        last = add(last, last)
    beside = add(last, first)
    from mercer.engines.graphs import Inlined, merged

    graph = merged([(last, beside)])
    found = Inlined(graph, [last.key, None, beside.key])()
    assert [None if v is None else v.value for v in found] == [2**20, None, 2**20 + 1]
    assert there["most"] <= 4
    assert Inlined({"a": 1, "b": (sum, ["a", "a"])}, ["b"])() == [2]  # tasks of before Dask 2024.12
