"""Several operations in a row as one kernel, where that pays: the words are those of one by one."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import Binary

#: what `kernels.softfloat.chains`, which is loaded late, calls bool
MASK = "b"
_LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
          "eq": np.equal, "ne": np.not_equal}


class Chained:
    """A chain of operations on arrays that broadcast together.

    `kinds` are what the arrays hold: formats, or `MASK` for bool. `steps` are ``(name, kind of the
    result, *operands)`` with the arrays numbered first, then the results; `uniform` tells which arrays are one
    word in every entry; `outs` are the numbers of the results to give. Formats of a chain are one that is
    computed on words, or any number of small ones, and binary64, which is converted only.

    >>> from tlgrad.softfloat.format import binary128
    >>> x = array.of_numbers([1, 2], binary128)
    >>> steps = (("add", binary128, 0, 0), ("mul", binary128, 1, 1))
    >>> square, = Chained((binary128,), steps, (False,), (2,))((2,), x)
    >>> array.to_floats(square).tolist()
    [binary128('4.0'), binary128('16.0')]
    """

    def __init__(self, kinds, steps, uniform, outs):
        self.kinds, self.steps, self.uniform, self.outs = kinds, steps, uniform, outs
        self.compiled = fast.Chain(kinds, steps, uniform, outs)

    def __call__(self, shape, *arrays, new=np.empty, call=None) -> list[np.ndarray]:
        """The results on arrays that broadcast to a shape; `new` makes arrays of a shape and dtype, `call` runs
        a kernel on (kernel, count, arrays)."""
        count = math.prod(shape)
        if array.current() is None and count:
            inputs = [self._input(x, shape, same) for x, same in zip(arrays, self.uniform)]
            found = self.compiled.run(shape, count, inputs, new, call)
            if found is not None:
                results, undecided = found
                if undecided is not None:
                    self._again(results, undecided != 0, inputs)
                return results
        values = self.one_by_one([np.broadcast_to(a, shape) for a in arrays])
        return [values[k] for k in self.outs]

    @staticmethod
    def _input(x, shape, same):
        if same:
            return x if x.size == 1 else np.ascontiguousarray(x[(slice(1),) * x.ndim])
        return np.ascontiguousarray(x if x.shape == shape else np.broadcast_to(x, shape))

    def _again(self, results, where, inputs):
        """Compute the entries again that a function of the chain has left undecided."""
        count = int(where.sum())
        values = self.one_by_one([np.broadcast_to(x.reshape(()), (count,)) if same else x[where]
                                  for x, same in zip(inputs, self.uniform)])
        for result, k in zip(results, self.outs):
            result[where] = values[k]

    def one_by_one(self, values):
        """The values of arrays of one shape, and of all steps."""
        kinds, values = list(self.kinds), list(values)
        for name, kind, *operands in self.steps:
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
