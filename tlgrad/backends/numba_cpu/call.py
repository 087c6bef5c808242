"""Native call of a small program: tensors in, a new tensor out, with all checks of the long way.

One builtin method written in LLVM IR against the C API of CPython and NumPy.  The object that is called
has a slot with (plan, what the plan points to); the plan is a bytes object of 64-bit words:

    header      see `_HEADER`; `at_*` are the numbers of the words where the sections begin
    avals       of the arguments, by identity
    checks      (kind, place, key, saved): what was captured is unchanged; kinds FIELD, ITEM, ASK
    operands    (number of the argument or -1, address of a captured tensor, byte offset)
    dims        of the result
    words       of the launch after the addresses

When a check fails, an array is not contiguous and aligned, or the slot is empty, the Python
method takes over with the same arguments.
"""
from __future__ import annotations

import ctypes
import functools
import struct
import types
from typing import Any

import numpy as np

from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.launch import MethodDef
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import EVAL, _current
from tlgrad.kernels.machine import add_symbols, compiling
from tlgrad.ops.orders import _order

METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
#: kinds of checks: a pointer at `key` bytes of an object; the entry of a dict, 0 when there is none; a
#: function of no arguments that gives True
FIELD, ITEM, ASK = 0, 1, 2
_HEAD = object.__basicsize__
_VAR_HEAD = tuple.__basicsize__
#: PyArrayObject after the object head: data, nd, dimensions, strides, base, descr, flags
_FLAGS = _HEAD + 48
_CONTIGUOUS_ALIGNED = 0x1 | 0x100
_HEADER = ("kernel", "arguments", "operands", "further", "checks", "lanes", "rank", "descr", "aval", "order",
           "at_avals", "at_checks", "at_operands", "at_dims", "at_words")
_POINTERS = ("kernel", "descr", "aval", "order")
_C_API = {"Py_IncRef": "void (ptr)", "Py_DecRef": "void (ptr)", "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
          "PyObject_CallNoArgs": "ptr (ptr)", "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
          "PyDict_GetItem": "ptr (ptr, ptr)", "PyType_GenericAlloc": "ptr (ptr, i64)"}
#: PyArray_NewFromDescr in NumPy's table of functions
_NEW_FROM_DESCR = 94


def slot_offset(cls, name: str) -> int:
    """Byte offset of a slot: PyMemberDescrObject -> PyMemberDef.offset."""
    member = ctypes.c_void_p.from_address(id(cls.__dict__[name]) + _HEAD + 24).value
    return ctypes.c_ssize_t.from_address(member + 16).value


def field_offset(owner: Any, value: Any) -> int:
    """Where the object holds a pointer to `value`, in bytes; -1 when it does not."""
    for place in range(_HEAD, type(owner).__basicsize__, 8):
        if ctypes.c_size_t.from_address(id(owner) + place).value == id(value):
            return place
    return -1


@functools.cache
def captured_fields() -> dict[str, int]:
    """Byte offsets of what guards watch in cells and functions, found on a function of our own, and of the
    number of entries of a dict."""
    def probe(x=1.5, *, y=2.5):
        return x, y
    fields = {name: field_offset(probe, getattr(probe, name))
              for name in ("__code__", "__defaults__", "__kwdefaults__")}
    content, three = object(), {1: 1, 2: 2, 3: 3}
    counted = ctypes.c_ssize_t.from_address(id(three) + _HEAD).value == len(three)
    return {**fields, "cell": field_offset(types.CellType(content), content), "entries": _HEAD if counted else -1}


def _header() -> str:
    return "".join(f"  %p_{w} = getelementptr i64, ptr %plan, i64 {k}\n"
                   f"  %{w} = load {'ptr' if w in _POINTERS else 'i64'}, ptr %p_{w}, align 1\n"
                   + (f"  %{w[3:]}_ = getelementptr i64, ptr %plan, i64 %{w}\n" if w.startswith("at_") else "")
                   for k, w in enumerate(_HEADER))


def _context(label: str, variable: str, expected: str, good: str) -> str:
    """The block that goes on to `good` while a context variable holds the expected object."""
    return f"""{label}:
  %{label}_r = call i32 @PyContextVar_Get(ptr {variable}, ptr null, ptr %found)
  %{label}_v = load ptr, ptr %found, align 8
  call void @Py_DecRef(ptr %{label}_v)
  %{label}_ok = icmp eq ptr %{label}_v, {expected}
  br i1 %{label}_ok, label %{good}, label %other
"""


