"""NumPy's `einsum`: the call forms of NumPy, with the patterns of tlgrad."""
from __future__ import annotations

import string

from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError
from tlgrad.numpy.arrays import as_array, refuse_out
from tlgrad.patterns import einsum as pattern_einsum

__all__ = ["einsum"]


def einsum(*operands, out=None, optimize=False, order: str | None = None) -> Value:
    """Contraction by a pattern: einsum("ij,jk->ik", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2]).

    Letters and implicit results as in NumPy; named axes as in `tl.einsum`.  The order of the sums is
    part of the program, so `optimize` is accepted and changes nothing; order="free" may take the
    cheapest path.

    >>> einsum("ij,j->i", tl.ones((2, 3)), tl.ones(3))
    tensor([3., 3.], float64, shape (2,), cpu)
    """
    refuse_out(out, "einsum")
    if operands and not isinstance(operands[0], str):
        operands = _from_lists(operands)
    pattern, *arrays = operands
    return pattern_einsum(pattern, *[as_array(x, "einsum") for x in arrays], order=order)


def _from_lists(operands):
    """The pattern of operands that alternate with lists of axis numbers."""
    pairs, rest = operands[:len(operands) // 2 * 2], operands[len(operands) // 2 * 2:]
    arrays, lists = pairs[::2], pairs[1::2]
    if not arrays:
        raise ArgumentError("einsum: needs a pattern, or arrays that alternate with lists of axis numbers")
    pattern = ",".join(map(_letters, lists)) + ("->" + _letters(rest[0]) if rest else "")
    return [pattern, *arrays]


def _letters(axes) -> str:
    try:
        return "".join("..." if a is Ellipsis else string.ascii_letters[a] for a in axes)
    except (TypeError, IndexError):
        raise ArgumentError(f"einsum: a list of axes has integers from 0 to 51 and '...', got {axes!r}") from None
