"""Model and report are one commit: both or neither, never a mix, whatever fails and whoever writes
at the same time."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

from mercer.cli.fit import written
from mercer.kernels import Gaussian
from mercer.store import audit, commit, load, save
from mercer.store.commit import locked

ROOT = Path(__file__).parents[2]
BIG = 40_000


@pytest.fixture
def pair(tmp_path):
    """The paths of a report and a model, in folders of their own."""
    for name in ("pages", "models"):
        (tmp_path / name).mkdir()
    return tmp_path / "pages" / "m.html", tmp_path / "models" / "m.mercer"


def put(pair, text, **options):
    commit(dict(zip(pair, ([text, b" report"], [text * BIG]), strict=True)), **options)


def held(pair):
    """What the two hold, and no draft beside them; None where neither is there."""
    assert [os.listdir(p.parent) for p in pair] in ([[p.name] for p in pair], [[], []])
    if not pair[0].exists():
        return None
    report, model = (p.read_bytes() for p in pair)
    assert report == model[:1] + b" report"
    assert model == model[:1] * BIG
    return model[:1]


def failing(monkeypatch, step, number, error):
    """os.step fails at its call of that number, and works before and after."""
    real, calls = getattr(os, step), []

    def fail(*args, **options):
        calls.append(args)
        if len(calls) == number:
            raise error
        return real(*args, **options)

    monkeypatch.setattr(os, step, fail)


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize("old", [b"a", None], ids=["over another", "anew"])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "ctrl-c"])
@pytest.mark.parametrize(
    ("step", "number"), [("fsync", 1), ("fsync", 2), ("replace", 1), ("replace", 2)]
)
def test_a_commit_that_fails_leaves_what_was_there(pair, monkeypatch, step, number, error, old):
    if old:
        put(pair, old)
    with monkeypatch.context() as m:
        failing(m, step, number, error)
        with pytest.raises(type(error)) as e:
            put(pair, b"b")
        if isinstance(error, OSError):
            assert e.value.filename == str(
                pair[number - 1]
            )  # of what was asked for, not of a draft
    assert held(pair) == old
    put(pair, b"c")
    assert held(pair) == b"c"


def test_a_disk_that_takes_no_more_leaves_neither(pair):
    """A real limit, beyond which the system writes a part only."""
    resource = pytest.importorskip("resource")  # not on Windows
    code = "import signal, resource; from pathlib import Path; from commit import commit\n"
    code += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
    code += (
        f"commit({{Path({str(pair[0])!r}): [b'a report'], Path({str(pair[1])!r}): [b'a' * {BIG}]}})"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_env())
    assert "File too large" in done.stderr
    assert held(pair) is None


def _env():
    """Where `commit` is found alone, without all that the package imports."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src" / "mercer" / "store")}


def test_without_overwrite_what_has_come_up_stays(pair):
    put(pair, b"a")
    with pytest.raises(FileExistsError, match="is there already"):
        put(pair, b"b", overwrite=False)
    assert held(pair) == b"a"


def test_two_at_once_never_mix(pair):
    """Whoever holds the folders sees a whole pair, at any time."""
    stop = time.monotonic() + 1.0
    failed = []

    def write(text):
        while time.monotonic() < stop:
            try:
                put(pair, text)
            except BaseException as e:
                failed.append(e)
                return

    threads = [threading.Thread(target=write, args=(t,)) for t in (b"a", b"b")]
    for t in threads:
        t.start()
    seen = set()
    while any(t.is_alive() for t in threads):
        with locked(pair[1].parent), locked(pair[0].parent):
            if pair[0].exists():
                report, model = (p.read_bytes() for p in pair)
                assert report == model[:1] + b" report"
                seen.add(report)
    assert not failed
    assert len(seen) == 2  # both came through
    held(pair)


def test_killed_at_any_time_the_files_are_whole_and_tell_whether_they_belong_together(pair):
    """The report names the sum of its model; a kill between the two names shows, and the next
    commit goes through."""
    code = (
        "import sys; from hashlib import sha256; from pathlib import Path; from commit import commit\n"
        "pages, models = map(Path, sys.argv[1:]); print('on', flush=True); i = 0\n"
        "while True:\n"
        "    i += 1; model = bytes([i % 251]) * 20000\n"
        "    commit({pages: [sha256(model).hexdigest().encode() * 50], models: [model]})\n"
    )
    rng, mixed = random.Random(0), 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", code, *map(str, pair)], stdout=subprocess.PIPE, env=_env()
        ) as child:
            child.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
            child.send_signal(signal.SIGKILL)
        if pair[1].exists() or pair[0].exists():
            report = pair[0].read_bytes()
            assert report == report[:64] * 50
        if pair[1].exists():
            model = pair[1].read_bytes()
            assert model == model[:1] * 20000
            mixed += sha256(model).hexdigest().encode() != report[:64]
    assert mixed < 8  # between two names, which takes microseconds
    put(pair, b"z")
    assert (pair[0].read_bytes(), pair[1].read_bytes()[:1]) == (b"z report", b"z")


def test_the_report_of_a_fit_names_its_model(pair, monkeypatch):
    from tests.report.examples import regression

    class Model:
        result = regression()

    monkeypatch.setattr("mercer.cli.fit.packed", lambda model, kind: _packed(Gaussian(2.0), kind))
    name = written(Model(), pair[1], pair[0])
    assert name == audit(pair[1]).id == sha256(pair[1].read_bytes()).hexdigest()[:16]
    assert f"Of the model {name}." in pair[0].read_text(encoding="utf-8")
    assert load(pair[1]) == Gaussian(2.0)


def _packed(obj, kind):
    from mercer.store.files import packed

    return packed(obj, kind)


def test_a_saved_file_has_the_sum_that_check_shows(tmp_path):
    save(Gaussian(2.0), tmp_path / "k")
    found = audit(tmp_path / "k")
    digest = sha256((tmp_path / "k").read_bytes()).hexdigest()
    assert (found.sha256, found.id, found.bytes) == (
        digest,
        digest[:16],
        (tmp_path / "k").stat().st_size,
    )
    assert load(tmp_path / "k", sha256=digest.upper()) == Gaussian(2.0)
    with pytest.raises(
        ValueError,
        match=r"cannot be loaded: its sha256 is [0-9a-f]{64}, not 0{64}; get the file that was meant\.$",
    ):
        load(tmp_path / "k", sha256="0" * 64)
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        load(tmp_path / "k", sha256=digest[:16])
