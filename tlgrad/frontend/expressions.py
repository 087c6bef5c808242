"""Statements and expressions: concrete operands run as Python, traced ones are recorded."""
from __future__ import annotations

import builtins
import functools
import operator
import types

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.errors import TlgradError
from tlgrad.frontend import meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.read import Row, read_entry
from tlgrad.frontend.state import CONTROL, Emitted, NeedConcrete, Split
from tlgrad.frontend.values import UNDEF, Iter, Lazy, Maybe, Range, scalar, traced
from tlgrad.ops import logic as lo

#: a tuple or list of more numbers than this is looped over as an array
LONG = 32
_TRY_REGIONS = ("mark_try_block", "end_try_block")


class Expressions:
    """Mixin of the interpreter: one statement at a time."""

    # -- statements --

    def statement(self, fr, s, env):
        """Run an assignment or a store."""
        method = getattr(self, "do_" + s.kind, None)
        if method is None:
            self.fail(f"the statement {s.kind} is not supported")
        method(fr, s, env)

    def do_Assign(self, fr, s, env):
        v = s.value
        if v.kind == "Expr":
            env[s.target] = self.expr(fr, v, env)
        elif v.kind == "Var":
            env[s.target] = self.lookup(env, v.name)
        elif v.kind == "Const":
            env[s.target] = v.value
        elif v.kind == "Arg":
            env[s.target] = env["$args"][v.index]
        elif v.kind in ("Global", "FreeVar"):
            env[s.target] = self.outside(fr, v)
        elif v.kind == "Yield":
            env[s.target] = fr.sink(env[v.value])
        else:
            self.fail(f"the expression {v.kind} is not supported")

    def do_TryRaise(self, fr, s, env):
        if s.kind != "TryRaise" or s.exception is not None:
            env["$exc"] = code = self.exception(s, env)
            if not isinstance(code, Symbol):
                env.update(self.message_values(code))
    do_StaticTryRaise = do_DynamicTryRaise = do_TryRaise

    def do_SetItem(self, fr, s, env):
        self.store(env[s.target], env[s.index], env[s.value])

    def do_StaticSetItem(self, fr, s, env):
        self.store(env[s.target], s.index, env[s.value])

    def do_StoreMap(self, fr, s, env):
        self.store(env[s.dct], env[s.key], env[s.value])

    def store(self, o, key, value):
        """o[key] = value, where o was made inside."""
        self.mutable(o)
        self.host(operator.setitem, o, self.concrete(key, "an index of an assignment"), value)

    def do_DelItem(self, fr, s, env):
        self.mutable(env[s.target])
        self.host(operator.delitem, env[s.target], env[s.index])

    def do_SetAttr(self, fr, s, env):
        self.mutable(env[s.target])
        setattr(env[s.target], s.attr, env[s.value])

    def do_Del(self, fr, s, env):
        pass
    do_PopBlock = do_Del

    # -- names --

    def lookup(self, env, name):
        """A variable; reading it is an error for the entries that did not assign it."""
        v = env.get(name, UNDEF)
        if type(v) is Maybe and name[0] != "$":
            if v[0] is not True:
                self.note(self.unary(operator.not_, v[0]), self.unbound(name))
            v = env[name] = v[1]
        if v is UNDEF and name[0] != "$":
            self.note(True, self.unbound(name))
        return v

    def unbound(self, name):
        return self.error(UnboundLocalError, (f"cannot access local variable '{name.split('.')[0]}' "
                                              "where it is not associated with a value",))

    def outside(self, fr, v):
        """A global or captured variable, looked up now."""
        if v.kind == "FreeVar":
            place = fr.func.__closure__[fr.func.__code__.co_freevars.index(v.name)]
            try:
                found = place.cell_contents
            except ValueError:
                self.fail(f"`{v.name}` is read before it is assigned")
            return self.admit(found, place, v.name)
        found = fr.func.__globals__.get(v.name, getattr(builtins, v.name, UNDEF))
        if found is UNDEF:
            if v.name.startswith(("$", "mark", "end", "exc")):
                return v.value
            self.fail(f"name `{v.name}` is not defined")
        return self.admit(found, fr.func.__globals__, v.name)

    def admit(self, v, place, name):
        """What a value read from outside becomes: floats and arrays are operands of the program."""
        if isinstance(v, Symbol) and v.trace is self.trace:
            return v
        if isinstance(v, (Value, np.ndarray)):
            return self.capture_array(v)
        if type(v) is float and self.lift:
            return self.lift_number(v, place, name)
        return v

    def note(self, condition, code, marks=None):
        """The entries where `condition` holds raise; the first reason counts."""
        if condition is False:
            return
        marks = marks if marks is not None else {} if isinstance(code, Symbol) else self.message_values(code)
        if self.raised is None:
            self.raised = condition, code, marks
            return
        first, old, old_marks = self.raised
        self.raised = (self.either(operator.or_, first, condition),
                       self.select(first, old, code), {**marks, **old_marks})

    # -- checks --

    def mutable(self, o):
        """Only what was made inside, and is not an alias, may change."""
        if id(o) not in self.heap:
            self.fail(f"this changes a {type(o).__name__} that was made outside the function",
                      "return the value instead")
        if id(o) in self.frozen:
            self.fail(f"this changes a {type(o).__name__} that was chosen by a traced condition",
                      "build it after the condition")

    def concrete(self, v, what):
        """`v`, which must not depend on an input."""
        if traced(v):
            self.fail(f"{what} must be a Python number, but it is only known when the program runs",
                      "index a tuple, list or array of numbers, or restructure", NeedConcrete)
        return v

    def need_number(self, symbol):
        """Python asked a traced value for its number."""
        self.fail("a Python number is needed here, but the value is only known when the program runs",
                  "use the traced value itself, a math function, or read a table by index", NeedConcrete)

    def decide(self, symbol):
        """bool(symbol) in host code: the answer of this replay, or a split of the statement."""
        if self.cursor < len(self.decisions):
            self.cursor += 1
            return self.decisions[self.cursor - 1]
        if self.forbid:
            raise Emitted
        raise Split(meaning.truth(symbol))

    def host(self, fn, *args, **kwargs):
        """Run Python itself; an exception becomes the error of the entries that come here."""
        try:
            return fn(*args, **kwargs)
        except CONTROL:
            raise
        except (TypeError, AttributeError, NameError) as e:
            if isinstance(e, TlgradError):
                raise
            self.fail(f"{type(e).__name__}: {e}")
        except Exception as e:          # noqa: BLE001
            self.note(True, self.error(type(e), e.args))
            return UNDEF

    # -- expressions --

    def expr(self, fr, e, env):
        """The value of an expression."""
        method = _EXPRESSIONS.get(e.op)
        if method is None:
            self.fail(f"the operation {e.op} is not supported")
        return method(self, fr, e, env, functools.partial(self.lookup, env))

    def ex_call(self, fr, e, env, get):
        f, args = get(e.func), [get(a) for a in e.args] + (list(get(e.vararg)) if e.vararg else [])
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
        return {self.concrete(get(i), "a set element") for i in e.items}

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
            return self.admit(self.host(getattr, o, name), o, name)
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
