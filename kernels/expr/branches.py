"""Branches of wide vectors are functions of their own: a kernel has only a call for each.

So its code is short, its registers are for what is always done, and a branch is compiled once for all kernels that
have it. Arguments are the values that it takes from outside.
"""
import hashlib
import itertools
from dataclasses import dataclass

from .value import Value

REGISTER = 8                            # lanes of binary64 in a register of AVX-512
SHORT = 60                              # lines of a module from which a branch is worth a call


@dataclass(frozen=True)
class Branch:
    """The module `text` of a function ``branch``, and the external symbols that it names."""

    text: str
    externals: dict


def called(e, form, mask, some, values):
    """The vectors of the `values` that ``some()`` gives where `mask`, by a call; None for a branch that is shorter
    than that.  `e` is the emitter, `form` is `Whole` or `ByGroups`."""
    types = [e.type(v.type) for v in values]
    result = types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    branch, outside = _function(e, form, mask, some, values, result)
    if branch.text.count("\n") < SHORT:
        return None
    symbol = f"tlgrad.branch.{hashlib.sha256(branch.text.encode()).hexdigest()[:24]}"
    e.externals[symbol] = branch
    arguments = list(map(e.typed, e.here(outside)))
    e.declare(f"@{symbol}", result, [e.type(v.type) for v in outside])
    found = e.emit(f"call {result} @{symbol}({', '.join(arguments)})")
    if len(types) == 1:
        return [Value(e, found, values[0].type)]
    return [Value(e, e.emit(f"extractvalue {result} {found}, {k}"), v.type) for k, v in enumerate(values)]


def _function(e, form, mask, some, values, result):
    """(the `Branch`, its arguments as Values of the caller).  The emitter writes another module for as long as it
    takes, with names of its own."""
    kept = dict(vars(e))
    e.lines, e.declarations, e.externals, e.block, e.depth = [], {}, {}, "entry", e.depth + 1
    e.names = map(f"{'b' * e.depth}{{}}".format, itertools.count())
    e.parts = parts = form(e)
    found = parts.results(mask, some, values)
    whole = e.typed(found[0])
    if len(found) > 1:
        whole = f"{result} poison"
        for k, v in enumerate(found):
            whole = f"{result} " + e.emit(f"insertvalue {whole}, {e.typed(v)}, {k}")
    parameters = ", ".join(f"{e.type(v.type)} {name}" for name, v in parts.outside.items())
    text = "\n".join([*e.declarations.values(), f"define {result} @branch({parameters}) nounwind {{", "entry:",
                      *e.lines, f"  ret {whole}", "}", ""])
    branch = Branch(text, e.externals)
    vars(e).update(kept)
    return branch, list(parts.outside.values())


class Whole:
    """A branch on all lanes at once.  While it is emitted, values from outside stand for its arguments."""

    def __init__(self, emitter):
        self.emitter, self.made, self.known = emitter, set(), {}
        #: values from outside by parameter
        self.outside = {}

    def results(self, mask, some, values):
        """The vectors of the `values` that ``some()`` gives where `mask`."""
        return self.emitter.selected(mask, some, values)

    def inside(self, value):
        """The Value here for one from outside; constants and those of the branch itself as they are."""
        handle = value.handle
        if not handle.startswith("%") or handle in self.made:
            return value
        if handle not in self.known:
            parameter = self.emitter.name()
            self.outside[parameter] = value
            self.known[handle] = self.taken(parameter, value.type)
            self.made.add(self.known[handle])
        return Value(self.emitter, self.known[handle], value.type)

    def taken(self, parameter, type):
        """The operand for a parameter."""
        return parameter


class ByGroups(Whole):
    """A branch with a loop over groups of `REGISTER` lanes, so that its code is one register wide."""

    def __init__(self, emitter):
        super().__init__(emitter)
        self.count = emitter.lanes // REGISTER
        self.before, self.phis = [], []

    def results(self, mask, some, values):
        """The vectors of the `values` that ``some()`` gives where `mask`."""
        e = self.emitter
        lanes, lines, entry, loop = e.lanes, e.lines, e.block, f"parts{e.name()[1:]}"
        e.lines, e.lanes, e.block, e.parts = [], REGISTER, loop, self
        new = self._where_any(self.inside(mask), some, [self.inside(v) for v in values])
        body, end = e.lines, e.block
        e.lines, e.lanes, e.parts = lines, lanes, None
        earlier = [[e.name() for _ in range(self.count - 1)] for _ in new]
        for v, names in zip(new, earlier):
            self._move(names, ["poison"] * len(names), v.handle, e.scalar(v.type))
        i, last = e.name(), e.name()
        e.lines += [
            *self.before, f"  br label %{loop}", f"{loop}:",
            f"  {i} = phi i32 [ 1, %{entry} ], [ {i}.next, %{end} ]",
            *(f"  {name} = phi {vector} [ {first}, %{entry} ], [ {after}, %{end} ]"
              for name, vector, first, after in self.phis),
            *body, f"  {i}.next = add i32 {i}, 1", f"  {last} = icmp eq i32 {i}, {self.count}",
            f"  br i1 {last}, label %{loop}.end, label %{loop}", f"{loop}.end:"]
        e.block = f"{loop}.end"
        return [Value(e, e.joined([*names, v.handle], REGISTER, e.scalar(v.type)), v.type)
                for v, names in zip(new, earlier)]

    def _where_any(self, mask, some, values):
        """The values of one group; its lanes are computed if the mask of one of them is set."""
        e = self.emitter
        here, work, done = e.block, f"some{e.name()[1:]}", f"done{e.name()[1:]}"
        e.lines += [f"  br i1 {e.any(mask)}, label %{work}, label %{done}", f"{work}:"]
        e.block = work
        new = e.selected(mask, some, values)
        e.lines += [f"  br label %{done}", f"{done}:"]
        found = [Value(e, e.emit(f"phi {e.type(v.type)} [ {old.handle}, %{here} ], [ {v.handle}, %{e.block} ]"),
                       v.type) for v, old in zip(new, values)]
        e.block = done
        return found

    def _move(self, names, first, last, element):
        """`names` are `first`, then each what the one after it was, and the last one `last`."""
        vector = f"<{REGISTER} x {element}>"
        self.phis += [(name, vector, *pair) for name, *pair in zip(names, first, [*names[1:], last])]

    def taken(self, parameter, type):
        """Its groups, taken before the loop and moved on by one in every round."""
        e, n, element = self.emitter, REGISTER * self.count, self.emitter.scalar(type)
        groups, names = [e.name() for _ in range(self.count)], [e.name() for _ in range(self.count)]
        for k, group in enumerate(groups):
            lanes = ", ".join(f"i32 {REGISTER * k + i}" for i in range(REGISTER))
            self.before.append(f"  {group} = shufflevector <{n} x {element}> {parameter}, "
                               f"<{n} x {element}> poison, <{REGISTER} x i32> <{lanes}>")
        self._move(names, groups, "poison", element)
        return names[0]
