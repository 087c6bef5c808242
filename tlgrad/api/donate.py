"""``run(f, donate=...)``: arguments whose memory the caller gives up, for results to be written into."""
from __future__ import annotations

import numpy as np

from tlgrad.backends.numba_cpu.buffers import only_owner
from tlgrad.core import tree
from tlgrad.core.tensor import Tensor
from tlgrad.errors import ArgumentError


class Donated(Tensor):
    """What a tensor becomes when its memory is given up: it has shape and dtype, and no entries."""

    __slots__ = ()

    @property
    def data(self):
        """ArgumentError: the entries are gone."""
        raise ArgumentError(f"this tensor, {self.aval}, was donated to a call (donate=), and a result may have "
                            "taken its memory. Use the result, or call without donate=.")

    def __repr__(self):
        return f"<donated {self.aval}>"


def donated_leaves(donate, names, in_tree, taken) -> tuple[int, ...]:
    """Numbers of the leaves that belong to the donated arguments, given by position or name.

    `names`: of the parameters; `in_tree`: of (args, kwargs) without the positions `taken`.
    """
    args, kwargs = tree.unflatten(in_tree, range(in_tree.n_leaves))
    kept = [k for k in range(len(args) + len(taken)) if k not in taken]
    found: list[int] = []
    for place in donate:
        position = names.index(place) if place in names else place
        name = names[place] if isinstance(place, int) and place < len(names) else place
        value = args[kept.index(position)] if position in kept else kwargs.get(name, ())
        found += tree.flatten(value)[0]
    return tuple(sorted(set(found)))


def give_up(tensors, numbers) -> list[np.ndarray]:
    """The arrays of all tensors.  Those with these numbers become `Donated`; where somebody else can see
    the memory, the program gets a copy of it."""
    arrays = [x.data for x in tensors]
    seen: set[int] = set()
    for k in numbers:
        x = tensors[k]
        twice = id(x) in seen or any(y is x for j, y in enumerate(tensors) if j not in numbers)
        seen.add(id(x))
        if type(x) is Tensor:
            del x.data
            x.__class__ = Donated
        array, arrays[k] = arrays[k], None
        arrays[k] = array.copy() if twice or not only_owner(array) else array
        del array
    return arrays
