"""Towers of sweeps as data: their static parameters, and how they are cut in two.

A tower is cut by which of its values are unknown (partial evaluation) or linear (transposition).
"""
from __future__ import annotations

from typing import NamedTuple, Sequence

from tlgrad.control.staging import remembered, reorder, split_list
from tlgrad.core.jaxpr import Jaxpr, dce, eval_jaxpr
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.stage import stage_closed


class Layout(NamedTuple):
    """The static parameters of a tower."""
    bodies: tuple[Jaxpr, ...]
    reverse: tuple[bool, ...]
    n_consts: int
    n_xs: int
    carries: tuple[int, ...]
    length: int | None
    results: tuple[bool, ...]
    memory: int | str | None

    def split(self, operands: Sequence) -> tuple:
        """n, consts, xs, [carries of each sweep]."""
        n, consts, xs, *carries, _ = split_list(operands, 1, self.n_consts, self.n_xs, *self.carries)
        return n[0], consts, xs, carries

    def bind(self, *operands) -> list:
        """Bind the primitive."""
        return PRIMITIVES["sweeps"].bind(*operands, **self._asdict())


class Split(NamedTuple):
    """A tower cut in two by which values are unknown."""
    known: tuple[Jaxpr, ...]            # of known inputs only -> known carries (last: and ys)
    unknown: tuple[Jaxpr, ...]          # of all inputs -> unknown carries (last: and ys)
    consts: list[bool]
    xs: list[bool]
    carries: list[list[bool]]
    ys: list[bool]


def split_tower(layout: Layout, consts, xs, carries) -> Split:
    """Cut each body; flags say what is unknown, and grow to their fixed point."""
    carries = [list(c) for c in carries]
    known, unknown, ys = [], [], []
    for k, body in enumerate(layout.bodies):
        mine, n_carry = carries[k], layout.carries[k]
        while True:
            flags = [False, *consts, *xs, *[u for c in carries[:k + 1] for u in c]]
            part = partial_eval_jaxpr(body, flags)
            found = part[2][:n_carry]
            grown = [a or b for a, b in zip(mine, found)]
            if grown == mine:
                break
            mine[:] = grown
        ys = list(part[2][n_carry:])
        known.append(_known_body(part, [*mine, *ys]))
        unknown.append(_unknown_body(body, part, flags, [*mine, *ys]))
    return Split(tuple(known), tuple(unknown), list(consts), list(xs), carries, ys)


def _known_body(part, unknown_out) -> Jaxpr:
    known, _, found, n_res = part
    plain = iter(range(len(known.outs) - n_res))
    place = [None if u else next(plain) for u in found]
    wanted = [p for p, u in zip(place, unknown_out) if not u]
    return tidy(reorder(known, range(len(known.in_binders)), wanted))


def _unknown_body(body, part, flags, unknown_out) -> Jaxpr:
    """All inputs -> unknown results: the known part worked out again, then the rest."""
    known, rest, found, n_res = part

    def f(*xs):
        first = eval_jaxpr(known, [x for x, u in zip(xs, flags) if not u])
        plain, residuals = first[:len(first) - n_res], first[len(first) - n_res:]
        later = eval_jaxpr(rest, [*residuals, *[x for x, u in zip(xs, flags) if u]])
        a, b = iter(plain), iter(later)
        outs = [next(b) if u else next(a) for u in found]
        return [y for y, u in zip(outs, unknown_out) if u]
    return remembered(body, ("unknown", tuple(flags), tuple(unknown_out)), lambda: tidy(
        stage_closed(f, body.in_avals, "partial evaluation of a loop")))


def tidy(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the equations that no result needs; its inputs stay."""
    def make():
        small, _ = dce(jaxpr, [True] * len(jaxpr.outs))
        return Jaxpr(jaxpr.in_binders, small.eqns, small.outs)
    return remembered(jaxpr, ("tidy",), make)


def pick(values, flags, want=True) -> list:
    """The values whose flag is `want`."""
    return [v for v, f in zip(values, flags, strict=True) if f == want]


def known_layout(layout: Layout, cut: Split) -> Layout:
    """The tower of known carries."""
    return layout._replace(
        bodies=cut.known, n_consts=cut.consts.count(False), n_xs=cut.xs.count(False),
        carries=tuple(c.count(False) for c in cut.carries),
        results=tuple(pick(layout.results, [*cut.carries[-1], *cut.ys], False)))


def known_operands(cut: Split, consts, xs, carries) -> list:
    """Operands of `known_layout`, without n."""
    groups = zip([consts, xs, *carries], [cut.consts, cut.xs, *cut.carries])
    return [x for values, flags in groups for x in pick(values, flags, False)]
