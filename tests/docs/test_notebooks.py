"""The notebooks run from top to bottom, warnings as errors, in an empty folder."""

import json
import warnings
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MAX_BYTES = 60_000  # with the small outputs that it shows
SECONDS = 300  # of one cell

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["compose", "kernel-trick", "table"]


@each
def test_what_is_shipped_is_small_and_holds_no_error(path):
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    assert len(text) < MAX_BYTES
    outputs = [out for cell in cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if out["output_type"] == "error"]
    assert len(code(path)) > 4


@each
@pytest.mark.long
def test_notebooks_run_by_a_kernel_of_jupyter(path, tmp_path):
    """As a reader runs them; a cell that fails raises CellExecutionError."""
    pytest.importorskip("ipykernel", reason="ipykernel, which runs notebooks, is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(path, as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's own
        nbclient.NotebookClient(
            notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert not [out for out in shown if out.get("name") == "stderr"], shown


@each
@pytest.mark.long
def test_the_cells_run_with_warnings_as_errors(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": path.stem}
    for i, cell in enumerate(code(path)):
        exec(compile(cell, f"{path.name}, cell {i}", "exec"), names)


def test_a_cell_that_fails_is_noticed(tmp_path, monkeypatch):
    broken = tmp_path / "broken.ipynb"
    cell = {"cell_type": "code", "source": ["import mercer\n", "mercer.nothing"]}
    broken.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    with pytest.raises(AttributeError, match="nothing"):
        test_the_cells_run_with_warnings_as_errors(broken, tmp_path, monkeypatch)
