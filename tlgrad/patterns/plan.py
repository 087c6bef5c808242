"""Transform syntax + shape + lengths -> a plan.  Pure and cached; nothing is computed here.

    plan = reshape to one axis a name; diagonals; reduce; transpose; broadcast; reshape

Steps that change nothing are None.  Transposes, broadcasts and most reshapes are views.
"""
from __future__ import annotations

from math import prod
from typing import NamedTuple

from tlgrad.patterns.messages import Fault, closest, listed, quoted
from tlgrad.patterns.parse import ELLIPSIS, Transform, parse_transform, renamed, side_span, spans


class Plan(NamedTuple):
    """What to do to the operand, and the lengths by name."""
    split: tuple[int, ...] | None              # shape with one axis for each name
    diagonals: tuple[tuple[int, ...], ...]     # axes that are one index
    reduced: tuple[int, ...]                   # axes that are combined
    perm: tuple[int, ...] | None
    broadcast: tuple[tuple, tuple] | None      # shape and axes
    merge: tuple[int, ...] | None              # final shape
    sizes: dict[str, int]
    terms: int                                 # entries combined into one


_plans: dict[tuple, Plan] = {}


def plan_transform(kind: str, pattern: str, shape: tuple[int, ...], sizes: dict) -> Plan:
    """The plan of ``kind`` (rearrange, expand, reduce), remembered per pattern, shape and lengths."""
    sizes = checked_sizes(sizes)
    key = (kind, pattern, shape, *sizes.items()) if sizes else (kind, pattern, shape)
    try:
        return _plans[key]
    except (KeyError, TypeError):
        plan = _new_plan(kind, pattern, shape, sizes)
        if len(_plans) > 4096:
            _plans.clear()
        return _plans.setdefault(key, plan)


def checked_sizes(sizes: dict) -> dict[str, int]:
    """Supplied lengths as Python integers; Fault for anything else."""
    for n in sizes.values():
        if type(n) is not int or n < 0:
            break
    else:
        return sizes
    out = {}
    for name, n in sizes.items():
        try:
            if isinstance(n, bool):
                raise TypeError
            out[name] = n.__index__()
        except (TypeError, AttributeError):
            raise Fault(f"the length of {name!r} must be an integer, got {type(n).__name__}") from None
        if out[name] < 0:
            raise Fault(f"the length of {name!r} must not be negative, got {n}")
    return out


def _new_plan(kind, pattern, shape, given) -> Plan:
    syntax = parse_transform(pattern, kind == "reduce")
    _CHECKS[kind](pattern, syntax)
    _check_used(pattern, syntax, given)
    left, right = _expanded(pattern, syntax, len(shape), shape)
    sizes = solve_sizes(pattern, left, shape, given)
    names = [a for group in left for a in group]
    lengths = [a if type(a) is int else sizes[a] for a in names]
    split = None if tuple(lengths) == shape else tuple(lengths)

    firsts = [a for k, a in enumerate(names) if type(a) is int or names.index(a) == k]
    diagonals = () if len(firsts) == len(names) else tuple(
        tuple(k for k, b in enumerate(names) if b == a) for a in dict.fromkeys(names) if names.count(a) > 1)
    wanted = [a for group in right for a in group]
    reduced = tuple(k for k, a in enumerate(firsts) if type(a) is int or a not in wanted)
    kept = [a for k, a in enumerate(firsts) if k not in reduced]
    moved = [a for a in wanted if a in kept]
    perm = tuple(kept.index(a) for a in moved)
    _supply(pattern, wanted, sizes, given)
    full = tuple(a if type(a) is int else sizes[a] for a in wanted)
    merge = tuple(prod(a if type(a) is int else sizes[a] for a in group) for group in right)
    return Plan(split, diagonals, reduced, None if perm == tuple(range(len(perm))) else perm,
                (full, tuple(wanted.index(a) for a in moved)) if len(moved) < len(wanted) else None,
                None if merge == full else merge, sizes,
                prod(firsts[k] if type(firsts[k]) is int else sizes[firsts[k]] for k in reduced))


# ---- which names may be where ----

