"""Arrays of words: which NumPy dtype holds a format, and the words as Python integers and back.

A format that NumPy has (binary16, binary32, binary64) is stored as NumPy's. Any other is a structured
dtype with one field named like the format: an unsigned integer, or 64-bit words, least significant
first. So reshape, transpose, gather and concatenate move words without knowing the format, and the
bytes of binary128 are those of C's ``__float128``.
"""
from __future__ import annotations

import re

import numpy as np

from tlgrad.softfloat.format import NAMED, Binary, binary16, binary32, binary64
from tlgrad.softfloat.value import Float, word_of

HARDWARE = {binary16: np.dtype(np.float16), binary32: np.dtype(np.float32),
            binary64: np.dtype(np.float64)}
_dtypes: dict[Binary, np.dtype] = dict(HARDWARE)
_formats: dict[np.dtype, Binary] = {d: f for f, d in HARDWARE.items()}


def dtype_of(fmt: Binary) -> np.dtype:
    """The storage dtype of a format.

    >>> dtype_of(NAMED["binary128"]).itemsize
    16
    """
    found = _dtypes.get(fmt)
    if found is None:
        size = fmt.itemsize
        field = (repr(fmt), f"<u{size}") if size <= 8 else (repr(fmt), "<u8", (size // 8,))
        found = _dtypes[fmt] = np.dtype([field])
        _formats[found] = fmt
    return found


_NAME = re.compile(r"Binary\((\d+), (\d+)(?:, specials='(\w+)')?(?:, bias=(-?\d+))?\)")


def format_of(dtype: np.dtype) -> Binary:
    """The format that a storage dtype holds; KeyError for a dtype that holds none.

    >>> format_of(np.dtype([("Binary(6, 9)", "<u2")]))
    Binary(6, 9)
    """
    if dtype not in _formats and dtype.names and _NAME.fullmatch(dtype.names[0]):
        dtype_of(format_named(dtype.names[0]))
    return _formats[dtype]


def format_named(name: str) -> Binary:
    """The format of a name, "binary128" or "Binary(6, 9)"; KeyError for another name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return NAMED[name]
    E, F, specials, bias = match.groups()
    return Binary(int(E), int(F), specials or "ieee", bias and int(bias))


def holds_format(dtype: np.dtype) -> bool:
    """Whether a NumPy dtype holds the words of a format."""
    try:
        return format_of(dtype) is not None
    except (KeyError, ValueError):
        return False


for _fmt in NAMED.values():
    dtype_of(_fmt)


def as_words(array: np.ndarray) -> np.ndarray:
    """The words as unsigned integers; for more than 8 bytes one more axis, low word first."""
    size = array.dtype.itemsize
    array = np.asarray(array, order="C")
    if size <= 8:
        return array.view(f"<u{size}")
    return array.reshape(array.shape + (1,)).view("<u8")


def of_words(words: np.ndarray, fmt: Binary) -> np.ndarray:
    """The inverse of `as_words`."""
    dtype = dtype_of(fmt)
    words = np.asarray(words, order="C")
    if dtype.itemsize <= 8:
        return words.view(dtype)
    return words.view(dtype).reshape(words.shape[:-1])


def to_integers(array: np.ndarray) -> list[int]:
    """The words in row-major order as Python integers."""
    size = array.dtype.itemsize
    if size <= 8:
        return as_words(array).ravel().tolist()
    raw = np.ascontiguousarray(array).tobytes()
    return [int.from_bytes(raw[i:i + size], "little") for i in range(0, len(raw), size)]


def of_integers(words, fmt: Binary, shape) -> np.ndarray:
    """An array of words given as Python integers in row-major order."""
    dtype = dtype_of(fmt)
    if dtype.itemsize <= 8:
        return np.array(list(words), f"<u{dtype.itemsize}").view(dtype).reshape(shape)
    raw = b"".join(w.to_bytes(dtype.itemsize, "little") for w in words)
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


def of_numbers(data, fmt: Binary, env=None) -> np.ndarray:
    """Numbers and text of any kind, nested in lists or an object array, each rounded once.

    Raises TypeError or ValueError for an entry that is no number, naming it.

    >>> of_numbers(["0.1", 2, 0.5], NAMED["binary128"]).shape
    (3,)
    """
    objects = np.array(data, dtype=object)
    if any(isinstance(x, (list, tuple, np.ndarray)) for x in objects.ravel()):
        raise ValueError("the lists are ragged: all of a level have one length")
    return of_integers((word_of(fmt, _plain(x), env) for x in objects.ravel()), fmt, objects.shape)


def _plain(x):
    return x.item() if isinstance(x, np.generic) and not isinstance(x, np.longdouble) else x


def to_floats(array: np.ndarray) -> np.ndarray:
    """An object array of `Float` scalars, for printing and exact inspection."""
    fmt = format_of(array.dtype)
    out = np.empty(array.size, dtype=object)
    out[:] = [Float.from_bits(fmt, w) for w in to_integers(array)]
    return out.reshape(array.shape)
