"""`Tensor`: an immutable array with shape, dtype and device."""
from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Aval, make_aval
from tlgrad.core.dtypes import DType
from tlgrad.core.memory import copied
from tlgrad.core.trace import Tracer, Value
from tlgrad.errors import ArgumentError, ConcretizationError, DTypeError, MutationError
from tlgrad.softfloat import array as softfloat, complexes
from tlgrad.softfloat.complexes import ComplexFloat
from tlgrad.softfloat.storage import of_integers
from tlgrad.softfloat.value import Float


class Tensor(Value):
    """An immutable array.  Make one with `tl.tensor`; `data` is its read-only NumPy storage.

    Attributes: `shape`, `dtype`, `device`, `ndim`, `size`.  ``np.asarray(t)`` shares memory for
    dtypes that NumPy has.  Software formats store whole little-endian words.
    """

    __slots__ = ("data", "aval", "device")

    def __init__(self, data: np.ndarray, aval: Aval, device: str = "cpu"):
        self.data, self.aval, self.device = data, aval, device

    @staticmethod
    def own(array, weak: bool = False) -> "Tensor":
        """Wrap an array that nobody else will write to; no copy."""
        if type(array) is not np.ndarray:
            array = np.asarray(array)
        return Tensor(array, make_aval(array.shape, dtypes.of_storage(array.dtype), weak))

    @staticmethod
    def of(array, aval: Aval) -> "Tensor":
        """Wrap the result of an `impl`, whose shape and dtype its abstract rule has told."""
        return Tensor(array if type(array) is np.ndarray else np.asarray(array), aval)

    @property
    def weak(self) -> bool:
        """True when only the kind of its dtype counts in promotion (it came from Python numbers)."""
        return self.aval.weak

    def item(self) -> Any:
        """The one entry as a Python number, or as a `Float` where a Python float cannot hold it.

        ConcretizationError when there are several.
        """
        if self.aval.size != 1:
            raise ConcretizationError(
                f"only a tensor with one entry is a Python number; this one has shape {self.shape}. "
                "Index it, or reduce it first (tl.sum, tl.max, tl.all, tl.any).")
        if self.dtype.software:
            number = _scalars(self).reshape(())[()]
            plain = complex if self.dtype.kind == "c" else float
            return plain(number) if fits_python(self.dtype) else number
        return self.data.reshape(()).item()

    def tolist(self) -> Any:
        """Nested Python lists of Python numbers (one number for a 0-d tensor), or of `Float`s."""
        return (_scalars(self) if _is_wide(self.dtype) else to_numpy(self)).tolist()

    def words(self) -> np.ndarray:
        """The raw words: unsigned integers of the dtype's width (complex: two per entry)."""
        return words(self.data)

    def __bool__(self):
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if not dtypes.is_integer(self.dtype) or self.ndim:
            raise DTypeError(f"an index must be an integer of shape (), got {self.aval}")
        return int(self.data)

    def __len__(self):
        if not self.shape:
            raise ConcretizationError("a tensor of shape () has no length")
        return self.shape[0]

    def __hash__(self):
        raise MutationError("a tensor is not hashable (== compares entries); "
                            "use id(t), or tl.same_bits(a, b) to compare words")

    def __setitem__(self, key, value):
        raise MutationError(f"tensors are immutable; instead of x[{_key_text(key)}] = v, write "
                            f"x = x.at[{_key_text(key)}].set(v)")

    def __array__(self, dtype=None, copy=None):
        out = to_numpy(self)
        if dtype is not None and np.dtype(dtype) != out.dtype:
            return out.astype(dtype)
        return out.copy() if copy else out

    def __reduce__(self):
        return _rebuild, (np.array(self.data), self.dtype.name, self.aval.weak)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return tensor_text(self)

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __str__(self):
        return _entries_text(self) if self.ndim else str(self.item())


def _rebuild(data, name, weak):
    return Tensor.own(frozen(data), weak)