def _only(names, others):
    return [a for a in dict.fromkeys(names) if type(a) is not int and a not in others]


def _one_sided(pattern, name, side, others, rule, write):
    what = "the ellipsis" if name is ELLIPSIS else repr(name)
    return Fault(f"{what} is only on the {side}{closest(name, others)}; {rule}", spans(pattern, name)[0],
                 write)


def _check_rearrange(pattern, syntax: Transform):
    left, right = syntax.left_names, syntax.right_names
    for a in (*left, *right):
        if type(a) is int:
            raise Fault(f"an axis of length {a} without a name cannot be rearranged; give it a name",
                        spans(pattern, a)[0], quoted(renamed(pattern, str(a), _fresh_name(left + right))))
    rule = "rearrange keeps every axis (expand adds axes, reduce removes them)"
    gone, new = _only(left, right), _only(right, left)
    if gone and len(gone) == len(new) and ELLIPSIS not in gone:
        raise _one_sided(pattern, new[0], "right", gone, rule, quoted(renamed(pattern, new[0], gone[0])))
    for a in gone:
        raise _one_sided(pattern, a, "left", right, rule, quoted(f"{pattern.rstrip()} {a}"))
    for a in new:
        write = f"tl.expand(x, {quoted(pattern)}, {', '.join(f'{n}=...' for n in new)})"
        raise _one_sided(pattern, a, "right", left, rule, write)


def _fresh_name(names):
    return next(n for n in ("n", "m", "k", "axis") if n not in names)


def _check_expand(pattern, syntax: Transform):
    left, right = syntax.left_names, syntax.right_names
    for a in left:
        if type(a) is int:
            raise Fault(f"an axis of length {a} without a name on the left cannot be kept; give it a name",
                        spans(pattern, a)[0])
    for a in _only(left, right):
        raise _one_sided(pattern, a, "left", right, "expand keeps every axis of the input",
                         quoted(f"{pattern.rstrip()} {a}"))


def _check_reduce(pattern, syntax: Transform):
    for a in syntax.right_names:
        if type(a) is int:
            raise Fault(f"reduce does not add an axis of length {a}; expand the result", spans(pattern,
                a)[-1])
    for a in _only(syntax.right_names, syntax.left_names):
        raise _one_sided(pattern, a, "right", syntax.left_names, "reduce only removes axes",
                         quoted(f"{a} {pattern.lstrip()}"))


_CHECKS = {"rearrange": _check_rearrange, "expand": _check_expand, "reduce": _check_reduce}


def _check_used(pattern, syntax, given):
    names = {*syntax.left_names, *syntax.right_names}
    for name in given:
        if name not in names:
            known = [a for a in dict.fromkeys((*syntax.left_names, *syntax.right_names)) if type(a) is str]
            raise Fault(f"{name!r} is not in the pattern{closest(name, known)} (its axes: {listed(known)})",
                        write=f"the call without {name}={given[name]}")


def _supply(pattern, wanted, sizes, given):
    for a in wanted:
        if type(a) is str and a not in sizes:
            if a not in given:
                raise Fault(f"the new axis {a!r} needs a length", spans(pattern, a)[-1],
                            f"{a}=... as an argument",
                            sizes)
            sizes[a] = given[a]


# ---- lengths ----

def _expanded(pattern, syntax, rank, shape):
    """Both sides with the ellipsis as names ...0, ...1 and so on; Fault when the rank does not fit."""
    left, right = syntax.left, syntax.right
    if ELLIPSIS not in syntax.left_names:
        if len(left) != rank:
            raise _wrong_rank(pattern, left, shape, "")
        return left, right
    n = rank - len(left) + 1
    if n < 0:
        raise _wrong_rank(pattern, left[:-1], shape, "at least ")
    fresh = [f"{ELLIPSIS}{k}" for k in range(n)]
    return tuple(_with(left, fresh)), tuple(_with(right, fresh))


def _with(side, fresh):
    for group in side:
        if group is ELLIPSIS:
            yield from ((a,) for a in fresh)
        elif ELLIPSIS in group:
            k = group.index(ELLIPSIS)
            yield (*group[:k], *fresh, *group[k + 1:])
        else:
            yield group


