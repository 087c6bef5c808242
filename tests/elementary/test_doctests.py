"""The examples in the docstrings of `expr` and `elementary` run."""
import doctest
import importlib

import pytest

MODULES = ["expr.numpy_meaning", "elementary", "elementary.registry", "elementary.evaluation"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"tlgrad.kernels.{name}"))
    assert result.attempted and not result.failed
