"""The backend seam: who runs a jaxpr on arrays.

A backend is an object with

    name                         "cpu", "gpu"
    execute(jaxpr, arrays)       -> list of arrays, with the words of `backends.reference`
    contiguous(array)            -> the array itself if it is row-major, else a copy that is

Backends live in a higher layer and are named here by module, loaded at first use.  The module
has a function `load() -> backend`.  Where it raises BackendMissing, the reference takes over.
"""
from __future__ import annotations

import importlib
from typing import Protocol, Sequence

import numpy as np

from tlgrad.core.jaxpr import Eqn, Jaxpr, Var
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import Tensor
from tlgrad.errors import UnsupportedError


class Backend(Protocol):
    """What a backend offers."""

    name: str

    def execute(self, jaxpr: Jaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run a jaxpr: the words are those of the reference."""

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        """The array in row-major order."""


class BackendMissing(ImportError):
    """Raised by a backend's `load` when what it needs is not installed; the message says what."""


#: device or backend name -> module with `load()`
MODULES: dict[str, str] = {"cpu": "tlgrad.backends.numba_cpu", "reference": "tlgrad.backends.reference"}
_loaded: dict[str, Backend] = {}

#: other spellings of a device
_ALIASES = {"cuda": "gpu"}


def backend(name: str) -> Backend:
    """The backend for a device ("cpu", "gpu") or by its own name ("reference").

    Raises UnsupportedError for an unknown device and for a GPU that is not there: a program is
    never run silently on another device.
    """
    name = _ALIASES.get(name, name)
    if name not in _loaded:
        _loaded[name] = _load(name)
    return _loaded[name]


def _load(name: str) -> Backend:
    if name not in MODULES:
        known = "this version of tlgrad has no GPU backend" if name == "gpu" else "it is not known"
        raise UnsupportedError(f"device {name!r} is not available: {known}. Use device='cpu'.")
    try:
        return importlib.import_module(MODULES[name]).load()
    except BackendMissing as error:
        if name != "cpu":
            raise UnsupportedError(f"device {name!r} is not available: {error}") from None
        return backend("reference")


def execute(jaxpr: Jaxpr, arrays: Sequence[np.ndarray], device: str = "cpu") -> list[np.ndarray]:
    """Run a jaxpr on `device`."""
    return backend(device).execute(jaxpr, arrays)


# ---- large eager calls ----

#: eager calls of so many steps are worth a kernel
WORTH_A_KERNEL = 1 << 18
_one_equation: dict[tuple, Jaxpr] = {}


class Heavy(Primitive):
    """A primitive whose large eager calls run on the backend of the CPU: same words, less time.

    `work(*avals, **params)`: how many steps a call takes.
    """

    def __init__(self, name, *, work, **rules):
        super().__init__(name, **rules)
        self.work = work

    def evaluate(self, args, params):
        if all([type(a) is Tensor for a in args]):
            avals = [a.aval for a in args]
            if self.work(*avals, **params) >= WORTH_A_KERNEL:
                out = execute(self.alone(avals, params), [a.data for a in args])[0]
                return Tensor.own(out, self.avals_out(avals, params).weak)
        return super().evaluate(args, params)

    def alone(self, avals, params) -> Jaxpr:
        """The jaxpr of one equation, remembered per avals and parameters."""
        key = (self, *avals, *params.items())
        found = _one_equation.get(key)
        if found is None:
            ins, out = [Var(a) for a in avals], Var(self.avals_out(avals, params))
            found = Jaxpr(ins, [Eqn(self, ins, params, [out])], [out])
            if len(_one_equation) > 1024:
                _one_equation.clear()
            _one_equation[key] = found
        return found
