"""Bytecode -> blocks of statements.  All private Numba API is in this file.

Numba's walk over the bytecode and its `Interpreter` are used, and nothing else of its front end: no
rewrites but those that undo what the compiler of Python does, no analysis.  `opcodes` adds the
instructions that it lacks.  Statements are copied into plain `Node`s, so the rest of the front end
does not know Numba.

    reader : () -> (function -> Code) | None       None: this Numba has not been tested
"""
from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
import warnings
from typing import Callable, NamedTuple

from tlgrad.frontend.flow import backbone
from tlgrad.frontend.node import UNDEF, Node, Ref
from tlgrad.frontend.opcodes import Meanings, StackEffects

#: (Python, Numba) versions whose bytecode and private API the test suite has passed on
TESTED = {((3, 11), "0.68"), ((3, 11), "0.67"), ((3, 11), "0.66")}
#: Numba numbers bytecode from here
FIXED_OFFSET = 2
#: what Numba's rewrites of lists into tuples and of dicts into keywords look for
_UNPACKING = {dis.opmap[name] for name in (
    "LIST_TO_TUPLE", "CALL_FUNCTION_EX", "DICT_MERGE", "DICT_UPDATE", "MAP_ADD") if name in dis.opmap}


class Code(NamedTuple):
    """A function as Numba reads it: names of its arguments, label -> statements, label -> next labels."""
    argnames: list[str]
    blocks: dict[int, list[Node]]
    succ: dict[int, list[int]]


@functools.cache
def reader() -> Callable | None:
    """What reads functions; imports Numba on first use.  None, with a warning, for an unknown pair."""
    import numba
    from numba.core import bytecode, byteflow, interpreter, ir
    pair = (sys.version_info[:2], numba.__version__.rsplit(".", 1)[0])
    if pair not in TESTED:
        warnings.warn(f"tlgrad has not been tested on Python {pair[0]} with Numba {pair[1]}: scalar functions are "
                      "run on traced values, branch by branch, instead of being read", stacklevel=2)
        return None
    front = _front_class(interpreter, ir, _flow_class(byteflow, _walk_class(byteflow)))
    instructions, copy = _instructions_class(bytecode), _Copy(ir)

    def read(func) -> Code:
        code, argnames = func.__code__, argument_names(func.__code__)
        identity = types.SimpleNamespace(
            func=func, code=code, filename=code.co_filename, firstlineno=code.co_firstlineno,
            func_qualname=func.__qualname__, arg_count=len(argnames), arg_names=argnames,
            is_generator=bool(code.co_flags & inspect.CO_GENERATOR))
        raw = front(identity).interpret(instructions(identity)).blocks
        return Code(argnames, {b: [copy.statement(s) for s in block.body] for b, block in raw.items()},
                    {b: list(block.terminator.get_targets()) for b, block in raw.items()})
    return read


def argument_names(code) -> list[str]:
    """The parameters of a function in the order of its signature; `implicit0` for that of a comprehension."""
    n, more = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    starred = list(code.co_varnames[more:more + bool(code.co_flags & inspect.CO_VARARGS)])
    last = more + len(starred)
    keywords = code.co_varnames[last:last + bool(code.co_flags & inspect.CO_VARKEYWORDS)]
    names = [*code.co_varnames[:n], *starred, *code.co_varnames[n:more], *keywords]
    return ["implicit" + name[1:] if name[0] == "." else name for name in names]


# ---- Numba's classes, with what they lack ----

def _instructions_class(bytecode):
    class Instructions(bytecode.ByteCode):
        """The instructions of a function by offset, without the caches between them."""

        def __init__(self, identity):
            code = self.code = identity.code
            self.func_id, self.table = identity, {}
            for name in ("co_names", "co_varnames", "co_consts", "co_cellvars", "co_freevars"):
                setattr(self, name, getattr(code, name))
            last = None
            for offset, op, arg, after in bytecode._patched_opargs(bytecode._unpack_opargs(code.co_code)):
                if dis.opname[op] == "CACHE":
                    last.next = after
                    continue
                last = self.table[offset] = bytecode.ByteCodeInst(offset, op, arg, after)
                last.lineno = code.co_firstlineno
            self.labels = frozenset(i.get_jump_target() for i in self.table.values() if i.is_jump) | {0}
            self.exception_entries = tuple(map(self.fixup_eh, dis._parse_exception_table(code)))
    return Instructions


def _flow_class(byteflow, walk):
    class Flow(byteflow.Flow):
        """Numba's walk over the blocks of a function, each once."""

        def run(self):
            runner = walk(debug_filename=self._bytecode.func_id.filename)
            runner.pending.append(byteflow.State(bytecode=self._bytecode, pc=0, nstack=0, blockstack=()))
            entered: dict = {}
            while runner.pending:
                state = runner.pending.popleft()
                if state in runner.finished:
                    continue
                if entered.setdefault(state.pc_initial, state) is not state:
                    raise NotImplementedError("it comes to one place with stacks of different depths")
                self.run_block(runner, state)
                runner.finished.add(state)
                runner.pending.extend(state.get_outgoing_states())
            if any(state._phis for state in runner.finished):
                self._prune_phis(runner)
            states = sorted(runner.finished, key=lambda state: state.pc_initial)
            self.succ = {s.pc_initial: [edge.pc for edge in s.outgoing_edges] for s in states}
            self.block_infos = {s.pc_initial: byteflow.adapt_state_infos(s) for s in states}

        def run_block(self, runner, state):
            tries, table, labels = self._bytecode.exception_entries, self._bytecode.table, self._bytecode.labels
            while not state._terminated:
                runner.dispatch(state)
                if state._terminated or tries and self._run_handle_exception(runner, state):
                    return
                if not tries:
                    state._pc = table[state._pc].next
                if state._pc in labels or table[state._pc].opname in byteflow.NEW_BLOCKERS:
                    state.split_new_block()
    return Flow


