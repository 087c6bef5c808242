"""Expressions: concrete operands run as Python, traced ones are recorded."""
from __future__ import annotations

import functools
import operator
import types

from tlgrad.core.trace import Value
from tlgrad.frontend import meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.read import Row, read_entry
from tlgrad.frontend.state import NeedConcrete
from tlgrad.frontend.values import UNDEF, Iter, Lazy, Range, scalar, traced
from tlgrad.ops import logic as lo

#: modules whose numbers never change
_CONSTANTS = ("math", "cmath", "numpy")
#: a tuple or list of more numbers than this is looped over as an array
LONG = 32
_TRY_REGIONS = ("mark_try_block", "end_try_block")


class Expressions:
    """Mixin of the interpreter: one expression at a time."""

    # -- expressions --

    def expr(self, fr, e, env):
        """The value of an expression."""
        method = _EXPRESSIONS.get(e.op)
        if method is None:
            self.fail(f"the operation {e.op} is not supported")
        return method(self, fr, e, env, functools.partial(self.lookup, env))

    def ex_call(self, fr, e, env, get):
        f, args = get(e.func), [get(a) for a in e.args] + (list(get(e.vararg)) if e.vararg else [])
        if f is bool and len(args) == 1 and meaning.is_bool(args[0]):
            return self.truth(args[0])
        kwargs = {k: get(v) for k, v in e.kws}
        if e.varkwarg:
            kwargs |= dict(get(e.varkwarg))
        name = getattr(f, "__name__", "")
        if name == "exception_check":
            return env.pop("$raised", False)
        if name in _TRY_REGIONS:
            return None
        if name == "exception_match":
            return self.matches(env["$exc"], args[1])
        return self.call(f, args, kwargs)

    def matches(self, exc, cls):
        """except cls: the pending exception is one of its codes."""
        if not isinstance(exc, Symbol):
            return issubclass(self.errors[exc].cls, cls)
        codes = [n for n, entry in enumerate(self.errors) if issubclass(entry.cls, cls)]
        return functools.reduce(lambda a, n: self.either(operator.or_, a, lo.eq(exc, n)), codes, False)

    def ex_binop(self, fr, e, env, get):
        return self.binop(e.fn, get(e.lhs), get(e.rhs))

    def ex_inplace_binop(self, fr, e, env, get):
        a = get(e.lhs)
        if isinstance(a, list):
            self.mutable(a)
        return self.binop(meaning.IN_PLACE.get(e.fn, e.fn) if scalar(a) else e.fn, a, get(e.rhs))

    def ex_unary(self, fr, e, env, get):
        return self.unary(e.fn, get(e.value))

    def ex_value(self, fr, e, env, get):
        return get(e.value)

    def ex_build_tuple(self, fr, e, env, get):
        return tuple(get(i) for i in e.items)

    def ex_build_list(self, fr, e, env, get):
        return self.own([get(i) for i in e.items])

    def ex_build_map(self, fr, e, env, get):
        return self.own({self.concrete(get(k), "a dict key"): get(v) for k, v in e.items})

    def ex_build_set(self, fr, e, env, get):
        return self.own({self.concrete(get(i), "a set element") for i in e.items})

    def ex_getitem(self, fr, e, env, get):
        return self.getitem(get(e.value), e.index if e.op == "static_getitem" else get(e.index))

    def ex_exhaust_iter(self, fr, e, env, get):
        found = tuple(self.items(get(e.value)))
        if len(found) != e.count:
            self.fail(f"cannot unpack {len(found)} values into {e.count}")
        return found

    def ex_getattr(self, fr, e, env, get):
        return self.getattr(get(e.value), e.attr)

    def ex_getiter(self, fr, e, env, get):
        v = get(e.value)
        if isinstance(v, Iter):
            return v
        if isinstance(v, (range, Range)):
            return self.own(Iter(v.start, v.stop, self.concrete(v.step, "the step of range")))
        if isinstance(v, Symbol) and v.aval.shape or isinstance(v, Row):
            return self.own(Iter(0, v.shape[0], 1, table=v))
        items = self.items(v)
        table = self.table(v) if len(items) > LONG and isinstance(v, (tuple, list)) \
            and all(map(scalar, v)) and not traced(v) else None
        return self.own(Iter(0, len(items), 1, items, table))

    def ex_iternext(self, fr, e, env, get):
        it = get(e.value)
        position, mode = it.state
        if mode == "roll":
            at = position if it.step == 1 else self.binop(operator.mul, position, it.step)
            plain = not isinstance(it.start, Symbol) and it.start == 0
            at = at if plain else self.binop(operator.add, it.start, at)
            return (at if it.table is None else self.getitem(it.table, at)), True
        if mode == "done":
            return UNDEF, False
        if traced(it.stop) or traced(it.start):
            self.fail("`range` of a traced value in a loop that has to be unrolled", "", NeedConcrete)
        if position >= it.count():
            it.state[1] = "done"
            return UNDEF, False
        it.state[0] = position + 1
        if it.items is not None:
            return it.items[position], True
        at = it.start + position * it.step
        return (at if it.table is None else self.getitem(it.table, at)), True

    def ex_pair_first(self, fr, e, env, get):
        return get(e.value)[0]

    def ex_pair_second(self, fr, e, env, get):
        return get(e.value)[1]

    def ex_make_function(self, fr, e, env, get):
        code = e.code if isinstance(e.code, types.CodeType) else get(e.code)
        defaults = get(e.defaults) if isinstance(e.defaults, str) else e.defaults
        cells = tuple(types.CellType(c) for c in (get(e.closure) if e.closure else ()))
        fn = types.FunctionType(code, fr.func.__globals__, code.co_name, defaults, cells)
        for name, cell in zip(code.co_freevars, cells):
            if cell.cell_contents is UNDEF:
                if name != code.co_name:
                    self.fail(f"`{code.co_name}` captures `{name}` before it is assigned")
                cell.cell_contents = fn
        return fn

    def ex_undefined(self, fr, e, env, get):
        return UNDEF

    def getattr(self, o, name):
        """An attribute; properties of user classes are calls."""
        if isinstance(o, Symbol) and not hasattr(o, name):
            self.fail(f"a traced number has no attribute `{name}`")
        if isinstance(o, types.ModuleType):
            found = self.host(getattr, o, name)
            return found if o.__name__ in _CONSTANTS else self.admit(found, o, name)
        p = getattr(type(o), name, None)
        if isinstance(p, property) and isinstance(p.fget, types.FunctionType) and not isinstance(o, Value):
            return self.call(p.fget, [o], {})
        found = self.host(getattr, o, name)
        return found if id(o) in self.heap else self.admit(found, o, name)

    def getitem(self, o, key):
        """o[key], where key may be traced for arrays and for sequences of numbers."""
        if isinstance(o, Row):
            return o[key]
        if isinstance(o, Symbol):
            return read_entry(self, o, key)
        if not traced(key):
            m = getattr(type(o), "__getitem__", None)
            return self.call(m, [o, key], {}) if isinstance(m, types.FunctionType) else \
                self.host(operator.getitem, o, key)
        if isinstance(o, (tuple, list)) and o and all(map(scalar, o)) and not traced(o) \
                and isinstance(key, Symbol) and key.dtype.kind in "iub":
            return read_entry(self, self.table(o), key)
        if isinstance(o, dict) and isinstance(key, Symbol) and meaning.is_bool(key):
            return o[self.decide(key)]
        self.concrete(key, f"the index of a {type(o).__name__}")

    def items(self, v):
        """The entries of something iterable, as a list."""
        if isinstance(v, Lazy):
            return list(self.consume(v, list, None))
        if isinstance(v, Iter):
            if v.items is None and traced(v.stop):
                self.fail("a traced range cannot be turned into a sequence", "", NeedConcrete)
            position, v.state[:] = v.state[0], [v.count(), "done"]
            if v.items is not None:
                return list(v.items[position:])
            places = range(v.start, v.stop, v.step)[position:]
            return list(places) if v.table is None else [self.getitem(v.table, k) for k in places]
        if isinstance(v, Range):
            self.fail("a range of traced length cannot be turned into a sequence", "loop over it", NeedConcrete)
        if isinstance(v, Symbol):
            if not v.aval.shape:
                self.fail("a traced number is not iterable")
            return [read_entry(self, v, k) for k in range(v.aval.shape[0])]
        return list(self.host(iter, v))


_EXPRESSIONS = {name: getattr(Expressions, "ex_" + method) for name, method in {
    "call": "call", "binop": "binop", "inplace_binop": "inplace_binop", "unary": "unary", "cast": "value",
    "build_tuple": "build_tuple", "build_list": "build_list", "build_map": "build_map", "build_set": "build_set",
    "getitem": "getitem", "static_getitem": "getitem", "exhaust_iter": "exhaust_iter", "getattr": "getattr",
    "getiter": "getiter", "iternext": "iternext", "pair_first": "pair_first", "pair_second": "pair_second",
    "make_function": "make_function", "undef": "undefined", "null": "undefined"}.items()}
