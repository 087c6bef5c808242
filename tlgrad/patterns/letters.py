"""Single-letter patterns as NumPy and torch write them: ``"ij,jk->ik"``.

A pattern in which no operand has two words can be read letter by letter.  It is, when the ranks of
the operands fit that reading and not the one of named axes.  Letters mean what NumPy means:
blanks are ignored, and without an arrow the result has the ellipsis and then the letters that
occur once, in alphabetical order.
"""
from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from tlgrad.patterns.messages import Fault, quoted
from tlgrad.patterns.parse import ELLIPSIS, Einsum, no_such_axis, parse_einsum, spans

_CHUNK = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@lru_cache(maxsize=4096)
def read_einsum(pattern: str, ranks: tuple[int, ...]) -> Einsum:
    """The syntax of an einsum pattern for operands of these ranks."""
    letters = parse_letters(pattern) if isinstance(pattern, str) else None
    if letters is None:
        return parse_einsum(pattern)
    if not _fits(letters, ranks) and (any(map(str.isspace, pattern.strip())) or _named_fits(pattern, ranks)):
        return parse_einsum(pattern)
    return _checked(letters, pattern)


def _fits(syntax: Einsum, ranks) -> bool:
    return len(syntax.terms) == len(ranks) and all(
        n >= len(t) - 1 if ELLIPSIS in t else n == len(t) for t, n in zip(syntax.terms, ranks))


def _named_fits(pattern, ranks) -> bool:
    try:
        return _fits(parse_einsum(pattern), ranks)
    except Fault:
        return False


def parse_letters(pattern: str) -> Einsum | None:
    """The pattern read letter by letter; None when it has other words than letters in a row, or when
    the two readings are the same."""
    left, arrow, right = pattern.partition("->")
    chunks = [_CHUNK.fullmatch(c.strip()) for c in (*left.split(","), right)]
    if None in chunks or not arrow and not left.strip():
        return None
    *terms, out = [(*m.group(1), *([ELLIPSIS] if m.group(2) else []), *m.group(3)) for m in chunks]
    if arrow and max(map(len, (*terms, out))) < 2:
        return None
    return Einsum(tuple(terms), tuple(out if arrow else _implicit(terms)))


def _checked(letters: Einsum, pattern) -> Einsum:
    """Fault for an output letter that occurs twice, or in no operand."""
    for name, count in Counter(letters.out).items():
        if count > 1:
            at = spans_of_letter(pattern, name)[-1]
            raise Fault(f"output axis {name!r} occurs twice", at, quoted(pattern[:at[0]] + pattern[at[1]:]))
        if not any(name in t for t in letters.terms):
            raise no_such_axis(pattern, name, spans_of_letter(pattern, name)[-1], letters)
    return letters


def _implicit(terms):
    counts = Counter(name for t in terms for name in t)
    once = sorted(n for n, c in counts.items() if c == 1 and n is not ELLIPSIS)
    return ([ELLIPSIS] if ELLIPSIS in counts else []) + once


def spans_of_letter(pattern: str, name: str) -> list[tuple[int, int]]:
    """Where a letter occurs, by itself or in a row of letters."""
    if name is ELLIPSIS:
        return spans(pattern, name)
    return [(k, k + 1) for k, c in enumerate(pattern) if c == name]
