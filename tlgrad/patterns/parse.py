"""Text -> syntax.  Pure, cached, and knows nothing of tensors.

    token      := word | ( | ) | ... | -> | , | *
    word       := Python identifier without a leading or trailing _ | decimal number
    transform  := side -> side                     side := { word | ( { word } ) | ... }
    einsum     := term { , term } -> term          term := { name | ( name ) | ... }

A number is an axis without a name: 1 is a unit axis, 0 is an error.  Blanks, tabs and new lines
separate words.  The grammar is that of einops 0.8 (Rogozhnikov, "Einops: Clear and Reliable Tensor
Manipulations with Einstein-like Notation", ICLR 2022), with diagonals and unit broadcasting.
"""
from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from tlgrad.patterns.messages import Fault, quoted

#: the axes that a pattern does not name
ELLIPSIS = "..."

_TOKEN = re.compile(r"(\w+)|(->)|(\.\.\.|…)|([(),*])|(\S)")
_WORD, _ARROW, _ELLIPSIS, _MARK, _OTHER = range(1, 6)
_TOUCHING = {(_WORD, _ELLIPSIS), (_ELLIPSIS, _WORD), (_ELLIPSIS, _ELLIPSIS)}


class Transform(NamedTuple):
    """`left -> right`.  A side has one entry per axis: ELLIPSIS, or a tuple of names, lengths and
    possibly ELLIPSIS; () is a unit axis.  Names of both sides in order, numbers included."""
    left: tuple
    right: tuple
    left_names: tuple
    right_names: tuple


class Einsum(NamedTuple):
    """`terms -> out`: tuples of names, with ELLIPSIS among them."""
    terms: tuple[tuple[str, ...], ...]
    out: tuple[str, ...]


def tokens(pattern) -> list[re.Match]:
    """The tokens; Fault where an ellipsis touches a word."""
    if not isinstance(pattern, str):
        raise Fault(f"the pattern must be text, got {type(pattern).__name__}: {pattern!r:.40}")
    found = list(_TOKEN.finditer(pattern))
    if "..." in pattern or "…" in pattern:
        for before, m in zip(found, found[1:]):
            if m.start() == before.end() and (before.lastindex, m.lastindex) in _TOUCHING:
                raise Fault(f"the ellipsis touches its neighbour at column {m.start() + 1}; put a blank "
                            "between them", m.span(), quoted(_spaced(pattern)))
    return found


def _spaced(pattern):
    return re.sub(r"\s*(\.\.\.|…)\s*", r" \1 ", pattern)


def unexpected(m: re.Match) -> Fault:
    """What to say of a token that has no meaning where it stands."""
    char = m.group()
    if m.lastindex == _MARK:
        return Fault(f"{char!r} at column {m.start() + 1} has no meaning here; it belongs to "
                     f"{'einsum' if char == ',' else 'pack and unpack'}", m.span())
    hints = {"-": "->", "=": "->", ">": "->", ".": "...", "[": "(", "]": ")", "{": "(", "}": ")", ";": ","}
    hint = f"; did you mean {hints[char]!r}?" if char in hints else ""
    return Fault(f"{char!r} at column {m.start() + 1} means nothing in a pattern{hint}", m.span())


_REASONS = {
    "_": "a name does not begin or end with an underscore",
    "0": "a name begins with a letter",
    "-": "a name is a Python identifier"}


def atom(m: re.Match, word: str, lone_underscore=False):
    """A word as a name, or a number as the length of an axis without a name."""
    if word.isidentifier() and word[0] != "_" and word[-1] != "_":
        return word
    if word.isdecimal():
        if int(word) == 0:
            raise Fault(f"an axis of length 0 at column {m.start() + 1}: the length of an axis without a "
                        "name must be positive", m.span())
        return int(word)
    if word == "_" and lone_underscore:
        return word
    reason = _REASONS["_" if "_" in (word[0], word[-1]) else "0" if word[0].isdigit() else "-"]
    digits = re.match(r"\d*", word).group()
    better = (word[len(digits):] + digits).strip("_") or "axis"
    text = renamed(m.string, word, better)
    raise Fault(f"{word!r} at column {m.start() + 1} is not an axis name: {reason}", m.span(), quoted(text))


