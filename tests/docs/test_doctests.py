"""Every example in a docstring runs and prints what it says."""
import doctest
import importlib
import pkgutil

import pytest

import tlgrad as tl
from tlgrad.core.primitive import PRIMITIVES

_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_LEFT_OUT = {"tlgrad.__main__"}


def module_names():
    """All modules of the package."""
    found = pkgutil.walk_packages(tl.__path__[:1], "tlgrad.")
    return sorted(m.name for m in found if m.name not in _LEFT_OUT)


def run_examples(test):
    """The failures of one docstring's examples, as text."""
    report = []
    doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("name", module_names())
def test_module_examples(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(module, name, globs={**vars(module), "tl": tl}):
        assert run_examples(test) == ""


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_primitive_examples(name):
    prim = PRIMITIVES[name]
    assert prim.__doc__ and prim.__doc__ is not type(prim).__doc__, f"{name} has no docstring"
    module = {n: p for n, p in ((p.name, p) for p in PRIMITIVES.values())}
    names = {"maximum": PRIMITIVES["max"], "minimum": PRIMITIVES["min"], "abs_": PRIMITIVES["abs"],
             "pow_": PRIMITIVES["pow"]}
    test = doctest.DocTestParser().get_doctest(prim.__doc__, {**module, **names, "tl": tl}, name, None, 0)
    assert run_examples(test) == ""
