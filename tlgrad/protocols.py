"""NumPy's protocols and the array methods, attached to `Value`: tensors and traced values alike.

    np.sin(x)            __array_ufunc__      the tlgrad function of the same meaning
    np.sum(x)            __array_function__   likewise
    x.sum(axis=0)        methods              likewise
    x.__array_namespace__()                   tlgrad.numpy
    einops.rearrange(x, ...)                  tlgrad.patterns, once einops is loaded

What NumPy has and tlgrad lacks is an UnsupportedError; writing into a tensor, or a traced value into
a NumPy array, is a MutationError that gives the functional form.
"""
from __future__ import annotations

import importlib

import numpy as np

import tlgrad.numpy as tn
from tlgrad.core.loading import when_loaded
from tlgrad.core.source import user_source
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import Tracer, Value
from tlgrad.errors import ConcretizationError, MutationError, UnsupportedError
from tlgrad.kernels.later import Later
from tlgrad.ops.convert import convert

special = Later("tlgrad.special")
#: namespaces of NumPy and where their functions live here
_NAMESPACES = {"numpy": tn, "numpy.linalg": Later("tlgrad.linalg"), "numpy.fft": Later("tlgrad.fft")}
#: what `tlgrad.numpy` shows of the layers above it, loaded when it is first used
_ABOVE = {"linalg": ("tlgrad.linalg", ""), "fft": ("tlgrad.fft", ""), "special": ("tlgrad.special", ""),
          "convolve": ("tlgrad.conv", "convolve"), "correlate": ("tlgrad.conv", "correlate")}

#: NumPy functions that ask a question of an array without computing with it
_PLAIN = {"shape", "ndim", "size", "may_share_memory", "shares_memory"}
#: NumPy functions that print or save: they take the numbers of a tensor
_NUMBERS = {"array2string", "array_repr", "array_str", "save", "savez", "savetxt", "allclose", "array_equal"}
#: NumPy functions that change their argument
_WRITING = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"}
#: what to write instead of functions that have no counterpart of their name
_INSTEAD = {
    "vectorize": "tl.vmap, or tl.map for a scalar function",
    "apply_along_axis": "tl.vmap", "apply_over_axes": "tl.vmap", "fromfunction": "tl.vmap over tl.indices",
}


def _refuse_writing(name):
    return MutationError(
        f"np.{name} would write into an array (out=, or an in-place operator such as +=), but tensors are "
        f"immutable and a NumPy array cannot hold traced values [{user_source()}]. Write y = x + z instead of "
        "x += z; for a part, x = x.at[i].set(v) on a tensor (tl.zeros(shape) makes an empty one).")


def _unsupported(module, name):
    hint = _INSTEAD.get(name)
    return UnsupportedError(
        f"{module}.{name} is not available for tensors and traced values [{user_source()}]. "
        + (f"Use {hint}." if hint else "tlgrad has no function of that name; on concrete numbers, use "
           "np.asarray(x) first."))


# ---- __array_function__ ----

def _array_function(self, func, types, args, kwargs):
    module, name = func.__module__ or "numpy", func.__name__
    if name in _PLAIN and module == "numpy":
        return getattr(tn, name)(*args, **kwargs) if hasattr(tn, name) else False
    if kwargs.pop("out", None) is not None or name in _WRITING:
        raise _refuse_writing(name)
    namespace = _NAMESPACES.get(module)
    found = getattr(namespace, name, None) if namespace is not None else None
    if found is not None:
        return found(*args, **kwargs)
    if name in _NUMBERS and not _any_traced((args, kwargs)):
        return func(*_plain(args), **kwargs)
    raise _unsupported(module, name)


def _any_traced(tree) -> bool:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return any(_any_traced(x) for x in tree) if isinstance(tree, (list, tuple)) else isinstance(tree, Tracer)


def _plain(args):
    return [np.asarray(a) if isinstance(a, Tensor) else a for a in args]


# ---- __array_ufunc__ ----

#: ufuncs whose tlgrad name differs
_UFUNCS = {"absolute": "abs", "rint": "round", "power": "pow", "conjugate": "conj", "invert": "bitwise_invert"}
_REDUCE = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
           "logical_or": "any"}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    if method == "at" or out is not None and any(o is not None for o in out):
        raise _refuse_writing(name)
    if method == "__call__":
        return _call_ufunc(name, inputs, kwargs)
    if method == "outer":
        x, y = (tn.asarray(v) for v in inputs)
        return _call_ufunc(name, (x[(...,) + (None,) * y.ndim], y), kwargs)
    table = {"reduce": _REDUCE, "accumulate": _ACCUMULATE}.get(method, {})
    if name not in table:
        raise UnsupportedError(f"np.{name}.{method} is not available for tensors and traced values "
                               f"[{user_source()}]; use tl.sum, tl.prod, tl.max, tl.min, tl.cumsum, or tl.scan")
    kwargs.setdefault("axis", 0)
    return getattr(tn, table[name])(*inputs, **kwargs)


