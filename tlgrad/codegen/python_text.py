"""Kernel IR as plain Python for `numba.njit`: loops over entries, one statement an operation.

    kernel -> source of ``def kernel(in0, ..., out0, ..., number0, ...)``

The arrays have the rank of the kernel (an operand that repeats is a view with stride 0), tables their
own; numbers are NumPy scalars, so no constant is untyped.  A 16-bit float is computed as the binary32
number it is, rounded after each operation, and lies in arrays of uint16 (`half`, `half_of`,
`words_of`).  The result is what a user takes away, and the second executor that the tests compare with
the direct engine.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.codegen.ir import COMBINES, Kernel, Op, SIZES, Value, all_ops

#: kernel type -> the NumPy scalar type
NAMES = {"b1": "np.bool_", "i8": "np.int8", "i16": "np.int16", "i32": "np.int32", "i64": "np.int64",
         "u8": "np.uint8", "u16": "np.uint16", "u32": "np.uint32", "u64": "np.uint64",
         "f16": "np.float32", "f32": "np.float32", "f64": "np.float64"}
FLOATS = ("f16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {"add": "|", "mul": "&", "and": "&", "or": "|", "xor": "^"}


class PythonText:
    """Builds the source of one kernel."""

    def __init__(self, kernel: Kernel, name: str = "kernel", fixed: bool = False):
        self.kernel, self.name, self.fixed = kernel, name, fixed
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.depth = 1
        #: the sweeps of each tower, by the number of its tape
        self.towers: dict[int, list[Op]] = {}
        for op in all_ops(kernel.ops):
            if "tape" in op.params:
                self.towers.setdefault(op.params["tape"], []).append(op)

    def line(self, text: str):
        self.lines.append("    " * self.depth + text)

    def fresh(self, value: Value) -> str:
        return self.names.setdefault(value, f"v{len(self.names)}")

    def source(self) -> str:
        """The function's text."""
        k = self.kernel
        params = [f"in{n}" for n in range(len(k.inputs))] + [f"out{n}" for n in range(len(k.outputs))]
        params += [f"number{n}" for n in range(len(k.literals)) if not self.fixed]
        params += [f"n{d}" for d in range(k.rank)]
        for n, value in enumerate(k.literals):
            self.names[value] = f"number{n}"
        head = f"def {self.name}({', '.join(params)}):"
        order = list(range(k.rank))
        if k.nest == "columns":
            order = [1, 0]
        self.loops(order)
        return "\n".join([head, *self.lines, ""])

    def loops(self, order):
        """Loops over the axes; accumulators start where the axes they run over begin."""
        k = self.kernel
        reduced = [(n, o) for n, o in enumerate(k.outputs) if o.mode in COMBINES]
        start_at = 0 if k.nest == "lanes" else 1
        for level in range(k.rank + 1):
            if level == start_at:
                for n, out in reduced:
                    self.line(f"acc{n} = {self.start(out)}")
            if level < k.rank:
                self.line(f"for i{order[level]} in range(n{order[level]}):")
                self.depth += 1
        self.body(reduced)
        for level in range(k.rank, -1, -1):
            if level == start_at:
                where = {"lanes": "0", "rows": "i0", "columns": "i1"}[k.nest]
                for n, out in reduced:
                    self.line(f"out{n}[{where}] = {_stored(f'acc{n}', out.value.type)}")
            self.depth -= level > 0
        self.depth = 1

    def body(self, reduced):
        k = self.kernel
        index = ", ".join(f"i{d}" for d in range(k.rank))
        for n, entry in enumerate(k.inputs):
            if entry.access in ("table", "turns"):
                self.names[entry.value] = f"in{n}"
            else:
                here = f"in{n}[{index}]"
                self.line(f"{self.fresh(entry.value)} = {_loaded(here, entry.value.type)}")
        for n, out in enumerate(k.outputs):
            if out.mode == "turns":
                self.names[out.value] = f"out{n}"
        if any(op.name == "faulted" for op in k.ops):
            self.line("failed = False")
        self.run(k.ops)
        for n, out in enumerate(k.outputs):
            if out.mode == "once":
                self.line(f"out{n}[0] = {_stored(self.names[out.value], out.value.type)}")
            if out.mode == "store":
                self.line(f"out{n}[{index}] = {_stored(self.names[out.value], out.value.type)}")
        for n, out in reduced:
            x, acc = self.names[out.value], f"acc{n}"
            a, b = (x, acc) if out.mode == "max" else (acc, x)
            self.line(f"{acc} = {expression(out.mode, [out.value.type] * 2, [a, b], out.value.type, {})}")

    def start(self, out) -> str:
        type, mode = out.value.type, out.mode
        if out.start in self.names:
            return self.names[out.start]
        if out.start is not None:
            number = [i.value for i in self.kernel.inputs].index(out.start)
            return _loaded(f"in{number}[{', '.join(['0'] * self.kernel.rank)}]", type)
        if type == "b1":
            return f"np.bool_({mode in ('min', 'and')})"
        if mode in ("max", "min"):
            sign = "-" if mode == "max" else ""
            if type in FLOATS:
                return f"{NAMES[type]}({sign}np.inf)"
            return f"{NAMES[type]}(np.iinfo({NAMES[type]}).{'min' if mode == 'max' else 'max'})"
        return f"{NAMES[type]}({1 if mode == 'mul' else 0})"

    def run(self, ops: list[Op]):
        for op in ops:
            if op.regions:
                _REGIONS[op.name](self, op)
                continue
            out = op.outs[0]
            if op.name == "fault":
                self.line(f"failed = failed or {self.names[op.args[0]]}")
                continue
            if op.name == "faulted":
                self.names[out] = "failed"
                continue
            if op.name in ("read", "take", "put"):
                getattr(self, op.name)(op)
                continue
            text = expression(op.name, [a.type for a in op.args], [self.names[a] for a in op.args], out.type,
                              op.params)
            self.line(f"{self.fresh(out)} = {text}")

    def read(self, op: Op):
        """An entry of a table; one outside is noted, and the first is read."""
        table, *index = [self.names[a] for a in op.args]
        inside = " and ".join(f"0 <= {i} < {table}.shape[{d}]" for d, i in enumerate(index))
        first = ", ".join("0" for _ in index)
        name = self.fresh(op.outs[0])
        self.line(f"{name} = {table}[{first}]")
        self.line(f"if {inside}:")
        self.line(f"    {name} = {table}[{', '.join(index)}]")
        self.line("else:")
        self.line("    failed = True")

    def turn_index(self, turn: Value, value: Value | None = None) -> str:
        """The place of this lane in an array of turns by lanes."""
        lanes = [] if value is not None and value.uniform else [f"i{d}" for d in range(self.kernel.rank)]
        return ", ".join([self.names[turn], *lanes])

    def take(self, op: Op):
        """The entry of a turn."""
        here = f"{self.names[op.args[0]]}[{self.turn_index(op.args[1], op.args[0])}]"
        self.line(f"{self.fresh(op.outs[0])} = {_loaded(here, op.outs[0].type)}")

    def put(self, op: Op):
        """Write the entry of a turn."""
        x = _stored(self.names[op.args[2]], op.args[2].type)
        self.line(f"{self.names[op.args[0]]}[{self.turn_index(op.args[1])}] = {x}")

    def region(self, region, names) -> list[str]:
        """The statements of a nested body; names of its results."""
        self.names.update(zip(region.params, names, strict=True))
        self.run(region.ops)
        return [self.names[r] for r in region.results]


