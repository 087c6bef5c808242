"""Bytecode -> control flow graph of small statements.  All private Numba API is in this file.

Numba's `Interpreter` translates bytecode into blocks of assignments; nothing else of Numba's
front end is used.  Statements are copied into plain `Node`s, so the rest of the front end does
not know Numba.  Flow analysis (dominators, loops, liveness) is in `flow`.

    graph : function -> Graph | str        the str says why Numba cannot read the function
"""
from __future__ import annotations

import dis
import functools
import sys
import threading
import types
import warnings

from tlgrad.frontend.flow import analyse, liveness

#: (Python, Numba) versions whose bytecode and private API the test suite has passed on
TESTED = {((3, 11), "0.68"), ((3, 11), "0.67"), ((3, 11), "0.66")}
#: Numba numbers bytecode from here
FIXED_OFFSET = 2
UNREADABLE = ("BEFORE_WITH", "SETUP_WITH", "BEFORE_ASYNC_WITH", "ASYNC_GEN_WRAP", "GET_AWAITABLE")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


class _Undefined:
    """The value of a variable that no path has assigned."""

    def __repr__(self):
        return "undefined"


UNDEF = _Undefined()


class Ref(str):
    """The name of a variable, where a statement reads or writes it."""

    __slots__ = ()


class Node:
    """A statement or expression: `kind`, and the fields that Numba gives it."""

    def __init__(self, kind: str, fields: dict, loc: int | None = None):
        self.kind, self.loc = kind, loc
        self.__dict__.update(fields)

    def __repr__(self):
        return f"{self.kind}({', '.join(f'{k}={v}' for k, v in self.__dict__.items() if k != 'kind')})"


_CONVERSIONS = {0: str, 1: str, 2: repr, 3: ascii}


@functools.cache
def _numba():
    """(translate, identity of a function, ir module); imports Numba on first use."""
    import numba
    from numba.core import bytecode, byteflow, interpreter, ir
    pair = (sys.version_info[:2], numba.__version__.rsplit(".", 1)[0])
    if pair not in TESTED:
        warnings.warn(f"tlgrad has not been tested on Python {pair[0]} with Numba {pair[1]}: scalar functions are "
                      "run on traced values, branch by branch, instead of being read", stacklevel=2)
        return None, None, ir
    front, walk = _front_class(interpreter, ir), _walk_class(byteflow)

    def translate(identity):
        with _LOCK:                 # Numba names the class of its walk in a module variable
            plain, byteflow.TraceRunner = byteflow.TraceRunner, walk
            try:
                return front(identity).interpret(bytecode.ByteCode(func_id=identity)).blocks
            finally:
                byteflow.TraceRunner = plain
    return translate, bytecode.FunctionIdentity.from_function, ir


_LOCK = threading.Lock()


def _front_class(interpreter, ir):
    class Front(interpreter.Interpreter):
        """Numba's translation, with byte offsets kept and some of its gaps closed."""

        def _dispatch(self, inst, kws):
            self.loc = ir.Loc(self.loc.filename, inst.lineno, col=inst.offset)
            return super()._dispatch(inst, kws)

        def _remove_unused_temporaries(self):
            """Left out: it drops a temporary that `(y := e) > 2` still reads."""

        def op_LOAD_CLOSURE(self, inst, res):
            """An inner function that names itself: its cell is filled by make_function."""
            try:
                super().op_LOAD_CLOSURE(inst, res)
            except NotImplementedError:
                self.store(ir.Const(UNDEF, loc=self.loc), res)

        def call(self, f, target, args, res):
            """res = f(*args), with f a Python function held in `target`."""
            self.store(ir.Global(f.__name__, f, loc=self.loc), target)
            self.store(ir.Expr.call(self.get(target), tuple(map(self.get, args)), (), loc=self.loc), res)

        def op_FORMAT_VALUE(self, inst, value, res, strvar, spec=None):
            """f"{value!r:spec}": also with a format."""
            f = format if spec else _CONVERSIONS[inst.arg & 3]
            self.call(f, strvar, (value, spec) if spec else (value,), res)

        def op_IMPORT_NAME(self, inst, level, names, temps, res):
            """import a: a call of __import__(name, globals, locals, names, level)."""
            f, name, none = temps
            self.store(ir.Const(self.code_names[inst.arg], loc=self.loc), name)
            self.store(ir.Const(None, loc=self.loc), none)
            self.call(__import__, f, (name, none, none, names, level), res)

        def op_IMPORT_FROM(self, inst, module, res):
            """from module import a."""
            self.store(ir.Expr.getattr(self.get(module), self.code_names[inst.arg], loc=self.loc), res)
    return Front


def _walk_class(byteflow):
    class Walk(byteflow.TraceRunner):
        """Numba's walk over the bytecode, with formats of f-strings and imports."""

        def op_FORMAT_VALUE(self, state, inst):
            spec = {"spec": state.pop()} if inst.arg & 4 else {}
            value, strvar, res = state.pop(), state.make_temp(), state.make_temp()
            state.append(inst, value=value, res=res, strvar=strvar, **spec)
            state.push(res)

        def op_IMPORT_NAME(self, state, inst):
            names, level, res = state.pop(), state.pop(), state.make_temp()
            state.append(inst, level=level, names=names, temps=[state.make_temp() for _ in range(3)], res=res)
            state.push(res)

        def op_IMPORT_FROM(self, state, inst):
            module, res = state.pop(), state.make_temp()
            state.append(inst, module=module, res=res)
            state.push(module)
            state.push(res)
    return Walk