def _call_ufunc(name, inputs, kwargs):
    found = getattr(tn, _UFUNCS.get(name, name), None) or getattr(special, name, None)
    if found is None:
        raise _unsupported("np", name)
    where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
    for key in ("casting", "order", "subok", "signature"):
        kwargs.pop(key, None)
    if where is not True:
        raise UnsupportedError(f"np.{name}(..., where=...) leaves the other entries undefined; write "
                               "tl.where(mask, f(x), other)")
    inputs = [v if isinstance(v, (Value, bool, int, float, complex)) else tn.asarray(v) for v in inputs]
    if dtype is not None:
        inputs = [convert(tn.asarray(v), dtype) for v in inputs]
    return found(*inputs, **kwargs)


# ---- methods ----

def _reduction(name):
    function = getattr(tn, name)

    def method(self, axis=None, *args, **kwargs):
        return function(self, axis, *args, **kwargs)
    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _reshape(self, *shape, order="C"):
    """The entries in another shape: x.reshape(2, -1) or x.reshape((2, -1))."""
    return tn.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, order)


def _transpose(self, *axes):
    """The axes in another order (default: reversed): x.transpose(1, 0) or x.transpose((1, 0))."""
    if not axes or axes == (None,):
        return tn.transpose(self)
    return tn.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _squeeze(self, axis=None):
    """Without axes of size 1."""
    return tn.squeeze(self, axis)


def _astype(self, dtype, copy=True):
    """In another dtype: one rounding to nearest even."""
    return convert(self, dtype)


_only_item = Tensor.item


def _item(self, *args):
    """The one entry (or that at an index) as a Python number."""
    return _only_item(self[args[0] if len(args) == 1 else args] if args else self)


def _in_place(name, instead):
    def method(self, *args, **kwargs):
        raise MutationError(f"x.{name}() would change a tensor in place; write {instead} [{user_source()}]")
    method.__name__ = name
    return method


def _namespace(self, api_version=None):
    """The array API namespace: `tlgrad.numpy`, version 2024.12."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise UnsupportedError(f"array API version {api_version!r} is not known; this is 2024.12")
    return tn


def _to_device(self, device, *, stream=None):
    """x itself; the device belongs to a call: tl.run(f, device=...)."""
    tn.check_device(device, "to_device")
    return self


def _dlpack(self, *args, **kwargs):
    """DLPack capsule of the (read-only) storage; dtypes that NumPy has."""
    if self.dtype.software:
        raise UnsupportedError(f"DLPack has no {self.dtype}; convert it, or exchange t.words()")
    kwargs.pop("stream", None)
    if kwargs.get("max_version") is None:                 # unversioned capsules cannot say "read-only"
        return np.array(self.data).__dlpack__()
    return self.data.__dlpack__(**kwargs)


def _traced_dlpack(self, *args, **kwargs):
    raise ConcretizationError(f"a traced value, {self.aval}, has no memory to share [{user_source()}]")


def _numba_type(self):
    """Asked for by a function made by numba.njit that is called on a tensor or a traced value."""
    raise UnsupportedError(f"a function compiled by numba.njit was called on {self.aval} [{user_source()}]: wrap "
                           "it once, f = tl.from_numba(f); then f(x) works on tensors and inside every transform")


_METHODS = {
    **{n: _reduction(n) for n in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin", "std",
                                  "var", "cumsum", "cumprod", "ptp")},
    **{n: getattr(tn, n) for n in ("round", "clip", "dot", "swapaxes", "repeat", "take", "ravel", "diagonal",
                                   "trace", "searchsorted", "nonzero", "compress", "choose", "argsort")},
    "reshape": _reshape, "transpose": _transpose, "squeeze": _squeeze, "astype": _astype,
    "flatten": tn.ravel, "copy": tn.copy, "conjugate": tn.conj, "__matmul__": tn.matmul,
    "__rmatmul__": lambda self, other: tn.matmul(other, self),
    "__array_namespace__": _namespace, "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,
    "to_device": _to_device, "fill": _in_place("fill", "tl.full_like(x, v)"),
    "sort": _in_place("sort", "y = tl.sort(x)"), "put": _in_place("put", "x = x.at[i].set(v)"),
    "partition": _in_place("partition", "y = tl.sort(x)"),
    "mT": property(tn.matrix_transpose, doc="The last two axes swapped."),
    "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes per entry."),
    "_numba_type_": property(_numba_type, doc="Nothing: see `tl.from_numba`."),
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all entries."),
    "flat": property(lambda self: iter(tn.ravel(self)), doc="The entries in row-major order."),
}


def _meet_einops(backends) -> None:
    importlib.import_module("tlgrad.patterns.einops_backend").define(backends)


def attach() -> None:
    """Complete `Value` with the protocols and methods; called once, below."""
    tn.LATER.update(_ABOVE)
    for name, method in _METHODS.items():
        setattr(Value, name, method)
    when_loaded("einops._backends", _meet_einops)
    Tensor.item = _item
    Tensor.__dlpack__ = _dlpack
    Tensor.__dlpack_device__ = lambda self: (1, 0)
    Tracer.__dlpack__ = Tracer.__dlpack_device__ = _traced_dlpack
    Tracer.device = property(lambda self: "cpu", doc="Where the value will be: the device of the run.")


attach()