def _key_text(key) -> str:
    keys = key if isinstance(key, tuple) else (key,)

    def one(k):
        if isinstance(k, slice):
            return ":".join("" if s is None else str(s) for s in (k.start, k.stop)) or ":"
        return "..." if k is Ellipsis else str(k)
    return ", ".join(map(one, keys))


def words(array: np.ndarray) -> np.ndarray:
    """The storage of `array` seen as unsigned integers; complex numbers become pairs."""
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array)
        half = np.dtype(f"f{array.dtype.itemsize // 2}")
        return words(array.reshape(array.shape + (1,)).view(half))
    width = array.dtype.itemsize
    if width in (1, 2, 4, 8):
        return np.ascontiguousarray(array).view(f"u{width}").reshape(array.shape)
    flat = np.ascontiguousarray(array).reshape(array.shape + (1,))
    return flat.view("u8" if width % 8 == 0 else "u1")


def _scalars(t: Tensor) -> np.ndarray:
    """An object array of the exact scalars of a software dtype."""
    if t.dtype.kind == "c":
        return complexes.numbers(t.data, t.dtype.format)
    return softfloat.to_floats(t.data)


def fits_python(dtype: DType) -> bool:
    """Whether every number of a float format is a Python float."""
    return dtype.format.F <= 52 and dtype.format.E <= 11


def _is_wide(dtype: DType) -> bool:
    return dtype.software and not fits_python(dtype)


def to_numpy(t: Tensor) -> np.ndarray:
    """A NumPy array of the entries: the storage itself; for a software format its values in
    float32 (bfloat16) or float64, or its words where these cannot hold them."""
    if t.dtype is dtypes.bfloat16:
        return bfloat16_to_float32(t.data)
    if t.dtype.software and fits_python(t.dtype):
        return convert_array(t.data, dtypes.float64 if t.dtype.kind == "f" else dtypes.complex128)
    return t.data