def expression(name, types, x, out, params) -> str:
    """One operation as a Python expression of the operand names."""
    t = types[0]
    if name in _COMPARE:
        return f"{x[0]} {_COMPARE[name]} {x[1]}"
    if name in _BINARY:
        if t == "b1":
            return f"{x[0]} {_LOGIC.get(name, '^')} {x[1]}"
        return _wrapped(t, f"{x[0]} {_BINARY[name]} {x[1]}")
    if name in _EXPRESSIONS:
        return _EXPRESSIONS[name](t, x, out, params)
    return _wrapped(t, f"{name}_{t}({', '.join(x)})")


def _wrapped(t, text):
    """The result of an operation, in its type."""
    if t == "f16":
        return f"half({text})"
    return text if t in FLOATS else f"{NAMES[t]}({text})"


def _loaded(text, t):
    return f"half_of({text})" if t == "f16" else text


def _stored(text, t):
    return f"words_of({text})" if t == "f16" else text


def _unordered(t, x):
    return f" or {x} != {x}" if t in FLOATS else ""


def _sign(t, x, out, params):
    one, zero = f"{NAMES[t]}(1)", f"{NAMES[t]}(0)"
    if t in FLOATS:
        return f"{x[0]} if {x[0]} != {x[0]} else ({one} if {x[0]} > 0 else (-{one} if {x[0]} < 0 else {zero}))"
    if t not in SIGNED:
        return f"{one} if {x[0]} > {zero} else {zero}"
    return f"{one} if {x[0]} > 0 else ({NAMES[t]}(-1) if {x[0]} < 0 else {zero})"


