"""Every error class shows the smallest program that raises it, and what to write instead."""
import inspect
import re

import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors
from tlgrad.codegen import ir
from tlgrad.core.aval import make_aval
from tlgrad.core.jaxpr import Jaxpr, Var, check_jaxpr
from tlgrad.testing import check_grads

CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.TlgradError)]


def program(cls, kind):
    """The text after ``Fails:`` or ``Write:`` in the docstring."""
    found = re.search(rf"^ +{kind}:  (.*)$", cls.__doc__, re.MULTILINE)
    assert found, f"{cls.__name__} has no line {kind!r} in its docstring"
    return found[1]


def run(text):
    names = {"tl": tl, "np": np, "x": tl.ones((2, 2)), "check_jaxpr": check_jaxpr, "Jaxpr": Jaxpr,
             "v": Var(make_aval((), tl.float64)), "check_grads": check_grads, "check_kernel": ir.check_kernel,
             "Kernel": ir.Kernel, "Input": ir.Input, "Output": ir.Output, "scalar": ir.Value("f64")}
    exec(text, names)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_smallest_failing_program_raises(cls):
    with pytest.raises(cls) as caught:
        run(program(cls, "Fails"))
    assert len(str(caught.value)) > 30


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_what_to_write_instead_runs(cls):
    assert run(program(cls, "Write")) is None
