"""Nothing that only Linux, or only Unix, has is needed: guarded where it is imported, done without
where it is missing."""

import ast
import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mercer
from mercer.tables.read import pipes

SOURCE = Path(mercer.__file__).parent
UNIX = {"resource", "fcntl", "termios", "pwd", "grp", "pty", "tty", "posix", "syslog", "crypt"}
LINUX = ("sched_getaffinity", "memfd_create", "register_at_fork", "fork", "forkpty", "sysconf")


def imports(tree):
    """The names of imported modules, and whether a missing one is caught."""
    caught = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try)
        and any("ImportError" in ast.unparse(h.type) for h in block.handlers if h.type)
        for part in block.body
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in caught) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in caught


def test_modules_of_unix_are_imported_where_their_absence_is_caught():
    found = {
        (path.name, name): safe
        for path in SOURCE.rglob("*.py")
        for name, safe in imports(ast.parse(path.read_text()))
        if name.split(".")[0] in UNIX
    }
    assert found  # fcntl and resource, at least
    assert all(found.values()), found


def test_an_import_that_is_not_guarded_is_found():
    assert dict(imports(ast.parse("import fcntl"))) == {"fcntl": False}
    assert dict(imports(ast.parse("try:\n import fcntl\nexcept ImportError: 0"))) == {"fcntl": True}


CODE = """
import os, signal, sys
import numpy as np, scipy.sparse, numba, sklearn.svm, pyarrow, pyarrow.csv, rich.console, typer
for name in {unix}:
    sys.modules[name] = None
for name in {linux}:
    if hasattr(os, name):
        delattr(os, name)
sys.platform = "darwin"
import mercer, mercer.cli.app
from mercer.tables.read import pipes
from mercer.tables.read.pipes import spool
pipes.MAX_MEMORY_BYTES = 3
assert spool([b"a,b", b"c"], "standard input").read_bytes() == b"a,bc"
X = np.random.default_rng(0).normal(size=(30, 2))
m = mercer.KernelRidge("linear").fit(X, X[:, 0])
m.save("m.mercer")
np.testing.assert_array_equal(mercer.load("m.mercer").predict(X), m.predict(X))
mercer.show_versions()
print("done")
"""


@pytest.mark.long
def test_without_what_linux_alone_has(tmp_path):
    code = textwrap.dedent(CODE).format(unix=sorted(UNIX - {"posix"}), linux=LINUX)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


def test_where_a_temporary_file_opens_once(tmp_path, monkeypatch):
    """As on Windows: what is spooled is a file of its own, and goes when it is collected."""
    monkeypatch.setattr(pipes, "_by_number", lambda: False)
    monkeypatch.setattr(pipes, "_opens_twice", lambda: False)
    monkeypatch.setattr(pipes.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(pipes, "MAX_MEMORY_BYTES", 3)
    path = pipes.spool([b"a,b", b"c"], "standard input")
    assert path.read_bytes() == path.read_bytes() == b"a,bc"
    assert any(tmp_path.iterdir())
    del path
    gc.collect()
    assert not any(tmp_path.iterdir())
