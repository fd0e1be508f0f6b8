"""How far one walks to read a fit and a predict: files of the package that they enter, and
functions they call.

python tools/walk.py
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks

HOME = str(Path(mercer.__file__).parent) + os.sep
Call = Callable[[], Any]


def walk(call: Call) -> tuple[int, int]:
    """Files and functions of the package, in all threads, once everything is compiled and
    imported."""
    call()
    seen: set[tuple[str, str, int]] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = {
        f
        for f in seen
        if not f[1].endswith(("<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"))
    }
    return len({file for file, _, _ in functions}), len(functions)


def walks() -> Iterator[tuple[str, Call, Call]]:
    """(name, fit, predict)"""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    k, two = Gaussian(1.5), (y > 0).astype(int)
    models = {
        "KernelRidge(via=Fourier)": (mercer.KernelRidge(k, via=Fourier(500), random_state=0), y),
        "KernelRidge(via=exact)": (mercer.KernelRidge(k, via="exact"), y),
        "GP exact": (mercer.GaussianProcessRegressor(k, 0.01), y),
        "GP over landmarks": (
            mercer.GaussianProcessRegressor(k, 0.01, Landmarks(50), random_state=0),
            y,
        ),
        "GP learnt": (mercer.GaussianProcessRegressor(k, random_state=0), y),
        "KernelSVC": (mercer.KernelSVC(k), two),
        "KernelSVC(via=features)": (mercer.KernelSVC(k, via=Fourier(200), random_state=0), two),
        "KernelPCA": (mercer.KernelPCA(3, k), y),
        "KernelPCA(via=Fourier)": (mercer.KernelPCA(3, k, Fourier(200), random_state=0), y),
    }
    yield "Gaussian(1.0)(X)", lambda: k(X), lambda: k.operator(X) @ y
    for name, (model, target) in models.items():
        ask = "predict" if hasattr(model, "predict") else "transform"
        yield name, lambda m=model, t=target: m.fit(X, t), lambda m=model, a=ask: getattr(m, a)(X)
    yield "mercer fit", lambda: command("fit"), lambda: command("predict")


def command(name: str) -> None:
    from mercer.cli import app
    from mercer.datasets import diabetes

    table = diabetes()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        open(os.devnull, "w") as nothing,
    ):
        lines = [table.columns, *table.rows]
        Path("t.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
        with (
            contextlib.redirect_stdout(nothing),
            contextlib.redirect_stderr(nothing),
            contextlib.suppress(SystemExit),
        ):
            if name == "predict":
                mercer.fit_table("t.csv", "progression", time=1).save("m.mercer")
            given = {
                "fit": ["t.csv", "--target", "progression", "--time", "5"],
                "predict": ["m.mercer", "t.csv", "--out", "p.csv"],
            }[name]
            app([name, *given], standalone_mode=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, fit, predict in walks():
        (files, functions), (more_files, more_functions) = walk(fit), walk(predict)
        print(
            f"  {name}: fit {files} files, {functions} functions; predict {more_files}, {more_functions}",
            flush=True,
        )
