"""Chains of operations as LLVM text: values stay in registers, in packed or scalar form.

A chain takes numbers of one layout, masks, and binary64 numbers that it converts. What has no body for
vectors, and every elementary function, is a call of its own kernel, whose address is an argument, on the
few words at hand; entries that a function leaves undecided are flagged, for the caller to do again.
`carried` has the chains of small formats.
"""
from dataclasses import dataclass

from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat import drivers, quad, wide
from tlgrad.kernels.softfloat.ordering import CHOICES, PREDICATES, Packed, Scalar
from tlgrad.kernels.softfloat.words import Words, truth

MASK, BINARY64 = "b", wide.Layout(11, 52, 1023, 64)
#: operations on masks
LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
         "eq": lambda a, b: ~(a ^ b), "ne": lambda a, b: a ^ b, "select": lambda mask, a, b: b ^ (mask & (a ^ b))}


@dataclass(frozen=True)
class Chain:
    """The operations of a chain.

    `kinds` are what the inputs hold, a layout each or `MASK`; `uniform` tells which inputs are one word for
    all entries. A step is ``(operation, kind of its result, *operands)``; operands are numbered, the inputs
    first, then the result of each step. `outs` are the numbers of the values to store.
    """

    kinds: tuple
    steps: tuple
    uniform: tuple
    outs: tuple

    @property
    def every_kind(self):
        """The kind of each value."""
        return (*self.kinds, *(kind for _, kind, *_ in self.steps))

    def called(self, bodies):
        """The operations that are calls, given the names of those that have bodies, once each."""
        inline = {*bodies, *LOGIC, *PREDICATES, *CHOICES, "convert"}
        return tuple(dict.fromkeys(name for name, *_ in self.steps if name not in inline))


class _Writer:
    """The lines of a chain on one entry (`Scalar`), or on a group of lanes of binary128 (`Packed`)."""

    def __init__(self, chain, emitter, index, bodies, flagged):
        self.chain, self.e, self.index, self.bodies = chain, emitter, index, bodies
        self.calls, self.flagged = chain.called(bodies), flagged
        self.kinds, self.values, self.flags = chain.every_kind, [], None

    def write(self):
        for k, (kind, same) in enumerate(zip(self.chain.kinds, self.chain.uniform)):
            self.values.append(self.load(f"%a{k}", kind, same))
        for name, kind, *operands in self.chain.steps:
            self.values.append(self.step(name, kind, operands))
        for number, k in enumerate(self.chain.outs):
            self.store("%out" if number == 0 else f"%out{number}", self.kinds[k], self.values[k])
        if self.flags is not None:
            n = self.e.lanes
            place = self.e.emit(f"getelementptr i8, ptr %flags, i64 {self.index}")
            self.e.lines.append(f"  store {'i8' if n == 1 else f'<{n} x i8>'} {self.flags}, ptr {place}, align 1")

    def step(self, name, kind, operands):
        values, source = [self.values[k] for k in operands], self.kinds[operands[-1]]
        if kind == MASK and source == MASK:
            return LOGIC[name](*values)
        if name in PREDICATES or name in CHOICES:
            body, _ = (PREDICATES if name in PREDICATES else CHOICES)[name]
            return body(self.ordered(source), *values)
        if name == "convert":
            return self.convert(source, kind, values[0])
        return self.call(name, values) if name in self.calls else self.operation(name, kind, values)

    def call(self, name, values):
        """A call of the kernel of an operation on words that lie on the stack."""
        n = self.e.lanes
        for k, value in enumerate(values):
            self.put(f"%in{k}", value)
        flag = ", ptr %undecided" if name in self.flagged else ""
        places = ", ".join(f"ptr %in{k}" for k in range(len(values)))
        self.e.lines.append(f"  call void %f{self.calls.index(name)}(i64 {n}, {places}, ptr %answer{flag})")
        if flag:
            type = "i8" if n == 1 else f"<{n} x i8>"
            found = self.e.emit(f"load {type}, ptr %undecided, align 1")
            self.flags = found if self.flags is None else self.e.emit(f"or {type} {self.flags}, {found}")
        return self.take("%answer")


