"""Dependencies point one way: pages → ui, charts, exercises, validation → formulas, model."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A layer, the layers it may import, and what from outside the standard library.
LAYERS = {
    "model": (set(), {"numpy"}),
    "formulas": (set(), {"numpy", "sympy"}),
    "charts": ({"model", "formulas"}, {"numpy", "plotly"}),
    "exercises": ({"model", "formulas"}, {"numpy", "sympy"}),
    "validation": ({"model", "formulas"}, {"numpy"}),
    "ui": (
        {"model", "formulas", "charts", "exercises", "validation"},
        {"babel", "numpy", "pandas", "plotly", "streamlit"},
    ),
    "app_pages": (
        {"model", "formulas", "charts", "exercises", "validation", "ui"},
        {"numpy", "pandas", "plotly", "streamlit"},
    ),
}


def modules(layer):
    return sorted((ROOT / layer).rglob("*.py"))


def imported(path):
    """(line, top-level name, module) of every import, relative ones made absolute."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join((*base, *filter(None, [node.module])))
            yield node.lineno, name.partition(".")[0]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer):
    below, libraries = LAYERS[layer]
    allowed = {layer, "__future__"} | below | libraries | sys.stdlib_module_names
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(layer)
        for line, name in imported(path)
        if name not in allowed
    ]
    assert not wrong


def test_the_entry_script_holds_no_lesson():
    names = {name for _, name in imported(ROOT / "app.py")}
    assert names <= {"pathlib", "streamlit", "ui"}


def test_no_folder_called_pages():
    """Streamlit would run its files by itself, without the entry script, on a first deep link."""
    assert not (ROOT / "pages").exists()


@pytest.mark.parametrize("layer", [name for name in ("model", "formulas") if modules(name)])
def test_the_core_starts_without_the_heavy_libraries(layer):
    """Worker processes start often: pandas alone takes longer to import than many simulations."""
    names = ", ".join(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in modules(layer)
        if path.name not in ("__init__.py", "__main__.py")
    )
    heavy = "{'streamlit', 'plotly', 'pandas', 'scipy'}"
    code = f"import sys, {names}; print(*sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
