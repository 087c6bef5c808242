"""What an array API consumer asks of the namespace (array API standard 2024.12, inspection)."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.errors import ArgumentError
from tlgrad.numpy.arrays import check_device
from tlgrad.numpy.dtypes import isdtype

_STANDARD = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "float32", "float64", "complex64", "complex128")


class NamespaceInfo:
    """Capabilities, default dtypes, dtypes and devices of the namespace."""

    def capabilities(self) -> dict:
        """Boolean masks and data-dependent shapes work on tensors (not on traced values)."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where tensors are made."""
        return "cpu"

    def devices(self) -> list:
        """Where tensors can be made; a call chooses its device by tl.run(f, device=...)."""
        return ["cpu"]

    def default_dtypes(self, *, device=None) -> dict:
        """What Python numbers on their own become."""
        check_device(device, "default_dtypes")
        return {"real floating": dtypes.float64, "complex floating": dtypes.complex128,
                "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device=None, kind=None) -> dict:
        """The standard's dtypes by name, of one kind or a tuple of kinds if asked for.

        Raises ArgumentError for an unknown kind.
        """
        check_device(device, "dtypes")
        table = {name: dtypes.as_dtype(name) for name in _STANDARD}
        if kind is None:
            return table
        if not isinstance(kind, (str, tuple)):
            raise ArgumentError(f"dtypes: kind is a string or a tuple of strings, got {kind!r}")
        return {name: d for name, d in table.items() if isdtype(d, kind)}


def namespace_info() -> NamespaceInfo:
    """The inspection object of the namespace: ``tlgrad.numpy.__array_namespace_info__()``."""
    return NamespaceInfo()
