"""Generated files: Triton reads the source of a kernel from disk, so each text lies in a cache
folder under the hash of its content, written aside and renamed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = "MERCER_GPU_CACHE"  # the environment's name of the folder


def folder() -> Path:
    """Where generated files lie: of the environment, or the user's cache, or a temporary one."""
    given = os.environ.get(FOLDER)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if _written(path := Path(given) if given else base / "mercer" / "gpu"):
        return path
    if given:
        raise OSError(
            f"no folder for generated GPU kernels can be written at {FOLDER}={given}; set it to one that can."
        )
    return _temporary()


def _written(path: Path) -> bool:
    """Whether it is a folder that can be written, made where there was none."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(path, os.W_OK)


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """One for all kernels of this process."""
    return Path(tempfile.mkdtemp(prefix="mercer-gpu-"))


@lru_cache(maxsize=512)
def load(text: str) -> Any:
    """The function `product` of this text, imported from a file of its own."""
    name = f"tile_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    path = folder() / f"{name}.py"
    if not path.exists() or path.read_text() != text:
        handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as f:
            f.write(text)
        os.replace(aside, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.product