# ---- rearrange, expand, reduce ----

@lru_cache(maxsize=4096)
def parse_transform(pattern: str, repeats: bool = False) -> Transform:
    """``left -> right``; `repeats`: a name may occur several times on the left (a diagonal)."""
    found = tokens(pattern)
    arrow = the_arrow(pattern, found)
    left, left_names = parse_side(found[:arrow], repeats)
    right, right_names = parse_side(found[arrow + 1:])
    for entry in left:
        if ELLIPSIS in entry and entry is not ELLIPSIS:
            raise Fault("the ellipsis on the left stands for whole axes, so it cannot be in parentheses",
                        spans(pattern, ELLIPSIS)[0])
    if ELLIPSIS in right_names and ELLIPSIS not in left_names:
        missing = " ".join(dict.fromkeys(a for a in left_names if type(a) is str and a not in right_names))
        write = renamed(pattern, ELLIPSIS, missing) if missing else "... " + pattern.lstrip()
        raise Fault("ellipsis on the right but not on the left", spans(pattern, ELLIPSIS)[0], quoted(write))
    return Transform(left, right, left_names, right_names)


def the_arrow(pattern, found) -> int:
    """The position of the one arrow among the tokens."""
    kinds = [m.lastindex for m in found]
    if kinds.count(_ARROW) == 1:
        return kinds.index(_ARROW)
    arrows = [k for k, kind in enumerate(kinds) if kind == _ARROW]
    if arrows:
        second = found[arrows[1]]
        raise Fault(f"two arrows: a second '->' at column {second.start() + 1}; a pattern has one",
                    second.span(), quoted(pattern[:second.start()]))
    parse_side([m for m in found if m.group() != ","], repeats=True, lone_underscore=True)
    end = len(pattern.rstrip())
    names = dict.fromkeys(m.group() for m in found if m.lastindex in (_WORD, _ELLIPSIS))
    raise Fault("missing arrow: a pattern is 'input axes -> output axes'", (end, end + 1),
                quoted(f"{pattern} -> {' '.join(names)}"))


def parse_side(found, repeats=False, lone_underscore=False) -> tuple[tuple, tuple]:
    """One side of an arrow: its entries, and its names in order."""
    entries: list = []
    names: list = []
    group = opened = None
    for m in found:
        kind, text = m.lastindex, m.group()
        if kind == _WORD:
            name = atom(m, text, lone_underscore)
            if name == 1:
                if group is None:
                    entries.append(())
                continue
            if name in names and not repeats and type(name) is str and name != "_":
                _twice(m, name)
        elif kind == _ELLIPSIS:
            name = ELLIPSIS
            if name in names:
                _twice(m, name)
        elif text == "(":
            if group is not None:
                _nested(m)
            group, opened = [], m
            continue
        elif text == ")":
            if group is None:
                raise Fault(f"unmatched ')' at column {m.start() + 1}", m.span(), quoted(_without(m)))
            entries.append(tuple(group))
            group = None
            continue
        else:
            raise unexpected(m)
        names.append(name)
        if group is None:
            entries.append(name if name is ELLIPSIS else (name,))
        else:
            group.append(name)
    if group is not None:
        _unclosed(opened, found)
    return tuple(entries), tuple(names)


def _twice(m, name):
    if name is ELLIPSIS:
        raise Fault(f"a second ellipsis at column {m.start() + 1}; a side has at most one", m.span(),
                    quoted(_without(m)))
    raise Fault(f"{name!r} occurs twice on one side; the second is at column {m.start() + 1} (a diagonal "
                "is for einsum and reduce)", m.span())


def _without(m):
    return m.string[:m.start()] + " " + m.string[m.end():]


def _nested(m):
    text, depth, out = m.string, 0, []
    for c in text:
        depth += (c == "(") - (c == ")")
        out.append(c if c not in "()" or c == "(" and depth == 1 or c == ")" and depth == 0 else " ")
    flat = re.sub(r"\(\s+", "(", re.sub(r"\s+\)", ")", "".join(out)))
    raise Fault(f"nested parentheses at column {m.start() + 1}; a group contains names only", m.span(),
                quoted(flat))


