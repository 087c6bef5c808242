"""The instructions that Numba does not read: f-strings with formats, imports, patterns, starred unpacking.

Each has a half in either class: what it takes from the stack and pushes, and the statements that it
stands for.  The names of the operands in `state.append` are the parameters of the second half.
"""
from __future__ import annotations

import functools

from tlgrad.frontend import match

#: the last two bits of FORMAT_VALUE: what is done to a value before it is formatted
_CONVERSIONS = {0: str, 1: str, 2: repr, 3: ascii}


class StackEffects:
    """What the instructions take from the stack of a walk and push on it."""

    def op_FORMAT_VALUE(self, state, inst):
        spec = {"spec": state.pop()} if inst.arg & 4 else {}
        value, shown = state.pop(), [state.make_temp() for _ in range(2)]
        strvar, res = state.make_temp(), state.make_temp()
        state.append(inst, value=value, res=res, strvar=strvar, shown=shown, **spec)
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

    def question(self, state, inst, n):
        """An instruction that pushes an answer about the topmost n values."""
        temps = [state.make_temp() for _ in range(2)]
        state.append(inst, values=[state.peek(k) for k in range(n, 0, -1)], temps=temps)
        state.push(temps[-1])

    def op_GET_LEN(self, state, inst):
        self.question(state, inst, 1)
    op_MATCH_SEQUENCE = op_MATCH_MAPPING = op_GET_LEN

    def op_MATCH_KEYS(self, state, inst):
        self.question(state, inst, 2)

    def op_MATCH_CLASS(self, state, inst):
        values, temps = [state.pop() for _ in range(3)][::-1], [state.make_temp() for _ in range(2)]
        state.append(inst, values=values, temps=temps)
        state.push(temps[-1])

    def op_SET_ADD(self, state, inst):
        """The statement is Numba's own."""
        value, temps = state.pop(), [state.make_temp() for _ in range(2)]
        state.append(inst, value=value, target=state.peek(inst.arg), addvar=temps[0], res=temps[1])

    def op_UNPACK_EX(self, state, inst):
        n = (inst.arg & 0xFF) + (inst.arg >> 8) + 1
        value, temps = state.pop(), [state.make_temp() for _ in range(n + 2)]
        state.append(inst, values=[value], temps=temps)
        for temp in reversed(temps[2:]):
            state.push(temp)


class Meanings:
    """The statements that the instructions stand for.

    Made of `call`, `constant`, `attribute` and `item`, each of which writes one statement.
    """

    def op_FORMAT_VALUE(self, inst, value, res, strvar, shown, spec=None):
        """f"{value!r:spec}": the conversion comes before the format."""
        conversion = _CONVERSIONS[inst.arg & 3]
        if spec and inst.arg & 3:
            self.call(conversion, shown[0], (value,), shown[1])
            value = shown[1]
        self.call(format if spec else conversion, strvar, (value, spec) if spec else (value,), res)

    def op_IMPORT_NAME(self, inst, level, names, temps, res):
        """import a: a call of __import__(name, globals, locals, names, level)."""
        f, name, none = temps
        self.constant(self.code_names[inst.arg], name)
        self.constant(None, none)
        self.call(__import__, f, (name, none, none, names, level), res)

    def op_IMPORT_FROM(self, inst, module, res):
        """from module import a."""
        self.attribute(module, self.code_names[inst.arg], res)

    def answer(self, f, inst, values, temps):
        """An instruction of `match` that pushes f(values)."""
        self.call(f, temps[0], values, temps[1])

    op_GET_LEN = functools.partialmethod(answer, len)
    op_MATCH_SEQUENCE = functools.partialmethod(answer, match.is_sequence)
    op_MATCH_MAPPING = functools.partialmethod(answer, match.is_mapping)
    op_MATCH_KEYS = functools.partialmethod(answer, match.values_of)

    def op_MATCH_CLASS(self, inst, values, temps):
        """case Class(...)"""
        self.answer(functools.partial(match.attributes_of, inst.arg), inst, values, temps)

    def op_UNPACK_EX(self, inst, values, temps):
        """a, *b, c = value"""
        self.call(functools.partial(match.starred, inst.arg & 0xFF, inst.arg >> 8), temps[0], values, temps[1])
        for k, temp in enumerate(temps[2:]):
            self.item(temps[1], k, temp)