def _loop(name: str, count: str, start: str, body: str, after: str) -> str:
    """``for i in range(count)``; the body uses %i_NAME and ends by going to NAME_next."""
    return f"""br label %{name}_head
{name}_head:
  %i_{name} = phi i64 [ 0, %{start} ], [ %j_{name}, %{name}_next ]
  %more_{name} = icmp slt i64 %i_{name}, {count}
  br i1 %more_{name}, label %{name}_body, label %{after}
{name}_next:
  %j_{name} = add i64 %i_{name}, 1
  br label %{name}_head
{name}_body:
{body}"""


def _guarded() -> str:
    """The loop over the checks of what was captured."""
    parts = "".join(f"  %c{k} = getelementptr i64, ptr %check, i64 {k}\n"
                    f"  %{name} = load {type}, ptr %c{k}, align 1\n"
                    for k, (name, type) in enumerate((("kind", "i64"), ("place", "ptr"), ("key", "i64"),
                                                      ("saved", "ptr"))))
    return _loop("checks", "%checks", "same_avals", f"""  %nc = mul i64 %i_checks, 4
  %check = getelementptr i64, ptr %checks_, i64 %nc
{parts}  switch i64 %kind, label %ask [ i64 {FIELD}, label %field  i64 {ITEM}, label %item ]
field:
  %pf = getelementptr i8, ptr %place, i64 %key
  %vf = load ptr, ptr %pf, align 8
  br label %compare
item:
  %name = inttoptr i64 %key to ptr
  %vi = call ptr @PyDict_GetItem(ptr %place, ptr %name)
  br label %compare
ask:
  %va = call ptr @PyObject_CallNoArgs(ptr %place)
  %raised = icmp eq ptr %va, null
  br i1 %raised, label %error, label %asked
asked:
  call void @Py_DecRef(ptr %va)
  br label %compare
compare:
  %v = phi ptr [ %vf, %field ], [ %vi, %item ], [ %va, %asked ]
  %unchanged = icmp eq ptr %v, %saved
  br i1 %unchanged, label %checks_next, label %other
""", "captured")


def _arguments(data: int, aval: int) -> tuple[str, str]:
    """The loops over the types of the arguments, and over the addresses of the operands."""
    types = _loop("avals", "%arguments", "as_ordered", f"""  %px = getelementptr ptr, ptr %args, i64 %i_avals
  %x = load ptr, ptr %px, align 8
  %pt = getelementptr i8, ptr %x, i64 8
  %t = load ptr, ptr %pt, align 8
  %tensor = icmp eq ptr %t, @tlgrad.Tensor
  br i1 %tensor, label %a_tensor, label %other
a_tensor:
  %pa = getelementptr i8, ptr %x, i64 {aval}
  %a = load ptr, ptr %pa, align 8
  %pe = getelementptr ptr, ptr %avals_, i64 %i_avals
  %e = load ptr, ptr %pe, align 1
  %fits = icmp eq ptr %a, %e
  br i1 %fits, label %avals_next, label %other
""", "same_avals")
    addresses = _loop("operands", "%operands", "captured", f"""  %no = mul i64 %i_operands, 3
  %operand = getelementptr i64, ptr %operands_, i64 %no
  %number = load i64, ptr %operand, align 1
  %pq = getelementptr i64, ptr %operand, i64 1
  %constant = load ptr, ptr %pq, align 1
  %pz = getelementptr i64, ptr %operand, i64 2
  %offset = load i64, ptr %pz, align 1
  %is_argument = icmp sge i64 %number, 0
  %index = select i1 %is_argument, i64 %number, i64 0
  %py = getelementptr ptr, ptr %args, i64 %index
  %where = select i1 %is_argument, ptr %py, ptr %pq
  %y = load ptr, ptr %where, align 1
  %pd = getelementptr i8, ptr %y, i64 {data}
  %array = load ptr, ptr %pd, align 8
  %pg = getelementptr i8, ptr %array, i64 {_FLAGS}
  %flags = load i32, ptr %pg, align 4
  %both = and i32 %flags, {_CONTIGUOUS_ALIGNED}
  %plain = icmp eq i32 %both, {_CONTIGUOUS_ALIGNED}
  br i1 %plain, label %address, label %other
address:
  %pb = getelementptr i8, ptr %array, i64 {_HEAD}
  %base = load i64, ptr %pb, align 8
  %at = add i64 %base, %offset
  %ps = getelementptr i64, ptr %slots, i64 %i_operands
  store i64 %at, ptr %ps, align 8
  br label %operands_next
""", "make")
    return types, addresses


