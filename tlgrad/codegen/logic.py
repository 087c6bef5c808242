"""Bools that went through integers: `tag == k`, where `tag` was chosen among numbers, is a bool again.

Branches meet in tags (0: go on, 1: left, ...), which the next test compares with a number.  The
comparison becomes the bools that chose the tag, so no lane carries the integer.
"""
from __future__ import annotations

from tlgrad.codegen.ir import Value

#: nested choices that are looked through
DEPTH = 8


def as_bool(low, name: str, args) -> Value | None:
    """The bool that ``args[0] == args[1]`` (or `!=`) is, without the comparison; None when it is needed."""
    for value, number in (args, args[::-1]):
        k = low.numbers.get(number)
        if k is not None and value in low.made:
            found = _equals(low, value, k, DEPTH)
            if type(found) is bool:
                return None
            return found if name == "eq" or found is None else _not(low, found)
    return None


def _equals(low, value: Value, k: int, depth: int):
    """True, False or a Value: whether `value` is the number k; None when that takes a comparison."""
    number = low.numbers.get(value)
    if number is not None:
        return number == k
    made = low.made.get(value)
    if made is None or depth == 0:
        return None
    name, args = made
    if name == "convert":
        return {0: lambda: _not(low, args[0]), 1: lambda: args[0]}.get(k, lambda: False)()
    yes, no = (_equals(low, a, k, depth - 1) for a in args[1:])
    return None if yes is None or no is None else _choice(low, args[0], yes, no)


def _choice(low, c: Value, yes, no):
    """`yes` where c holds, else `no`; either may be known."""
    if yes is no:
        return yes
    if type(yes) is bool and type(no) is bool:
        return c if yes else _not(low, c)
    if type(no) is bool:
        return _two(low, "or", _not(low, c), yes) if no else _two(low, "and", c, yes)
    if type(yes) is bool:
        return _two(low, "or", c, no) if yes else _two(low, "and", _not(low, c), no)
    return low.emit("select", [c, yes, no], ["b1"])[0]


def _not(low, value: Value) -> Value:
    return low.emit("not", [value], ["b1"])[0]


def _two(low, name: str, a: Value, b: Value) -> Value:
    return low.emit(name, [a, b], ["b1"])[0]