def _power(t, x, out, params):
    n, power, factors, result = abs(params["n"]), x[0], [], None
    while n:
        if n & 1:
            factors.append(power)
        n >>= 1
        power = _wrapped(t, f"({power} * {power})") if n else power
    for f in factors:
        result = f if result is None else _wrapped(t, f"({result} * {f})")
    one = f"{NAMES[t]}(1)"
    if result is None:
        return one
    return result if params["n"] > 0 else _wrapped(t, f"{one} / {result}")


def _convert(t, x, out, params):
    if out == "b1":
        return f"{x[0]} != {NAMES[t]}(0)"
    if t in FLOATS and out not in FLOATS:
        if out == "u64":
            high = f"({x[0]} - {NAMES[t]}({2.0 ** 63}))"
            top = f"np.uint64({_convert(t, [high], 'i64', params)}) ^ np.uint64({1 << 63})"
            return f"({top}) if {x[0]} >= {2.0 ** 63} else np.uint64({_convert(t, x, 'i64', params)})"
        if out == "u32" and t == "f64":
            return f"np.uint32({_convert(t, x, 'u64', params)})"
        wide = {"i32": "i32", "i64": "i64", "u32": "i64"}.get(out, "i32")
        limit = 2.0 ** (8 * SIZES[wide] - 1)
        inside = f"{x[0]} < {limit} and {x[0]} >= {-limit}" if t != "f64" or wide == "i64" \
            else f"{x[0]} < {limit} and {x[0]} > {-limit - 1}"
        text = f"np.int64({x[0]}) if {inside} else np.int64({-int(limit)})"
        return f"{NAMES[out]}({text})"
    if t == "f64" and out == "f16":
        return f"half(to_odd({x[0]}))"
    text = f"{NAMES[out]}({x[0]})"
    return f"half({text})" if out == "f16" else text


def _shift_left(t, x, out, params):
    bits = SIZES[t] * 8
    return f"{NAMES[t]}({x[0]} << {x[1]}) if {_small(t, x[1], bits)} else {NAMES[t]}(0)"


def _shift_right(t, x, out, params):
    bits = SIZES[t] * 8
    far = f"{NAMES[t]}({x[0]} >> {NAMES[t]}({bits - 1}))" if t in SIGNED else f"{NAMES[t]}(0)"
    return f"{NAMES[t]}({x[0]} >> {x[1]}) if {_small(t, x[1], bits)} else {far}"


def _small(t, y, bits):
    lower = f"{y} >= 0 and " if t in SIGNED else ""
    return f"{lower}{y} < {NAMES[t]}({bits})"


def _direction(t, x, out, params):
    v, r = x
    one, zero = f"{NAMES[t]}(1)", f"{NAMES[t]}(0)"
    limit = f"(np.copysign({one}, {v}) if np.isinf({v}) else {zero})"
    return f"{limit} if np.isinf({r}) else ({zero} if {r} == 0 else {_wrapped(t, f'{v} / {r}')})"


def _division(t, sign, function, x):
    """A floor division or its remainder: by a function for floats; integers by 0 give 0."""
    if t in FLOATS:
        return _wrapped(t, f"{function}_{'f64' if t == 'f64' else 'f32'}({x[0]}, {x[1]})")
    return f"{NAMES[t]}({x[0]} {sign} {x[1]}) if {x[1]} != 0 else {NAMES[t]}(0)"