def _wrong_rank(pattern, left, shape, least):
    write = quoted("... " + pattern.replace("->", "-> ...").lstrip()) if len(shape) > len(left) else None
    return Fault(f"the pattern has {least}{len(left)} {'axis' if len(left) == 1 else 'axes'}, x has {len(shape)}: "
                 f"{shape}", side_span(pattern, False), write)


def solve_sizes(pattern, left, shape, given) -> dict[str, int]:
    """The length of every name on the left, by exact division; one unknown in a group."""
    sizes: dict[str, int] = {}
    for axis, (group, n) in enumerate(zip(left, shape)):
        if len(group) == 1 and type(group[0]) is str and group[0] not in given and group[0] not in sizes:
            sizes[group[0]] = n
            continue
        unknown, known = [], 1
        for a in group:
            if type(a) is int:
                known *= a
            elif a in given or a in sizes:
                sizes.setdefault(a, given.get(a, 0))
                known *= sizes[a]
            else:
                unknown.append(a)
        if not unknown:
            if known != n:
                raise _mismatch(pattern, group, axis, n, known, sizes, given)
        elif len(unknown) > 1:
            raise Fault(f"axis {axis} has length {n}, which does not fix {listed(unknown)}; give all but one of "
                        "them a length", _group_span(pattern, group),
                        " or ".join(f"{a}=..." for a in unknown), sizes)
        else:
            sizes[unknown[0]] = _quotient(pattern, group, axis, n, known, unknown[0], sizes)
    return sizes


def _group_span(pattern, group):
    names = [a for a in group if not (type(a) is str and a.startswith(ELLIPSIS))]
    if not names:
        found = spans(pattern, ELLIPSIS)
        return found[0] if found else side_span(pattern, False)
    first, last = spans(pattern, names[0])[0], spans(pattern, names[-1])[0]
    return first[0], max(last[1], first[1])


def _mismatch(pattern, group, axis, n, known, sizes, given):
    span = _group_span(pattern, group)
    if not group:
        span = next(((k, k + 1) for k in range(len(pattern)) if pattern[k] in "1("), span)
        return Fault(f"axis {axis} has length {n}, but the pattern has a unit axis there", span, None, sizes)
    if len(group) == 1:
        a = group[0]
        if type(a) is int:
            return Fault(f"axis {axis} has length {n}, but the pattern says {a}", span, None, sizes)
        if a in given:
            return Fault(f"axis {axis} ({a!r}) has length {n}, but {a}={given[a]} was given", span,
                         f"{a}={n}, or the call without it", sizes)
        return Fault(f"{a!r} has lengths {sizes[a]} and {n} in one operand, and a diagonal needs equal ones",
                     spans(pattern, a)[-1], None, sizes)
    product = " * ".join(f"{a}={sizes[a]}" if type(a) is str else str(a) for a in group)
    return Fault(f"axis {axis} has length {n}, but ({_text(group)}) has {product} = {known}", span, None,
                 sizes)


def _text(group):
    return " ".join(map(str, group))


def _quotient(pattern, group, axis, n, known, name, sizes):
    span = _group_span(pattern, group)
    if known == 0:
        if n:
            raise Fault(f"axis {axis} has length {n}, but the known lengths of ({_text(group)}) have the "
                        "product 0", span, None, sizes)
        raise Fault(f"axis {axis} has length 0 and the known lengths of ({_text(group)}) have the product 0, "
                    f"so {name!r} is not determined", span, f"{name}=...", sizes)
    if n % known:
        parts = [f"{a}={sizes[a]}" if type(a) is str else str(a) for a in group if a != name]
        one = [a for a in group if a != name and type(a) is str]
        legal = [d for d in range(1, n + 1) if n % d == 0][:8]
        write = f"{one[0]} as one of {', '.join(map(str, legal))}" if len(one) == 1 and len(parts) == 1 else None
        raise Fault(f"{n} is not divisible by {' * '.join(parts)} (axis {axis}, size {n}, {', '.join(parts)}: "
                    f"{name} would be {n / known:g})", span, write, sizes)
    return n // known
