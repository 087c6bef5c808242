"""Layers never import upward, files stay short, and the top level is what it should be."""
import ast
import configparser
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = [p for folder in ("tlgrad", "kernels") for p in sorted((ROOT / folder).rglob("*.py"))]
#: modules that may be imported inside a function
OPTIONAL = {"numba", "llvmlite", "pycuda", "scipy", "opt_einsum", "einops", "mpmath", "IPython", "gmpy2",
            "matplotlib"}


def layers():
    """Rank of each layer, the ground floor first."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    rows = [[name.strip("() ") for name in re.split("[|:]", line)] for line in lines if line.strip()]
    return {name: rank for rank, row in enumerate(reversed(rows)) for name in row}


RANK = layers()


def module_name(path):
    relative = path.relative_to(ROOT).with_suffix("")
    parts = ("tlgrad", *relative.parts) if relative.parts[0] == "kernels" else relative.parts
    return ".".join(parts).removesuffix(".__init__")


def rank_of(module):
    """The rank of the layer that a module belongs to; None for the package itself."""
    parts = module.split(".")
    return next((RANK[name] for n in range(len(parts), 1, -1)
                 if (name := ".".join(parts[:n])) in RANK), None)


def imported(node):
    if isinstance(node, ast.Call):                         # Later("module")
        return [node.args[0].value] if getattr(node.func, "id", "") == "Later" else []
    if isinstance(node, ast.Import):
        return [a.name for a in node.names]
    return [node.module, *[f"{node.module}.{a.name}" for a in node.names]] if node.module else []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_module_imports_downward_only(path):
    own = rank_of(module_name(path))
    tree = ast.parse(path.read_text())
    upward = [name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom, ast.Call))
              for name in imported(node) if name.startswith("tlgrad.") and own is not None
              and (rank_of(name) or 0) > own]
    assert upward == []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_stand_at_the_top(path):
    tree = ast.parse(path.read_text())
    inner = [name for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.Lambda)) for node in ast.walk(f)
             if isinstance(node, (ast.Import, ast.ImportFrom)) for name in imported(node)]
    assert [name for name in inner if name.split(".")[0] not in OPTIONAL] == []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_file_is_short(path):
    assert len(path.read_text().splitlines()) <= 420


def test_every_package_is_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    assert listed == {module_name(p) for p in FILES if p.name == "__init__.py"}


def test_top_level_folders():
    expected = {"setup.cfg", "pyproject.toml", "README.md", "CONTRIBUTING.md", "LICENSE", ".ci/run",
                "tlgrad", "kernels", "benchmarks", "tests", "notebooks"}
    assert [name for name in sorted(expected) if not (ROOT / name).exists()] == []
