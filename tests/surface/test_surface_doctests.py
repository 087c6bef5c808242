"""The examples in the docstrings of the array functions run."""
import doctest
import importlib

import pytest

import tlgrad as tl
import tlgrad.protocols                                                     # noqa: F401

MODULES = [f"tlgrad.numpy.{name}" for name in (
    "creation", "differences", "elementwise", "exponentials", "norms", "ordering", "products",
    "reductions", "repeating", "selection", "shaping", "dtypes", "sets",
    "statistics", "polynomials")]
MODULES += ["tlgrad.linalg", "tlgrad.fft", "tlgrad.special", "tlgrad.random.bits", "tlgrad.random.distributions",
            "tlgrad.conv"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"tl": tl})
    assert result.attempted and not result.failed
