"""The lazy `njit`: nothing at import, one compilation, a cache only where there is a folder for
it."""

import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mercer.ops.jit import njit

LOOPS = """
from mercer.ops.jit import njit

@njit
def twice(x):
    return 2 * x
"""
SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture(autouse=True)
def cache_elsewhere(tmp_path, monkeypatch):
    """The cache files of these loops do not belong among the tests."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


@njit
def square(x):
    return x * x


@njit(fastmath={"reassoc", "contract"})
def sum_of_squares(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += square(x[i])
    return total


@njit
def ratio(a, b):
    return a / b


def run_python(code, *path, **environment):
    env = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join([SOURCE, *path])}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_compiled_calls_compiled():
    x = np.arange(5.0)
    assert sum_of_squares(x) == 30.0
    assert sum_of_squares.__wrapped__(x) == 30.0


def test_division_by_zero_is_that_of_numpy():
    assert ratio(1.0, 0.0) == np.inf


def test_pickles_by_name():
    assert pickle.loads(pickle.dumps(square)) is square


def test_import_leaves_numba_alone():
    done = run_python(
        "import sys; from mercer.ops.jit import njit; f = njit(abs); g = njit(fastmath=True)(abs)\n"
        "assert 'numba' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr


def test_works_without_a_folder_for_the_cache(tmp_path):
    """Every folder that Numba would try lies below a regular file, which stops even root."""
    (tmp_path / "file").write_text("")
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "__pycache__").write_text("")
    nowhere = str(tmp_path / "file" / "below")
    done = run_python(
        "import loops; assert loops.twice(4) == 8; print(loops.twice.dispatcher.stats.cache_path)",
        str(tmp_path),
        NUMBA_CACHE_DIR=nowhere,
        HOME=nowhere,
        XDG_CACHE_HOME=nowhere,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None"


def test_numba_may_be_told_not_to_compile(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    done = run_python(
        "import loops; assert loops.twice(4) == 8", str(tmp_path), NUMBA_DISABLE_JIT="1"
    )
    assert done.returncode == 0, done.stderr


def test_uses_the_cache_where_there_is_a_folder(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    code = (
        "import loops; loops.twice(4); print(sum(loops.twice.dispatcher.stats.cache_hits.values()))"
    )
    hits = [
        run_python(code, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "cache")).stdout
        for _ in range(2)
    ]
    assert hits == ["0\n", "1\n"]


def test_other_errors_of_numba_are_raised(monkeypatch):
    import numba

    def fail(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", fail)
    with pytest.raises(RuntimeError, match="something else"):
        njit(lambda x: x)(1)


@pytest.mark.parametrize("collecting", [True, False])
def test_no_garbage_is_collected_while_numba_is_loaded(monkeypatch, collecting):
    """And it is as it was before, also after an error."""
    import numba

    seen = []

    def fail(**options):
        seen.append(gc.isenabled())
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", fail)
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(RuntimeError, match="something else"):
            njit(lambda x: x)(1)
        assert seen == [False]
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_two_threads_compile_once():
    from numba.core import event

    class Compilations(event.RecordingListener):
        def of(self, dispatcher):
            return [
                what
                for _, what in self.buffer
                if what.is_start and what.data["dispatcher"] is dispatcher
            ]

    cube = njit(lambda x: x * x * x)
    start, results = threading.Barrier(4), []

    def call():
        start.wait()
        results.append((cube(3.0), cube.dispatcher))

    seen = Compilations()
    with event.install_listener("numba:compile", seen):
        threads = [threading.Thread(target=call) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert results == [(27.0, cube.dispatcher)] * 4
    assert len(seen.of(cube.dispatcher)) == 1
