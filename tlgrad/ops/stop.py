"""stop_gradient: the identity, with derivative zero."""
from __future__ import annotations

from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.ops.define import documented

stop_gradient_p = documented(
    Primitive("stop_gradient", impl=lambda x: x, abstract=lambda x: x, nondiff="",
              batch=lambda args, axes, size: (stop_gradient_p.bind(*args), axes[0]),
              kind="elementwise", lower=("elementwise", "stop_gradient")),
    "x itself, as a constant of every derivative.", "x")


def fixed(x) -> Value:
    """x as a constant of every derivative."""
    return stop_gradient_p.bind(as_value(x, "the operand of stop_gradient"))
