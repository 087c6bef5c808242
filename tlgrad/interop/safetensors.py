"""Tensors of every dtype in safetensors files, word for word.

A file is the length of its header (8 bytes, little-endian), a header in JSON, and the raw words. Dtypes
that safetensors names are stored under their names. Those that it lacks (binary128, Binary(E, F), complex
numbers) are stored as U8 with one more axis, the bytes of an entry, and the header's ``__metadata__`` says
under "tlgrad" what the bytes mean; other readers see plain bytes.

Source: https://huggingface.co/docs/safetensors (format).
"""
from __future__ import annotations

import json
import os
from math import prod
from typing import Any, Mapping

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.tensor import Tensor, tensor
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.softfloat.storage import format_named

#: safetensors name -> name of the dtype
NATIVE = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
          "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "BOOL": "bool", "C64": "complex64",
          **{f"{k}{n}": f"{word}{n}" for k, word in (("I", "int"), ("U", "uint")) for n in (8, 16, 32, 64)}}
_NAMES = {dtype: name for name, dtype in NATIVE.items()}
#: bytes of the longest header that is read (the limit of the reference implementation)
LONGEST = 100_000_000


def save_file(tensors: Mapping[str, Any], path: str | os.PathLike, metadata: Mapping[str, str] | None = None):
    """Write named tensors of any shapes and dtypes, NaN payloads included.

    `metadata` is text to keep beside them. Raises ArgumentError for names that are not text, and
    DTypeError for what is no tensor.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/x.safetensors"
    >>> save_file({"x": tensor(["0.1", "nan"], "binary128")}, path)
    >>> load_file(path)["x"]
    tensor([0.1, nan], binary128, shape (2,), cpu)
    """
    header, kinds, blobs, start = {}, {}, [], 0
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ArgumentError("save_file: the name of a tensor must be text other than '__metadata__', "
                                f"got {name!r}")
        value = tensor(value)
        raw = np.ascontiguousarray(value.data).tobytes()
        kind, shape = _NAMES.get(str(value.dtype)), list(value.shape)
        if kind is None:
            kind, shape, kinds[name] = "U8", [*shape, value.dtype.itemsize], str(value.dtype)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, start + len(raw)]}
        blobs.append(raw)
        start += len(raw)
    about = {str(k): str(v) for k, v in (metadata or {}).items()}
    if kinds:
        about["tlgrad"] = json.dumps(kinds)
    text = json.dumps({"__metadata__": about, **header} if about else header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.writelines([len(text).to_bytes(8, "little"), text, *blobs])


def load_file(path: str | os.PathLike) -> dict[str, Tensor]:
    """The tensors of a file by name, with the shapes, dtypes and words that were saved.

    Raises ArgumentError for a file that is damaged or no safetensors file, and DTypeError for a dtype
    that tlgrad does not have.
    """
    with open(path, "rb") as file:
        raw = file.read()
    size = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or size > min(LONGEST, len(raw) - 8):
        raise _damaged(path, "its header is longer than the file")
    try:
        header = json.loads(raw[8:8 + size])
        about = header.pop("__metadata__", {})
        kinds = json.loads(about.get("tlgrad", "{}"))
        entries = {name: (e["dtype"], [int(n) for n in e["shape"]], *map(int, e["data_offsets"]))
                   for name, e in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"its header is not understood ({error})") from None
    body = memoryview(raw)[8 + size:]
    return {name: _tensor(path, name, entry, kinds.get(name), body) for name, entry in entries.items()}


def metadata_of(path: str | os.PathLike) -> dict[str, str]:
    """The text that `save_file` kept beside the tensors."""
    with open(path, "rb") as file:
        about = json.loads(file.read(int.from_bytes(file.read(8), "little"))).get("__metadata__", {})
    return {k: v for k, v in about.items() if k != "tlgrad"}


def _tensor(path, name, entry, kind, body):
    native, shape, start, stop = entry
    if kind is None and native not in NATIVE:
        raise DTypeError(f"{path}: {name!r} has the dtype {native}, which tlgrad lacks; it has "
                         f"{', '.join(NATIVE)}")
    dtype = _dtype(kind or NATIVE[native])
    if kind is not None:
        if native != "U8" or shape[-1:] != [dtype.itemsize]:
            raise _damaged(path, f"{name!r} is said to hold {kind}, but its last axis is not "
                                 f"{dtype.itemsize} bytes")
        shape = shape[:-1]
    size = prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= len(body) or min(shape, default=0) < 0 or size != stop - start:
        raise _damaged(path, f"{name!r} does not fit its place")
    return Tensor.own(np.frombuffer(bytearray(body[start:stop]), dtype.storage).reshape(shape))


def _dtype(name):
    """A dtype by its name, a format or a complex dtype over one included."""
    if name.startswith("Complex("):
        return dtypes.Complex(format_named(name[8:-1]))
    try:
        return dtypes.as_dtype(name)
    except DTypeError:
        return dtypes.as_dtype(format_named(name))


def _damaged(path, reason):
    return ArgumentError(f"{path} is no sound safetensors file: {reason}. Write it again with save_file.")