def _clean(x, ir):
    """Numba's variables as names, in whatever they are nested."""
    if isinstance(x, ir.Var):
        return Ref(x.name)
    if isinstance(x, (list, tuple)):
        return tuple(_clean(e, ir) for e in x)
    if isinstance(x, ir.Inst):
        return _node(x, ir)
    return x


def _node(x, ir) -> Node:
    kind = type(x).__name__
    if isinstance(x, ir.Expr):
        fields = {"op": x.op, **{k: _clean(v, ir) for k, v in x._kws.items()}}
    else:
        fields = {k: _clean(v, ir) for k, v in vars(x).items() if k not in ("loc", "is_terminator")}
    col = getattr(x.loc, "col", None)
    return Node(kind, fields, None if col is None else col - FIXED_OFFSET)


def _value(x, ir):
    """The right-hand side of an assignment."""
    if isinstance(x, ir.Var):
        return Node("Var", {"name": x.name})
    if isinstance(x, (ir.Const, ir.Global, ir.FreeVar, ir.Arg)):
        return Node(type(x).__name__, {k: v for k, v in vars(x).items() if k != "loc"})
    return _node(x, ir)


def _statement(s, ir) -> Node:
    col = getattr(s.loc, "col", None)
    loc = None if col is None else col - FIXED_OFFSET
    if isinstance(s, ir.Assign):
        return Node("Assign", {"target": Ref(s.target.name), "value": _value(s.value, ir)}, loc)
    node = _node(s, ir)
    node.loc = loc
    return node


def _names(x, into: set):
    if type(x) is Ref:
        into.add(x)
    elif type(x) is tuple:
        for e in x:
            _names(e, into)
    elif type(x) is Node:
        if x.kind == "Var":
            into.add(x.name)
        else:
            for e in x.__dict__.values():
                _names(e, into)


def guards(s: Node) -> bool:
    """True for the check that follows a statement inside try."""
    return s.kind == "Assign" and s.value.kind == "Global" and s.value.name == "exception_check"


def reads(s: Node) -> set:
    """Names that a statement reads."""
    found: set = set()
    if s.kind == "Assign":
        _names(s.value, found)
    else:
        _names(s, found)
    return found


class Graph:
    """The control flow graph of a function.

    blocks: label -> [Node];  loops: header -> labels;  joins: label -> join labels that it
    dominates;  after: header -> labels outside that the loop leads to;  live: label -> names;
    carried: header -> names;  defs: name -> its only right-hand side (None: several);  tries: it has
    a try statement.
    """

    def __init__(self, func):
        translate, identify, ir = _numba()
        if translate is None:
            raise NotImplementedError("this pair of Python and Numba has not been tested")
        _check_opcodes(func.__code__)
        identity = identify(func)
        _check_captures(func.__code__, identity.arg_names)
        raw = translate(identity)
        self.argnames, self.generator = list(identity.arg_names), identity.is_generator
        flow = analyse({b: list(blk.terminator.get_targets()) for b, blk in raw.items()})
        self.order, self.loops, self.joins, self.after = flow.order, flow.loops, flow.joins, flow.after
        self.entry = min(raw)
        self.blocks = {b: [_statement(s, ir) for s in raw[b].body] for b in flow.order}
        self.tries = any(guards(s) for body in self.blocks.values() for s in body)
        self.defs: dict = {}
        uses, assigned = {}, {}
        for b, body in self.blocks.items():
            uses[b], assigned[b] = set(), set()
            for s in body:
                uses[b] |= reads(s) - assigned[b]
                if s.kind == "Assign":
                    self.defs[s.target] = None if s.target in self.defs else s.value
                    assigned[b].add(s.target)
        self.live = liveness(flow, uses, assigned)
        self.carried = {h: sorted(self.live[h] & set().union(*[assigned[b] for b in inside]))
                        for h, inside in flow.loops.items()}


def _inner_codes(code):
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield c
            yield from _inner_codes(c)


def _check_opcodes(code):
    if any(i.opname in UNREADABLE for i in dis.get_instructions(code)):
        raise NotImplementedError("it uses `with` or `await`")


def _check_captures(code, argnames):
    """Numba captures values where Python captures variables: only single assignments agree."""
    stores = [i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")]
    for c in _inner_codes(code):
        captured = set(c.co_freevars) & set(code.co_cellvars)
        for name in captured if c.co_name not in _COMPREHENSIONS else ():
            if stores.count(name) + (name in argnames) > 1:
                raise NotImplementedError(f"its inner function `{c.co_name}` captures `{name}`, which is "
                                          "assigned more than once")
        for i in dis.get_instructions(c):
            if i.opname == "STORE_DEREF" and i.argval in c.co_freevars:
                raise NotImplementedError(f"it assigns `nonlocal {i.argval}`")


_GRAPHS: dict[types.CodeType, "Graph | str"] = {}


def graph(func) -> "Graph | str":
    """The graph of a Python function, cached by code object; a str says why it cannot be read.

    Numba's front end fails with many exception types, so all are caught here, and only here.
    """
    found = _GRAPHS.get(func.__code__)
    if found is None:
        try:
            found = Graph(func)
        except Exception as error:      # noqa: BLE001
            found = (str(error).strip() or type(error).__name__).split("\n")[0]
        if len(_GRAPHS) > 4096:
            _GRAPHS.clear()
        _GRAPHS[func.__code__] = found
    return found