class _Single(_Writer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.type = next(k for k in self.kinds if k != MASK and k != BINARY64).type

    def load(self, pointer, kind, same):
        index = "0" if same else self.index
        if kind == MASK:
            return drivers.load(self.e, pointer, "i8", index).ne(0)
        return drivers.load(self.e, pointer, kind.type, index)

    def store(self, pointer, kind, value):
        drivers.store(self.e, pointer, truth(value, "i8") if kind == MASK else value, self.index)

    def ordered(self, kind):
        return Scalar(kind)

    def convert(self, source, kind, value):
        return value if source == kind else wide.convert(source, kind)(None, value)

    def operation(self, name, kind, values):
        return self.bodies[name](kind, *values)

    def put(self, pointer, value):
        drivers.store(self.e, pointer, value, "0")

    def take(self, pointer):
        return drivers.load(self.e, pointer, self.type, "0")


class _Group(_Writer):
    """Numbers are pairs of lanes in the order of `drivers.load_group`; `special` is the mask of the lanes
    that some body does not cover."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        n, self.special = self.e.lanes, None
        self.order = [x for p in range(n // 2) for x in (p, n // 2 + p)]

    def _note(self, mask):
        self.special = mask if self.special is None else self.special | mask

    def load(self, pointer, kind, same):
        if kind not in (MASK, BINARY64):
            return _everywhere(self.e, pointer) if same else tuple(drivers.load_group(self.e, pointer, self.index))
        type = "i8" if kind == MASK else "i64"
        if same:
            value = drivers.load(Words(lines=self.e.lines, names=self.e.names), pointer, type, "0")
            return _mask(drivers.splat(self.e, value.handle, type), kind)
        place = self.e.emit(f"getelementptr {type}, ptr {pointer}, i64 {self.index}")
        n = self.e.lanes
        loaded = self.e.emit(f"load <{n} x {type}>, ptr {place}, align {1 if kind == MASK else 8}")
        return _mask(self._shuffled(Value(self.e, loaded, type), self.order), kind)

    def _shuffled(self, value, order):
        n, lanes = self.e.lanes, ", ".join(f"i32 {k}" for k in order)
        return Value(self.e, self.e.emit(f"shufflevector {self.e.typed(value)}, {self.e.type(value.type)} poison, "
                                         f"<{n} x i32> <{lanes}>"), value.type)

    def store(self, pointer, kind, value):
        if kind not in (MASK, BINARY64):
            return drivers.store_group(self.e, pointer, self.index, *value)
        value = truth(value, "i8") if kind == MASK else value
        value = self._shuffled(value, [self.order.index(k) for k in range(self.e.lanes)])
        place = self.e.emit(f"getelementptr {value.type}, ptr {pointer}, i64 {self.index}")
        align = 1 if kind == MASK else 8
        self.e.lines.append(f"  store {self.e.typed(value)}, ptr {place}, align {align}")

    def ordered(self, kind):
        return Packed()

    def convert(self, source, kind, value):
        if source == kind:
            return value
        *value, special = quad.to_binary64(*value) if kind == BINARY64 else quad.of_binary64(value)
        self._note(special)
        return value[0] if kind == BINARY64 else tuple(value)

    def operation(self, name, kind, values):
        low, high, *mask = self.bodies[name](*(half for pair in values for half in pair))
        for one in mask:
            self._note(one)
        return low, high

    def put(self, pointer, value):
        drivers.store_group(self.e, pointer, "0", *value)

    def take(self, pointer):
        return tuple(drivers.load_group(self.e, pointer, "0"))


def _mask(value, kind):
    return value.ne(0) if kind == MASK else value


def _everywhere(emitter, pointer):
    """One word of binary128 in all lanes."""
    high = emitter.emit(f"getelementptr i64, ptr {pointer}, i64 1")
    return tuple(drivers.splat(emitter, emitter.emit(f"load i64, ptr {p}, align 8")) for p in (pointer, high))


def text(chain, width, scalar, vector, flagged):
    """The module text of ``k(count, *inputs, *outs, *kernels of the called, flags)``, `width` lanes at a time
    where it is above 1.

    `scalar` and `vector` are the bodies by operation; `flagged` the called ones whose kernels flag entries,
    and without any there are no flags.
    """
    bodies = vector if width > 1 else scalar
    calls = chain.called(bodies)
    one = _Single(chain, Words(block="entry" if width > 1 else "head"), "%i",
                  {k: b for k, b in scalar.items() if k not in calls}, flagged)
    scratch = _scratch(chain, calls, max(width, 1), one.type)
    one.write()
    parameters = _parameters(chain, calls, any(name in flagged for name in calls))
    lines = "\n".join(one.e.lines)
    if width == 1:
        return drivers.module(one.e.declarations, drivers.LOOP.format(
            parameters=parameters, entry=scratch, lines=lines, last=one.e.block))
    many = _Group(chain, Words(width, block="head"), "%i", bodies, flagged)
    many.write()
    flag = "false" if many.special is None else many.e.any(many.special)
    body = drivers.ONE.format(parameters=parameters, lines=scratch + lines) + drivers.GROUPS.format(
        parameters=parameters, arguments=parameters.replace(" noalias", ""), lanes=width, entry=scratch,
        lines="\n".join(many.e.lines), flag=flag, last=many.e.block)
    return drivers.module({**one.e.declarations, **many.e.declarations}, body)


def _parameters(chain, calls, flags):
    results = ["%out" if k == 0 else f"%out{k}" for k in range(len(chain.outs))]
    return ", ".join([f"ptr %a{k}" for k in range(len(chain.kinds))]
                     + [f"ptr noalias {name}" for name in results] + [f"ptr %f{k}" for k in range(len(calls))]
                     + ["ptr noalias %flags"] * flags)


def _scratch(chain, calls, lanes, type):
    """Room on the stack for the words of a call."""
    if not calls:
        return ""
    most = max(len(step) - 2 for step in chain.steps if step[0] in calls)
    names = [*(f"%in{k}" for k in range(most)), "%answer"]
    return "".join(f"  {name} = alloca [{lanes} x {type}], align 64\n" for name in names) + (
        f"  %undecided = alloca [{lanes} x i8], align 64\n")