def _walk_class(byteflow):
    class Walk(StackEffects, byteflow.TraceRunner):
        """Numba's walk over the instructions of a block, with those that it lacks."""

        def dispatch(self, state):
            if state._blockstack:
                return super().dispatch(state)
            inst = state._bytecode.table[state._pc]
            method = getattr(self, "op_" + inst.opname, None)
            if method is None:
                raise NotImplementedError(f"Use of unsupported opcode ({inst.opname}) found")
            method(state, inst)
    return Walk


class _Blocks:
    """What Numba's interpreter asks of its control flow graph."""

    def __init__(self, flow):
        self.succ, self.blocks = flow.succ, {b: types.SimpleNamespace(offset=b) for b in flow.block_infos}
        self.graph, self.backbone = self, backbone(flow.succ)

    def nodes(self):
        return self.succ

    def predecessors(self, label):
        return ((a, None) for a, after in self.succ.items() if label in after)


def _front_class(interpreter, ir, flow_class):
    class Front(Meanings, interpreter.Interpreter):
        """Numba's translation, with byte offsets kept and some of its gaps closed."""

        def interpret(self, instructions):
            self.bytecode, flow = instructions, flow_class(instructions)
            flow.run()
            self.dfa, self.cfa = types.SimpleNamespace(infos=flow.block_infos), _Blocks(flow)
            self.scopes, self.syntax_blocks = [ir.Scope(parent=None, loc=self.loc)], []
            self.current_block = self.current_block_offset = self.dfainfo = None
            for label in flow.block_infos:
                self._start_new_block(label)
                if not label:
                    self.init_first_block()
                for offset, operands in self.dfainfo.insts:
                    inst = instructions.table[offset]
                    self.loc = ir.Loc(self.loc.filename, inst.lineno, col=offset)
                    getattr(self, "op_" + inst.opname)(inst, **operands)
                self._end_current_block()
            if instructions.exception_entries:
                self._end_try_blocks()
                self._legalize_exception_vars()
            return self.rewritten() if _UNPACKING & set(instructions.code.co_code[::2]) else self

        def rewritten(self):
            """Numba's rewrites of what Python's compiler makes of star-calls and large displays."""
            made = ir.FunctionIR(self.blocks, self.is_generator, self.func_id, self.first_loc, self.definitions,
                                 self.arg_count, self.arg_names)
            return self.post_process([interpreter.peep_hole_list_to_tuple,
                                      interpreter.peep_hole_call_function_ex_to_call_function_kw,
                                      interpreter.peep_hole_fuse_dict_add_updates], made)

        def _remove_unused_temporaries(self):
            """Left out: it drops a temporary that `(y := e) > 2` still reads."""

        def op_LOAD_CLOSURE(self, inst, res):
            """An inner function that names itself: its cell is filled by make_function."""
            try:
                super().op_LOAD_CLOSURE(inst, res)
            except NotImplementedError:
                self.constant(UNDEF, res)

        def call(self, f, target, args, res):
            """res = f(*args), with f a Python function held in `target`."""
            self.store(ir.Global("$" + getattr(f, "__name__", "partial"), f, loc=self.loc), target)
            self.store(ir.Expr.call(self.get(target), tuple(map(self.get, args)), (), loc=self.loc), res)

        def constant(self, value, res):
            """res = value"""
            self.store(ir.Const(value, loc=self.loc), res)

        def attribute(self, value, name, res):
            """res = value.name"""
            self.store(ir.Expr.getattr(self.get(value), name, loc=self.loc), res)

        def item(self, value, k, res):
            """res = value[k], with k a number"""
            self.store(ir.Expr.static_getitem(self.get(value), k, index_var=None, loc=self.loc), res)
    return Front


# ---- statements ----

class _Copy:
    """Copies Numba's statements into nodes."""

    def __init__(self, ir):
        self.ir, self.found = ir, set()
        self.plain = (ir.Const, ir.Global, ir.FreeVar, ir.Arg)

    def statement(self, s) -> Node:
        """A statement, with the variables that it reads."""
        self.found = set()
        if type(s) is self.ir.Assign:
            node = Node("Assign", {"target": Ref(s.target.name), "value": self.value(s.value)})
        else:
            node = self.node(s)
        node.reads = self.found
        col = getattr(s.loc, "col", None)
        node.loc = None if col is None else col - FIXED_OFFSET
        return node

    def value(self, x) -> Node:
        """The right-hand side of an assignment."""
        if type(x) is self.ir.Var:
            self.found.add(x.name)
            return Node("Var", {"name": x.name})
        if isinstance(x, self.plain):
            return Node(type(x).__name__, {k: v for k, v in x.__dict__.items() if k != "loc"})
        return self.node(x)

    def node(self, x) -> Node:
        if type(x) is self.ir.Expr:
            fields = {k: self.clean(v) for k, v in x._kws.items()}
            fields["op"] = x.op
        else:
            fields = {k: self.clean(v) for k, v in x.__dict__.items() if k not in ("loc", "is_terminator")}
        return Node(type(x).__name__, fields)

    def clean(self, x):
        """Numba's variables as names, in whatever they are nested."""
        if type(x) is self.ir.Var:
            self.found.add(x.name)
            return Ref(x.name)
        if isinstance(x, (list, tuple)):
            return tuple(map(self.clean, x))
        return self.node(x) if isinstance(x, self.ir.Inst) else x
