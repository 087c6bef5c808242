"""`stop_gradient`: a value that derivatives take for a constant."""
from __future__ import annotations

from typing import Any

from tlgrad.core import tree
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import as_value
from tlgrad.ops.define import documented

stop_gradient_p = documented(
    Primitive("stop_gradient", impl=lambda x: x, abstract=lambda x: x, nondiff="",
              batch=lambda args, axes, size: (stop_gradient_p.bind(*args), axes[0]),
              kind="elementwise", lower=("elementwise", "stop_gradient")),
    "x itself; a constant for every derivative.", "x")


def stop_gradient(x: Any) -> Any:
    """x itself, a pytree, taken for a constant by every derivative.

    >>> float(stop_gradient(tl.tensor(2.0)))
    2.0
    """
    return tree.map(lambda leaf: stop_gradient_p.bind(as_value(leaf, "the operand of stop_gradient")), x)
