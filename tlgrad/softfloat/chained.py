"""Several operations in a row as one kernel, where that pays: the words are those of one by one."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import Binary

MASK = fast.chains.MASK
_LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
          "eq": np.equal, "ne": np.not_equal}


def evaluate(kinds, steps, uniform, outs, *arrays) -> list[np.ndarray]:
    """The results `outs` of a chain of operations on arrays that broadcast together.

    `kinds` are what the arrays hold: formats, or `MASK` for bool. `steps` are ``(name, kind of the
    result, *operands)`` with the arrays numbered first, then the results; `uniform` tells which arrays are one
    word in every entry; `outs` are the numbers of the results to give. Formats of a chain are one that is
    computed on words, or any number of small ones, and binary64, which is converted only.

    >>> from tlgrad.softfloat.format import binary128
    >>> x = array.of_numbers([1, 2], binary128)
    >>> steps = (("add", binary128, 0, 0), ("mul", binary128, 1, 1))
    >>> square, = evaluate((binary128,), steps, (False,), (2,), x)
    >>> array.to_floats(square).tolist()
    [binary128('4.0'), binary128('16.0')]
    """
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if array.current() is None and math.prod(shape):
        inputs = [a[(slice(1),) * a.ndim] if same else np.broadcast_to(a, shape)
                  for a, same in zip(arrays, uniform)]
        found = fast.chain(kinds, steps, uniform, outs, inputs, shape)
        if found is not None:
            results, undecided = found
            if undecided is not None:
                _again(results, undecided != 0, kinds, steps, outs, inputs)
            return results
    values = _one_by_one(kinds, steps, [np.broadcast_to(a, shape) for a in arrays])
    return [values[k] for k in outs]


def _again(results, where, kinds, steps, outs, inputs):
    """Compute the entries again that a function of the chain has left undecided."""
    count = int(where.sum())
    some = [np.broadcast_to(x.reshape(()), (count,)) if x.size == 1 else x[where] for x in inputs]
    values = _one_by_one(kinds, steps, some)
    for result, k in zip(results, outs):
        result[where] = values[k]


def _one_by_one(kinds, steps, values):
    """The values of the arrays and of all steps."""
    kinds, values = list(kinds), list(values)
    for name, kind, *operands in steps:
        source, given = kinds[operands[-1]], [values[k] for k in operands]
        if isinstance(kind, Binary) and name == "convert":
            values.append(array.convert(given[0], kind))
        elif name == "select":
            values.append(np.where(*given))
        elif source == MASK:
            values.append(_LOGIC[name](*given))
        else:
            values.append(array.evaluate(name, source, *given))
        kinds.append(kind)
    return values
