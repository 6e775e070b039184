"""The notebook of the tour runs as it stands, says what it shows, and needs no app."""

import ast
import json
import sys
from pathlib import Path

import plotly.graph_objects as go
import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "tour.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def ran():
    """The names of the notebook after all its cells, as a reader runs them from its folder."""
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOK.parent)
        patch.setattr(sys, "path", [*sys.path])
        for source in CODE:
            exec(compile(source, str(NOTEBOOK), "exec"), names)
    return names


def test_it_was_executed_from_top_to_bottom_without_an_error():
    counts = [cell["execution_count"] for cell in CELLS if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    kinds = {output["output_type"] for cell in CELLS for output in cell.get("outputs", ())}
    assert kinds == {"execute_result", "display_data"}


def test_every_text_is_in_both_languages():
    for cell in CELLS:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            assert any("\u4e00" <= letter <= "\u9fff" for letter in text)
            assert any(letter.isascii() and letter.isalpha() for letter in text)


def test_it_needs_nothing_of_the_app():
    imported = {
        (node.module or "").partition(".")[0]
        for source in CODE
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
    }
    assert imported <= {"dataclasses", "model", "plotly"}


def test_its_cells_run_and_give_the_numbers_that_it_shows(ran):
    assert isinstance(ran["figure"], go.Figure)
    shown = "".join(
        "".join(output["data"].get("text/plain", ""))
        for cell in CELLS
        for output in cell.get("outputs", ())
    )
    assert f"{ran['summary']['preemptions']:.3f}" in shown
    for share in ran["curve"]["mean"].round(3):
        assert f"{share:.3f}" in shown


def test_it_names_no_machine():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert "site-packages" not in text
