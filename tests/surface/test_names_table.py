"""The table of names is current, and every name in it exists."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn

_path = pathlib.Path(__file__).parent / "names_table.py"
_spec = importlib.util.spec_from_file_location("names_table", _path)
table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(table)


@pytest.mark.parametrize("peer", ["JAX", "TORCH"])
def test_every_name_resolves_or_has_a_reason(peer):
    for names in getattr(table, peer).values():
        for theirs, ours in names.items():
            assert callable(table.resolve(ours)) or hasattr(table.resolve(ours), "__module__") if ours \
                else table.REASONS[theirs]


LISTED = [p for p in table.JAX if p not in ("jax", "jax.lax", "jax.scipy")]


def test_every_function_of_jax_is_in_the_table():
    """Of the namespaces that are lists of functions; in a process of its own, since JAX sets variables."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    program = (f"import importlib, json, sys; sys.path.insert(0, {str(_path.parent)!r}); import names_table as t\n"
               f"print(json.dumps({{p: t.numpy_names(importlib.import_module(p)) for p in {LISTED!r}}}))")
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                         timeout=300)
    assert run.returncode == 0, run.stderr
    for prefix, names in json.loads(run.stdout).items():
        known = set(table.JAX[prefix]) | set(table.JAX_OTHERS)
        assert [n for n in names if n not in known] == [], prefix


@pytest.mark.parametrize("module, mine", [(np, tn), (np.linalg, tl.linalg), (np.fft, tl.fft)],
                         ids=["numpy", "linalg", "fft"])
def test_every_numpy_function_is_there_or_is_listed_as_missing(module, mine):
    reasons = table.missing_reason()
    assert [n for n in table.numpy_names(module) if not hasattr(mine, n) and n not in reasons] == []
    assert [n for n in reasons if hasattr(tn, n)] == []


def test_the_page_is_current():
    """Up to the list of present names, which follows the installed NumPy."""
    def body(page):
        return re.sub(r"Present \(\d+\): .*\n", "", page)
    assert body(table.TARGET.read_text()) == body(table.text())