def _entry(slot: int) -> str:
    """The module of the method for objects with (plan, kept) at byte `slot`."""
    data, aval, device = (slot_offset(Tensor, n) for n in ("data", "aval", "device"))
    types, addresses = _arguments(data, aval)
    return "".join([
        _declarations(), "define ptr @tlgrad_call(ptr %self, ptr %args, i64 %n, ptr %names) {\n",
        _plan_of_self(slot),
        _context("trace", "@tlgrad.trace", "@tlgrad.eval", "traced"), """traced:
  %any_order = icmp eq ptr %order, null
  br i1 %any_order, label %as_ordered, label %order_now
""", _context("order_now", "@tlgrad.order", "%order", "as_ordered"), f"""as_ordered:
  {types}same_avals:
  {_guarded()}captured:
  %arrays = add i64 %operands, 1
  %total = add i64 %arrays, %further
  %slots = alloca i64, i64 %total, align 16
  {addresses}""", _launched(), _tensor(data, aval, device), _long_way(), "}\n"])


def _declarations() -> str:
    """What the method uses of CPython, NumPy and this process."""
    return "".join([*(f"declare {t.split(' ', 1)[0]} @{n}{t.split(' ', 1)[1]}\n" for n, t in _C_API.items()),
                    *(f"@tlgrad.{n} = external global i8\n" for n in ("general", *_objects())),
                    "declare ptr @tlgrad.new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)\n"])


def _plan_of_self(slot: int) -> str:
    """From the start to ``trace``: the plan is there and takes this many arguments, none of them named.  What
    the slot holds is kept until the end, since a call from a check may put something else there."""
    return f"""entry:
  %found = alloca ptr, align 8
  %pslot = getelementptr i8, ptr %self, i64 {slot}
  %held = load ptr, ptr %pslot, align 8
  %empty = icmp eq ptr %held, null
  br i1 %empty, label %general, label %known
known:
  %pplan = getelementptr i8, ptr %held, i64 {_VAR_HEAD}
  %bytes = load ptr, ptr %pplan, align 8
  %plan = getelementptr i8, ptr %bytes, i64 {bytes.__basicsize__ - 1}
{_header()}  %named = icmp ne ptr %names, null
  %count = icmp ne i64 %n, %arguments
  %unlike = or i1 %named, %count
  br i1 %unlike, label %general, label %hold
hold:
  call void @Py_IncRef(ptr %held)
  br label %trace
"""


def _launched() -> str:
    """From ``make``: a new array, its address and the further words into the slots, the kernel."""
    words = _loop("words", "%further", "made", """  %pw = getelementptr i64, ptr %words_, i64 %i_words
  %w = load i64, ptr %pw, align 1
  %kw = add i64 %arrays, %i_words
  %pv = getelementptr i64, ptr %slots, i64 %kw
  store i64 %w, ptr %pv, align 8
  br label %words_next
""", "go")
    return f"""make:
  call void @Py_IncRef(ptr %descr)
  %rank32 = trunc i64 %rank to i32
  %out = call ptr @tlgrad.new_array(ptr @tlgrad.ndarray, ptr %descr, i32 %rank32, ptr %dims_, ptr null, ptr null,
                                    i32 0, ptr null)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %error, label %made
made:
  %pod = getelementptr i8, ptr %out, i64 {_HEAD}
  %od = load i64, ptr %pod, align 8
  %pos = getelementptr i64, ptr %slots, i64 %operands
  store i64 %od, ptr %pos, align 8
  {words}go:
  call void %kernel(ptr %slots, i64 0, i64 %lanes)
"""


def _tensor(data: int, aval: int, device: int) -> str:
    """After the kernel: the array as a tensor; ``error`` ends a call that has raised."""
    return f"""  %new = call ptr @PyType_GenericAlloc(ptr @tlgrad.Tensor, i64 0)
  %none = icmp eq ptr %new, null
  br i1 %none, label %no_tensor, label %fill
fill:
  call void @Py_IncRef(ptr %aval)
  call void @Py_IncRef(ptr @tlgrad.cpu)
  %n0 = getelementptr i8, ptr %new, i64 {data}
  store ptr %out, ptr %n0, align 8
  %n1 = getelementptr i8, ptr %new, i64 {aval}
  store ptr %aval, ptr %n1, align 8
  %n2 = getelementptr i8, ptr %new, i64 {device}
  store ptr @tlgrad.cpu, ptr %n2, align 8
  call void @Py_DecRef(ptr %held)
  ret ptr %new
no_tensor:
  call void @Py_DecRef(ptr %out)
  br label %error
error:
  call void @Py_DecRef(ptr %held)
  ret ptr null
"""


