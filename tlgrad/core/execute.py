"""The backend seam: who runs a jaxpr on arrays.

A backend is an object with

    name                         "cpu", "gpu"
    execute(jaxpr, arrays)       -> list of arrays, with the words of `evaluate_arrays`

Backends live in a higher layer and are named here by module, loaded at first use.  The module
has a function `load() -> backend`.  Where it raises BackendMissing, the reference takes over.
"""
from __future__ import annotations

import importlib
from typing import Protocol, Sequence

import numpy as np

from tlgrad.core.jaxpr import Jaxpr, evaluate_arrays
from tlgrad.errors import UnsupportedError


class Backend(Protocol):
    """What a backend offers."""

    name: str

    def execute(self, jaxpr: Jaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run a jaxpr: the words are those of the reference."""


class Reference:
    """The defining backend: NumPy, one primitive after the other."""

    name = "reference"

    def execute(self, jaxpr, arrays):
        return evaluate_arrays(jaxpr, arrays)


class BackendMissing(ImportError):
    """Raised by a backend's `load` when what it needs is not installed; the message says what."""


#: device or backend name -> module with `load()`
MODULES: dict[str, str] = {"cpu": "tlgrad.backends.numba_cpu"}
_loaded: dict[str, Backend] = {"reference": Reference()}

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
    if name in MODULES:
        try:
            return importlib.import_module(MODULES[name]).load()
        except BackendMissing as error:
            if name != "cpu":
                raise UnsupportedError(f"device {name!r} is not available: {error}") from None
            return _loaded["reference"]
    if name == "cpu":
        return _loaded["reference"]
    if name == "gpu":
        raise UnsupportedError("device 'gpu' is not available: this version of tlgrad has no GPU backend. "
                               "Use device='cpu'.")
    raise UnsupportedError(f"device {name!r} is not known; use 'cpu' or 'gpu'")


def execute(jaxpr: Jaxpr, arrays: Sequence[np.ndarray], device: str = "cpu") -> list[np.ndarray]:
    """Run a jaxpr on `device`."""
    return backend(device).execute(jaxpr, arrays)
