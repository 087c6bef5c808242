"""The dtype table, promotion, and limits.

A dtype names the meaning of a word; `storage` is the NumPy dtype that holds it.  The
table is open: a format that NumPy lacks is stored as a structured dtype of its width,
so that moving words (reshape, transpose, gather) needs no knowledge of the format, and
its arithmetic is looked up by dtype in `tlgrad.ops.meaning`.
"""
from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tlgrad.errors import DTypeError
from tlgrad.kernels.fork import in_child
from tlgrad.softfloat import complexes, format as formats, storage as words
from tlgrad.softfloat.format import Binary

_by_name: dict[str, "DType"] = {}
_by_storage: dict[np.dtype, "DType"] = {}
_by_format: dict[Binary, "DType"] = {}
_making = threading.Lock()


@in_child
def _after_fork():
    global _making
    _making = threading.Lock()


class DType:
    """A number format: `name`, `kind` (b i u f c), `bits`, NumPy `storage` dtype.

    `software` is True when NumPy cannot compute in it; `format` is the `Binary` of a float, or of
    the parts of a complex number in software.
    Equal to any spelling of the same dtype: ``tl.float32 == np.float32 == "float32"``.
    """

    __slots__ = ("name", "kind", "bits", "storage", "software", "format")

    def __init__(self, name: str, kind: str, bits: int, storage, software=False, format=None):
        self.name, self.kind, self.bits = name, kind, bits
        self.storage, self.software, self.format = np.dtype(storage), software, format
        if self.storage in _by_storage or name in _by_name:
            raise DTypeError(f"dtype {name} is already defined")
        _by_name[name] = _by_storage[self.storage] = self
        if format is not None and kind == "f":
            _by_format[format] = self

    @property
    def dtype(self) -> np.dtype:
        """The storage dtype; lets ``np.zeros(3, tl.float32)`` work."""
        return self.storage

    @property
    def itemsize(self) -> int:
        """Bytes per entry."""
        return self.storage.itemsize

    def __eq__(self, other):
        if isinstance(other, DType):
            return self is other
        try:
            return as_dtype(other) is self
        except (DTypeError, TypeError):
            return False

    def __hash__(self):
        return hash(self.storage)

    def __repr__(self):
        return self.name

    def __reduce__(self):
        if self.format is None:
            return as_dtype, (self.name,)
        return (as_dtype if self.kind == "f" else Complex), (self.format,)