def _unclosed(opened, found):
    text, end = opened.string, found[-1].end()
    text = text[:end] + ")" + text[end:]
    if "->" not in text:
        text += " -> " + " ".join(m.group() for m in found if m.lastindex in (_WORD, _ELLIPSIS))
    raise Fault(f"unbalanced '(' at column {opened.start() + 1}: it is not closed", opened.span(),
                quoted(text))


# ---- einsum ----

@lru_cache(maxsize=4096)
def parse_einsum(pattern: str) -> Einsum:
    """Comma-separated terms of names, an explicit arrow, the names of the result."""
    found = tokens(pattern)
    arrow = the_arrow(pattern, found)
    terms, start = [], 0
    for k in range(arrow + 1):
        if k == arrow or found[k].lastindex == _MARK and found[k].group() == ",":
            terms.append(_term(found[start:k], True))
            start = k + 1
    out = _term(found[arrow + 1:], False)
    for name in out:
        if not any(name in term for term in terms):
            if name is ELLIPSIS:
                raise Fault("ellipsis on the right but not on the left", spans(pattern, name)[-1],
                            quoted("... " + pattern.lstrip()))
            raise no_such_axis(pattern, name, spans(pattern, name)[-1], Einsum(tuple(terms), out))
    return Einsum(tuple(terms), out)


def no_such_axis(pattern: str, name, span: tuple[int, int], syntax: Einsum) -> Fault:
    """An output axis that no operand has; the pattern to write has the nearest one that is free, or none there."""
    free = [n for n in dict.fromkeys(n for t in syntax.terms for n in t)
            if n is not ELLIPSIS and n not in syntax.out]
    better = (get_close_matches(name, free, 1, 0.5) or free or [""])[0]
    return Fault(f"output axis {name!r} is not an axis of any operand", span,
                 quoted(pattern[:span[0]] + better + pattern[span[1]:]))


def _term(found, repeats):
    entries, names = parse_side(found, repeats, True)
    for entry in entries:
        if entry is not ELLIPSIS and (len(entry) != 1 or type(entry[0]) is int or entry[0] is ELLIPSIS):
            m = _start_of(found, entry)
            what = "a number" if entry and type(entry[0]) is int else "a unit axis" if not entry \
                else "an ellipsis in parentheses" if len(entry) == 1 else "a composite axis"
            raise Fault(f"{what} at column {m.start() + 1}: in einsum every position is one name or a bare "
                        "ellipsis; rearrange the operand first", m.span())
    return names


def _start_of(found, entry):
    """The token at which the first entry that einsum does not take begins."""
    if not entry:
        return next((m for m in found if m.group() == "1"),
                    None) or next(m for m in found if m.group() == "(")
    wanted = ELLIPSIS if entry[0] is ELLIPSIS else str(entry[0])
    return next(m for m in found if m.group() in (wanted, "…"))


# ---- places in a pattern ----

def spans(pattern: str, name) -> list[tuple[int, int]]:
    """Where a name, a number or the ellipsis occurs."""
    same = ("...", "…") if name is ELLIPSIS else (str(name),)
    return [m.span() for m in _TOKEN.finditer(pattern) if m.group() in same]


def renamed(pattern: str, name: str, better: str) -> str:
    """The pattern with another word in place of a name."""
    for start, stop in reversed(spans(pattern, name)):
        pattern = pattern[:start] + better + pattern[stop:]
    return pattern


def side_span(pattern: str, right: bool) -> tuple[int, int]:
    """The left or the right side of the arrow, without blanks around it."""
    arrow = pattern.find("->")
    start, stop = (arrow + 2, len(pattern)) if right else (0, arrow)
    text = pattern[start:stop]
    first = start + len(text) - len(text.lstrip())
    return first, max(first + 1, start + len(text.rstrip()))


def term_span(pattern: str, k: int) -> tuple[int, int]:
    """Operand k of an einsum pattern."""
    left = pattern[:pattern.find("->")] if "->" in pattern else pattern
    start = 0
    for _ in range(k):
        start = left.find(",", start) + 1
    stop = left.find(",", start)
    text = left[start:stop if stop >= 0 else len(left)]
    first = start + len(text) - len(text.lstrip())
    return first, max(first + 1, start + len(text.rstrip()))