def bfloat16_to_float32(array: np.ndarray) -> np.ndarray:
    """Exact: a bfloat16 word is the upper half of a binary32 word."""
    return np.asarray(array["bfloat16"].astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Round binary32 to bfloat16, to nearest even; NaN becomes the canonical quiet NaN 0x7fc0."""
    w = np.asarray(array, np.float32).view(np.uint32)
    rounded = (w + np.uint32(0x7FFF) + ((w >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    out = np.where(np.isnan(array), np.uint32(0x7FC0), rounded).astype(np.uint16)
    return out.view(dtypes.bfloat16.storage)


def frozen(array: np.ndarray) -> np.ndarray:
    """`array` with writing switched off."""
    array.flags.writeable = False
    return array


def as_value(x, what: str = "an operand", error: type = ArgumentError) -> Value:
    """A Value from a Value, NumPy array or scalar, Python number, or nested list of numbers.

    Anything else raises `error`.

    Arrays are copied (a tensor cannot change); Python numbers become weak 0-d tensors.
    """
    if isinstance(x, Value):
        return x
    kind = type(x)
    if kind in _WEAK:
        return python_scalar(x)
    if isinstance(x, (np.ndarray, np.generic, Float, ComplexFloat, list, tuple)):
        return tensor(x)
    if isinstance(x, (bool, int, float, complex)):
        return python_scalar({"b": bool, "i": int, "f": float, "c": complex}[np.asarray(x).dtype.kind](x))
    raise error(
        f"{what} must be a tensor, NumPy array or number, got {type(x).__name__}: {x!r:.60}"
        + (". A function that returns None has probably lost its return statement." if x is None else ""))


_WEAK = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


def python_scalar(x) -> Tensor:
    """A Python number as a weak 0-d tensor; an int beyond int64 becomes uint64 or an error."""
    dtype = _WEAK[type(x)]
    if dtype is dtypes.int64 and not -2**63 <= x < 2**63:
        if not 0 <= x < 2**64:
            raise DTypeError(f"the integer {x} does not fit 64 bits; use a float or tl.tensor(x, dtype)")
        dtype = dtypes.uint64
    return Tensor(np.array(x, dtype.storage), make_aval((), dtype, True))


def tensor(data: Any, dtype: Any = None) -> Tensor:
    """An immutable tensor of `data`: numbers, nested lists, a NumPy array, or a Tensor.

    Without `dtype`, NumPy's choice: float64 for Python floats, int64 for ints; arrays keep
    theirs.  With a float `dtype`, entries may be text, Fractions, Decimals and ints of any size,
    each rounded once.  The data is copied.  Raises DTypeError for data that is not numbers, and
    ShapeError (through NumPy's ValueError) for ragged lists.

    >>> tensor([1, 2, 3], "float32")
    tensor([1., 2., 3.], float32, shape (3,), cpu)
    >>> tensor(["0.1", 2], "binary128")
    tensor([0.1, 2.0], binary128, shape (2,), cpu)
    """
    want = None if dtype is None else dtypes.as_dtype(dtype)
    if want is None and isinstance(data, (Float, ComplexFloat)):
        want = _dtype_of(data)
    if isinstance(data, Tracer) or isinstance(data, (list, tuple)) and _has_tracer(data):
        raise ConcretizationError("tl.tensor takes numbers, got a traced value; "
                                  "use tl.convert(x, dtype), or tl.stack([...]) for a list of traced values")
    if isinstance(data, np.ndarray) and type(data) is not np.ndarray and np.ma.is_masked(data):
        raise DTypeError("tl.tensor: a tensor has no masked entries; write data.filled(value), or keep data.data "
                         "and the mask as two tensors")
    if isinstance(data, Tensor):
        array = data.data
    elif want is not None and (want.kind == "f" or want.software) and _needs_exact_reading(data, want.software):
        array = _read_exactly(data, want)
    else:
        array = _to_array(data)
    if want is not None and array.dtype != want.storage:
        array = convert_array(array, want)
    elif not isinstance(data, Tensor) and (array.flags.writeable or array.base is not None):
        array = copied(array)
    return Tensor.own(frozen(array))


def _has_tracer(data) -> bool:
    return any(_has_tracer(x) if isinstance(x, (list, tuple)) else isinstance(x, Tracer) for x in data)


def _dtype_of(number) -> DType:
    """The dtype of a `Float` or `ComplexFloat`."""
    return dtypes.as_dtype(number.format) if isinstance(number, Float) else dtypes.Complex(number.real.format)


_EXACT = (str, bytes, Fraction, Decimal, Float, ComplexFloat)


def _needs_exact_reading(data, software: bool) -> bool:
    """Whether NumPy would refuse the entries, or round them before the format does."""
    if isinstance(data, (list, tuple)):
        return any(_needs_exact_reading(x, software) for x in data)
    if isinstance(data, (np.ndarray, np.generic)):
        return data.dtype.kind in "OUS" or data.dtype.char == "g"         # g: long double
    return isinstance(data, _EXACT) or type(data) is int and (software or abs(data) >= 2 ** 53)


def _read_exactly(data, want: DType) -> np.ndarray:
    try:
        if want.kind == "c":
            return _read_complex(data, want.format)
        return softfloat.of_numbers(data, want.format)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"tl.tensor: {error}") from None


def _read_complex(data, fmt):
    """Complex text and numbers, part by part."""
    entries = np.array(data, dtype=object)
    pairs = [complexes.parse(fmt, x) if isinstance(x, str) else
             tuple(fmt(p).bits for p in (getattr(x, "real", x), getattr(x, "imag", 0)))
             for x in entries.ravel()]
    re, im = (of_integers([pair[k] for pair in pairs], fmt, entries.shape) for k in (0, 1))
    return complexes.join(re, im, fmt)


def _to_array(data) -> np.ndarray:
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise DTypeError(f"tl.tensor: the lists are ragged or not numbers ({error})") from None
    if array.dtype.kind == "O" and isinstance(data, (list, tuple)):
        entries = np.ravel(array)
        found = {_dtype_of(x) for x in entries if isinstance(x, (Float, ComplexFloat))}
        if len(found) == 1:
            return _read_exactly(data, *found)
        raise DTypeError("tl.tensor: the entries are not numbers of one format, got "
                         f"{', '.join(sorted({type(x).__name__ for x in entries})) or 'an empty object list'}"
                         + (f"; give a dtype, for example {min(map(str, found))}" if found else ""))
    if array.dtype.newbyteorder("=") != array.dtype:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        dtypes.of_storage(array.dtype)
    except DTypeError:
        raise DTypeError(f"tl.tensor: {array.dtype} entries are not numbers of a known dtype "
                         f"({data!r:.60})") from None
    return array


def convert_array(array: np.ndarray, want: DType) -> np.ndarray:
    """`array` in another dtype: one rounding to nearest even; floats to integers truncate."""
    have = dtypes.of_storage(array.dtype)
    if have is want:
        return array
    if any(d.software and d is not dtypes.bfloat16 for d in (have, want)):
        return _convert_software(array, have, want)
    if want is dtypes.bfloat16:
        if have.kind == "f" and softfloat.current() is not None:
            return softfloat.convert(array, want.format)
        return float32_to_bfloat16(_round_to_odd_float32(array))
    if have is dtypes.bfloat16:
        array = bfloat16_to_float32(array)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and want.kind not in "cb":
            array = array.real
        if array.dtype.kind == "f" and want.kind in "iu":
            return dtypes.integer_words(array, want.storage)
        return array.astype(want.storage)


def _convert_software(array: np.ndarray, have: DType, want: DType) -> np.ndarray:
    if want.kind == "c":
        part = dtypes.real_dtype(want)
        re, im = (convert_array(p, part) for p in _parts(array, have))
        return complexes.join(re, im, part.format) if want.software else _hardware_complex(re, im, want)
    if have.kind == "c":
        array = _parts(array, have)[0]
        return convert_array(array, want)
    return softfloat.convert(array, want.format or want.storage)


def _parts(array, dtype):
    """Real and imaginary part of an array of any dtype."""
    if dtype.kind != "c":
        return array, np.zeros(array.shape, array.dtype)
    if dtype.software:
        return complexes.parts(array, dtype.format)
    return np.array(array.real), np.array(array.imag)


def _hardware_complex(re, im, want):
    out = np.empty(re.shape, want.storage)
    out.real, out.imag = re, im
    return out


def _round_to_odd_float32(array: np.ndarray) -> np.ndarray:
    """binary32 by rounding to odd, so that a second rounding to a narrower format is right.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008: rounding to odd
    with two extra bits makes the double rounding innocuous.
    """
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "c":
        array = array.real
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        wide = np.asarray(array, np.longdouble)              # 64-bit significand: exact
    else:
        wide = np.asarray(array, np.float64)
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        back = near.astype(wide.dtype)
        inexact = np.isfinite(wide) & (back != wide)
        toward_zero = np.where(inexact & (np.abs(back) > np.abs(wide)),
                               np.nextafter(near, np.float32(0)), near)
    odd = toward_zero.view(np.uint32) | inexact.astype(np.uint32)
    return odd.view(np.float32)


def tensor_text(t: Tensor) -> str:
    """``tensor([1., 2.], float32, shape (2,), cpu)``."""
    body = str(t.item() if _is_wide(t.dtype) else to_numpy(t)[()]) if not t.ndim else "[]" if not t.size else \
        _entries_text(t, prefix="tensor(", threshold=200, edgeitems=3)
    weak = ", weak" if t.aval.weak else ""
    return f"tensor({body}, {t.dtype}, shape {t.shape}, {t.device}{weak})"


def _entries_text(t: Tensor, **options) -> str:
    """The entries as NumPy prints them; those of a wide format as the shortest exact text."""
    if _is_wide(t.dtype):
        return np.array2string(_scalars(t), separator=", ",
                               formatter={"object": str}, **options)
    return np.array2string(to_numpy(t), separator=", ", **options)