def _long_way() -> str:
    """``other`` and ``general``: the Python method with the same arguments, self before them."""
    stack = _loop("stack", "%all", "long", """  %pl = getelementptr ptr, ptr %args, i64 %i_stack
  %l = load ptr, ptr %pl, align 8
  %is = add i64 %i_stack, 1
  %pm = getelementptr ptr, ptr %list, i64 %is
  store ptr %l, ptr %pm, align 8
  br label %stack_next
""", "through")
    return f"""other:
  call void @Py_DecRef(ptr %held)
  br label %general
general:
  %no_names = icmp eq ptr %names, null
  br i1 %no_names, label %long, label %keywords
keywords:
  %pk = getelementptr i8, ptr %names, i64 {_VAR_HEAD - 8}
  %k = load i64, ptr %pk, align 8
  br label %long
long:
  %extra = phi i64 [ 0, %general ], [ %k, %keywords ]
  %all = add i64 %n, %extra
  %room = add i64 %all, 1
  %list = alloca ptr, i64 %room, align 16
  store ptr %self, ptr %list, align 8
  {stack}through:
  %positional = add i64 %n, 1
  %result = call ptr @PyObject_Vectorcall(ptr @tlgrad.general, ptr %list, i64 %positional, ptr %names)
  ret ptr %result
"""


def _objects() -> dict[str, Any]:
    """Python objects that the method names, by symbol."""
    return {"Tensor": Tensor, "cpu": "cpu", "eval": EVAL, "trace": _current, "order": _order,
            "ndarray": np.ndarray}


def _numpy_function(number: int) -> int:
    """The address of a function of NumPy's C API."""
    module = getattr(np, "_core", None) or np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(module._multiarray_umath._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + 8 * number).value


#: what the methods given away point to
_kept: list = []


def give_native_call(cls: type, slot: str):
    """Make the native method the ``__call__`` of a class, once.  `slot`: a slot of one of its bases, empty or
    (plan, ...).  The method that the class had is the long way."""
    with compiling:
        general = cls.__call__
        if isinstance(general, types.MethodDescriptorType):
            return
        owner = next(c for c in cls.__mro__ if slot in vars(c).get("__slots__", ()))
        symbols = {f"tlgrad.{n}": id(x) for n, x in {**_objects(), "general": general}.items()}
        symbols |= {n: ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p).value for n in _C_API}
        symbols["tlgrad.new_array"] = _numpy_function(_NEW_FROM_DESCR)
        add_symbols(symbols)
        address = build(_entry(slot_offset(owner, slot)), "tlgrad_call")
        definition = MethodDef(b"__call__", address, METH_FASTCALL_KEYWORDS, None)
        _kept.append((definition, general))
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
            ("PyDescr_NewMethod", ctypes.pythonapi))
        cls.__call__ = new(cls, ctypes.addressof(definition))


def call_plan(direct, result, avals, order: str | None, checks, consts) -> tuple:
    """(plan, what it points to).  `direct`: see `Plan.direct`; `result`: the aval of the result;
    `checks`: (kind, place, key, saved) with objects, or a number of bytes as the key of a field, and a
    tuple of the saved object or None for a null pointer; `consts`: captured tensors, the first operands."""
    kernel, offsets, words, lanes, order_of = direct
    descr, dims = result.dtype.storage, result.shape
    n = len(consts)
    sections = [
        [id(a) for a in avals],
        [w for kind, place, key, saved in checks
         for w in (kind, id(place), key if kind == FIELD else id(key), 0 if saved is None else id(saved[0]))],
        [w for k, offset in zip(order_of, offsets)
         for w in (k - n if k >= n else -1, id(consts[k]) if k < n else 0, offset)],
        [*dims], [*words]]
    starts, at = [], len(_HEADER)
    for section in sections:
        starts.append(at)
        at += len(section)
    header = [kernel, len(avals), len(offsets), len(words), len(checks), lanes, len(dims), id(descr), id(result),
              id(order) if order else 0, *starts]
    flat = [*header, *[w for section in sections for w in section]]
    return struct.pack(f"={at}q", *flat), descr, result, order, list(avals), list(checks), list(consts)
