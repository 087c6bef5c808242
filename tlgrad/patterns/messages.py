"""Messages about patterns: what is wrong, a caret under the place, what is known, what to write.

Parsing and planning raise a short `Fault`; the public function that was called turns it into the
one exception class, `PatternError`, with the pattern, the tensors and the lengths known so far.
"""
from __future__ import annotations

import difflib

from tlgrad.core.source import user_source
from tlgrad.errors import PatternError


class Fault(Exception):
    """What is wrong: a sentence, the span of the pattern it is about, a legal pattern to write."""

    def __init__(self, sentence: str, span=None, write: str | None = None, sizes=None):
        super().__init__(sentence)
        self.sentence, self.span, self.write, self.sizes = sentence, span, write, sizes


def pattern_error(function: str, pattern: str, fault: Fault, tensors=(), given=None) -> PatternError:
    """The error that the user sees.  `tensors`: (name or position, shape) of each operand."""
    lines = [f"{function}: {fault.sentence}"]
    if isinstance(pattern, str):
        flat = "".join(" " if c.isspace() else c for c in pattern)
        lines.append(f"    {flat}")
        if fault.span is not None:
            start, stop = fault.span
            lines.append("    " + " " * start + "^" * max(1, stop - start))
    for name, shape in tensors:
        lines.append(f"  {name} has shape {tuple(shape)}")
    known = {**(given or {}), **(fault.sizes or {})}
    if known:
        lines.append("  lengths known so far: " + ", ".join(f"{k}={v}" for k, v in known.items()))
    if fault.write is not None:
        lines.append(f"  write: {fault.write}")
    source = user_source(2)
    if source is not None:
        lines.append(f"  [{source}]")
    return PatternError("\n".join(lines))


def quoted(pattern: str) -> str:
    """A pattern as the user would type it."""
    return '"' + " ".join(pattern.split()) + '"'


def closest(name: str, names) -> str:
    """``; did you mean 'column'?`` when a name looks like a slip of another one."""
    found = difflib.get_close_matches(name, [n for n in names if n != name], 1, 0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def listed(names) -> str:
    """``a, b and c``."""
    names = list(map(str, names))
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
