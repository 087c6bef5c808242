"""`stop_gradient`: a value that derivatives take for a constant."""
from __future__ import annotations

from typing import Any

from tlgrad.core import tree
from tlgrad.ops.stop import fixed


def stop_gradient(x: Any) -> Any:
    """x itself, a pytree, taken for a constant by every derivative.

    >>> float(stop_gradient(tl.tensor(2.0)))
    2.0
    """
    return tree.map(fixed, x)
