"""Statements of a control flow graph: what the bytecode of a function says, one step at a time."""
from __future__ import annotations


class _Undefined:
    """The value of a variable that no path has assigned."""

    def __repr__(self):
        return "undefined"


UNDEF = _Undefined()


class Ref(str):
    """The name of a variable, where a statement reads or writes it."""

    __slots__ = ()


class Node:
    """A statement or expression: `kind`, and the fields that Numba gives it.

    loc: offset in the bytecode;  reads: the variables that a statement reads.
    """

    loc: int | None = None
    reads: frozenset = frozenset()

    def __init__(self, kind: str, fields: dict):
        self.__dict__ = fields
        fields["kind"] = kind

    def __repr__(self):
        return f"{self.kind}({', '.join(f'{k}={v}' for k, v in self.__dict__.items() if k != 'kind')})"