_EXPRESSIONS: dict[str, Callable] = {
    "floor_divide": lambda t, x, out, p: _division(t, "//", "floor_divide", x),
    "remainder": lambda t, x, out, p: _division(t, "%", "remainder", x),
    "neg": lambda t, x, out, p: _wrapped(t, f"-{x[0]}"),
    "abs": lambda t, x, out, p: x[0] if t[0] in "ub" else f"{NAMES[t]}(abs({x[0]}))",
    "sqrt": lambda t, x, out, p: _wrapped(t, f"np.sqrt({x[0]})"),
    "floor": lambda t, x, out, p: f"np.floor({x[0]})",
    "ceil": lambda t, x, out, p: f"np.ceil({x[0]})",
    "trunc": lambda t, x, out, p: f"np.trunc({x[0]})",
    "round": lambda t, x, out, p: f"np.rint({x[0]})",
    "nextafter": lambda t, x, out, p: f"{'next_half' if t == 'f16' else 'np.nextafter'}({x[0]}, {x[1]})",
    "copysign": lambda t, x, out, p: f"np.copysign({x[0]}, {x[1]} if {x[1]} == {x[1]} else {NAMES[t]}(1))",
    "real": lambda t, x, out, p: x[0], "conj": lambda t, x, out, p: x[0],
    "is_nan": lambda t, x, out, p: f"{x[0]} != {x[0]}",
    "is_finite": lambda t, x, out, p: f"np.isfinite({x[0]})" if t in FLOATS else "True",
    "max": lambda t, x, out, p: f"{x[0]} if {x[0]} > {x[1]}{_unordered(t, x[0])} else {x[1]}",
    "min": lambda t, x, out, p: f"{x[1]} if {x[1]} < {x[0]}{_unordered(t, x[1])} else {x[0]}",
    "select": lambda t, x, out, p: f"{x[1]} if {x[0]} else {x[2]}",
    "not": lambda t, x, out, p: f"not {x[0]}" if t == "b1" else f"{NAMES[t]}(~{x[0]})",
    "bitcast": lambda t, x, out, p: f"bits_{t}_{out}({x[0]})",
    "sign": _sign, "integer_pow": _power, "convert": _convert, "shift_left": _shift_left,
    "shift_right": _shift_right, "direction": _direction}


# ---- regions ----

def _carries(text: PythonText, op: Op, inits) -> list[str]:
    names = [text.fresh(v) for v in op.outs]
    for v, init in zip(names, inits):
        text.line(f"{v} = {text.names[init]}")
    return names


def _assign(text, names, results):
    text.line(f"{', '.join(names)} = {', '.join(results)}")


def _fold(text: PythonText, op: Op):
    """A sweep: a fold, or one that reads the states of the sweeps before it in its tower."""
    count, tape = text.names[op.args[0]], op.params.get("tape")
    tower = text.towers.get(tape, [op])
    place = tower.index(op)
    names = _carries(text, op, op.args[1:len(op.outs) + 1])
    keeps = place < len(tower) - 1
    if keeps:
        for k, v in enumerate(op.outs):
            text.line(f"tape{tape}_{place}_{k} = np.empty({count}, {NAMES[v.type]})")
    turn = f"t{len(text.names)}"
    steps = f"range({count} - 1, -1, -1)" if op.params["reverse"] else f"range({count})"
    text.line(f"for {turn} in {steps}:")
    text.depth += 1
    if keeps:
        for k, name in enumerate(names):
            text.line(f"tape{tape}_{place}_{k}[{turn}] = {name}")
    states = [f"tape{tape}_{q}_{k}[{turn}]" for q in range(place) for k in range(len(tower[q].outs))]
    _assign(text, names, text.region(op.regions[0], [turn, *states, *names]))
    text.depth -= 1


def _loop(text: PythonText, op: Op):
    turns, *names = [text.fresh(v) for v in op.outs]
    text.line(f"{turns} = 0")
    for v, init in zip(names, op.args):
        text.line(f"{v} = {text.names[init]}")
    text.line("while True:")
    text.depth += 1
    go_on, = text.region(op.regions[0], [turns, *names])
    text.line(f"if not {go_on}:")
    text.line("    break")
    new = text.region(op.regions[1], [turns, *names])
    if new:
        _assign(text, names, new)
    text.line(f"{turns} += 1")
    text.depth -= 1


def _cond(text: PythonText, op: Op):
    names = [text.fresh(v) for v in op.outs]
    for head, region in zip((f"if {text.names[op.args[0]]}:", "else:"), op.regions):
        text.line(head)
        text.depth += 1
        _assign(text, names, text.region(region, []))
        text.depth -= 1


_REGIONS: dict[str, Callable] = {"fold": _fold, "unfold": _fold, "unfold_within": _fold, "loop": _loop,
                                 "cond": _cond}


def python_text(kernel: Kernel, name: str = "kernel", fixed: bool = False) -> str:
    """The source of a kernel as a Python function; with `fixed`, its numbers are globals, not parameters."""
    return PythonText(kernel, name, fixed).source()