bool_ = DType("bool", "b", 8, np.bool_)
int8, int16, int32, int64 = (DType(f"int{n}", "i", n, f"i{n // 8}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", "u", n, f"u{n // 8}") for n in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{n}", "f", n, f"f{n // 8}", format=getattr(formats, f"binary{n}"))
                             for n in (16, 32, 64))
bfloat16 = DType("bfloat16", "f", 16, [("bfloat16", "<u2")], software=True, format=formats.bfloat16)
complex64, complex128 = (DType(f"complex{n}", "c", n, f"c{n // 8}") for n in (64, 128))

_python = {bool: bool_, int: int64, float: float64, complex: complex128}


def as_dtype(x: Any) -> DType:
    """The DType that `x` spells: a DType, a name, a Binary format, a NumPy dtype or scalar type,
    bool/int/float/complex.

    >>> as_dtype("float32"), as_dtype(float), as_dtype(Binary(15, 112)), as_dtype(Binary(11, 52))
    (float32, float64, binary128, float64)
    """
    if isinstance(x, DType):
        return x
    if isinstance(x, Binary):
        return _of_format(x)
    if isinstance(x, str) and x in _by_name:
        return _by_name[x]
    if isinstance(x, str) and x in formats.NAMED:
        return _of_format(formats.NAMED[x])
    if isinstance(x, type) and x in _python:
        return _python[x]
    try:
        storage = np.dtype(x)
    except TypeError:
        storage = None
    if storage is not None and storage.newbyteorder("=") in _by_storage and x is not None:
        return _by_storage[storage.newbyteorder("=")]
    if storage is not None and storage.fields and words.holds_format(storage):
        return _of_format(words.format_of(storage))
    if storage is not None and storage.names and storage.names[0].startswith("Complex("):
        return Complex(words.format_named(storage.names[0][8:-1]))
    known = dict.fromkeys([*_by_name, *(name for name, fmt in formats.NAMED.items() if fmt not in _by_format)])
    raise DTypeError(f"{x!r} is not a dtype of tlgrad; known: {', '.join(known)}, and tl.Binary(E, F)")


def _of_format(fmt: Binary) -> DType:
    """The DType of a format, made at first use."""
    return _by_format.get(fmt) or _made(repr(fmt), "f", fmt.width, words.dtype_of(fmt), fmt)


def _made(name, kind, bits, storage, format) -> DType:
    """A software dtype that was not met before; one object, whichever threads ask for it."""
    with _making:
        return _by_name.get(name) or DType(name, kind, bits, storage, software=True, format=format)


def of_storage(storage: np.dtype) -> DType:
    """The DType held by arrays of this NumPy dtype (fast path of `as_dtype`)."""
    found = _by_storage.get(storage)
    return found if found is not None else as_dtype(storage)


def all_dtypes() -> tuple[DType, ...]:
    """Every dtype of the table, in order of definition."""
    return tuple(_by_name.values())


def is_inexact(d: DType) -> bool:
    """True for floats and complex numbers, the dtypes that have derivatives."""
    return d.kind in "fc"


def is_integer(d: DType) -> bool:
    """True for signed and unsigned integers."""
    return d.kind in "iu"


# ---- promotion ----

_promoted: dict[tuple[DType, DType], DType] = {}


def promote_types(a: DType, b: DType) -> DType:
    """The dtype in which `a` and `b` meet: NumPy's rule; bfloat16 joins float16 in float32.

    Raises DTypeError for a software format beside another float: convert one explicitly.

    >>> promote_types(int32, float32), promote_types(bfloat16, float16)
    (float64, float32)
    """
    if a is b:
        return a
    found = _promoted.get((a, b))
    if found is None:
        found = _promoted[a, b] = _promote(a, b)
    return found


def _promote(a: DType, b: DType) -> DType:
    if b.software and not a.software:
        a, b = b, a
    if not a.software:
        return as_dtype(np.promote_types(a.storage, b.storage))
    if b.kind in "b" or a is bfloat16 and b.kind in "iu" and b.bits == 8:
        return a
    if {a.kind, b.kind} == {"c", "f"} and b.software and a.format is b.format:
        return a if a.kind == "c" else b
    if a is bfloat16 and not b.software:
        return float32 if b is float16 else as_dtype(np.promote_types(np.float32, b.storage))
    raise DTypeError(f"{a} and {b} have no common dtype: convert one of them, e.g. "
                     f"tl.convert(x, tl.{b})" + ("" if b.software else f" or tl.convert(x, tl.{a})"))


_rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def promote_weak(strong: DType, weak: DType) -> DType:
    """The dtype of a strong operand beside a weak one (a Python number): only its kind counts.

    >>> promote_weak(float32, float64), promote_weak(int8, float64), promote_weak(float32, complex128)
    (float32, float64, complex64)
    """
    if _rank[weak.kind] <= _rank[strong.kind]:
        return strong
    if weak.kind == "c" and strong.kind == "f":
        if strong.software:
            return complex_dtype(strong)
        return as_dtype(np.promote_types(strong.storage, np.complex64))
    return weak


def default_weak(kind: str) -> DType:
    """The dtype of a Python number on its own."""
    return {"b": bool_, "i": int64, "u": int64, "f": float64, "c": complex128}[kind]


def accumulator(d: DType) -> DType:
    """The dtype in which sums of `d` run: float32 for floats of at most 16 bits that it contains."""
    narrow = d.kind == "f" and d.bits <= 16 and d.format.E <= 8
    return float32 if narrow else d


def real_dtype(d: DType) -> DType:
    """The dtype of the parts of a complex one (float32 of complex64); other dtypes are their own."""
    if d.kind == "c" and d.software:
        return _of_format(d.format)
    return {complex64: float32, complex128: float64}.get(d, d)


def complex_dtype(d: DType) -> DType:
    """complex64 of float32 and narrower, complex128 of float64, Complex(f) of a format in software."""
    if d.kind == "c":
        return d
    if d.kind not in "f":
        raise DTypeError(f"{d} has no complex companion")
    if d.software and d is not bfloat16:
        return Complex(d)
    return complex128 if d is float64 else complex64


def Complex(dtype: Any) -> DType:
    """The dtype of complex numbers over a real float: two words each, real part first.

    Raises DTypeError for a dtype that is no real float.

    >>> Complex(float64), Complex("binary128")
    (complex128, Complex(binary128))
    """
    real = as_dtype(dtype)
    if real.kind != "f":
        raise DTypeError(f"Complex takes a real float dtype, got {real}")
    if real in (float32, float64):
        return complex_dtype(real)
    name = f"Complex({real})"
    storage = complexes.storage(real.format)
    return _by_name.get(name) or _made(name, "c", 2 * real.bits, storage, real.format)


def integer_words(array, storage):
    """Floats truncated to integers.  NumPy's own answer for NaN and for numbers out of range depends on the
    machine; here a signed number is the least one of its width, of 32 bits at least, and narrower words are the
    low bits of that.  Unsigned words of 32 and 64 bits are those of 64-bit integers, which wrap around."""
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    if storage not in (np.uint32, np.uint64):
        return _signed_words(array, np.int64 if storage == np.int64 else np.int32).astype(storage)
    high = array >= 2.0 ** 63
    low = np.where(high, array - array.dtype.type(2.0 ** 63), array) if high.any() else array
    words = _signed_words(low, np.int64).view(np.uint64) ^ (high.astype(np.uint64) << np.uint64(63))
    return words.astype(storage)


def _signed_words(array, storage):
    least = -2.0 ** (8 * np.dtype(storage).itemsize - 1)
    if not array.size or least <= array.min() and array.max() < -least:
        return array.astype(storage)
    whole = np.trunc(array)
    return np.where((whole >= least) & (whole < -least), whole, least).astype(storage)
