"""Reverse mode of towers: their transposition.

Order of sums: what is added up over turns is added in the order of the program without the
loop, later turns first, each term where that program adds it.
"""
from __future__ import annotations

from tlgrad.control.staging import remembered, reorder, split_list
from tlgrad.control.tower import Layout, Split, pick, split_tower, tidy
from tlgrad.core.aval import Aval, Zero
from tlgrad.core.jaxpr import Jaxpr
from tlgrad.core.primitive import Linear
from tlgrad.ops.arithmetic import neg
from tlgrad.ops.define import add_tangents, instantiate
from tlgrad.ops.layout import zeros
from tlgrad.ops.logic import gt, select
from tlgrad.transforms.stage import stage_closed
from tlgrad.transforms.transpose import backward


def transpose_tower(cts, *args, onto, **params):
    """The transposition rule of `sweeps`."""
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    linear = [[type(x) is Linear for x in group] for group in (consts, xs, *carries)]
    cut = split_tower(layout, linear[0], linear[1], linear[2:])
    return Turned(layout, cut, n, consts, xs, carries).run(cts, onto)


class Turned:
    """The transposition of one tower.

    Its linear sweeps L_0 .. L_{m-1} become sweeps T_{m-1} .. T_0 in opposite directions, behind
    the nonlinear ones.  T_k carries the cotangent of L_k's carry; the last of a tower also
    carries those of the linear constants.  Every T_k has results, so there is one tower for each.
    """

    def __init__(self, layout, cut, n, consts, xs, carries):
        self.layout, self.cut, self.n = layout, cut, n
        self.consts, self.xs, self.carries = consts, xs, carries
        self.m = len(layout.bodies)
        self.lin_consts = [x.aval.strong() for x in pick(consts, cut.consts)]
        self.lin_xs = [x.aval.strong() for x in pick(xs, cut.xs)]
        self.lin_carries = [[body.out_avals[k].strong() for k in range(sum(flags))]
                            for body, flags in zip(cut.unknown, cut.carries)]

    def run(self, cts, onto) -> list:
        """Cotangents of all operands (None for the nonlinear ones), added to those in `onto`."""
        _, consts_before, xs_before, carries_before = self.layout.split(onto)
        ct_carry, ct_ys = self.given(cts)
        ct_xs: list = [Zero(a) for a in self.lin_xs]
        ct_consts = [Zero(a) if ct is None else ct
                     for a, ct in zip(self.lin_consts, pick(consts_before, self.cut.consts))]
        ct_inits: list = [None] * self.m
        for k in reversed(range(self.m)):
            ct_inits[k], ct_consts, more = self.tower(k, ct_carry, ct_ys, ct_consts)
            ct_xs = [add_tangents(a, b) for a, b in zip(ct_xs, more)]
        out: list = [None]
        for flags, found in zip([self.cut.consts, self.cut.xs, *self.cut.carries], [ct_consts, ct_xs, *ct_inits]):
            it = iter(found)
            out += [next(it) if u else None for u in flags]
        n_consts = 1 + len(self.consts)
        before = [*[None] * n_consts, *xs_before, *[x for c in carries_before for x in c]]
        return [self.total(*each) for each in zip(out, before, self.operands())]

    def operands(self):
        """The operands as they came."""
        return [self.n, *self.consts, *self.xs, *[x for c in self.carries for x in c]]

    @staticmethod
    def total(ct, before, operand):
        """A carry whose start is known, but becomes linear on the way, has no cotangent to give."""
        if type(operand) is not Linear:
            return None
        return ct if before is None else add_tangents(before, ct)

    def given(self, cts):
        """Cotangents of the last sweep's linear carries and ys, results that were dropped included."""
        layout, flags = self.layout, [*self.cut.carries[-1], *self.cut.ys]
        it = iter(cts)
        full = [next(it) if want else None for want in layout.results]
        chosen = pick(full, flags)
        n = len(self.lin_carries[-1])
        avals = self.cut.unknown[-1].out_avals
        ct_carry = [zeros(a.strong()) if ct is None else instantiate(ct)
                    for ct, a in zip(chosen[:n], avals)]
        ct_ys = [zeros(a.strong().with_shape((layout.length, *a.shape))) if ct is None else instantiate(ct)
                 for ct, a in zip(chosen[n:], avals[n:])]
        return ct_carry, ct_ys

    def tower(self, last, ct_carry, ct_ys, ct_consts):
        """Cotangents of L_last's starts, of the constants so far, and of xs."""
        layout, cut = self.layout, self.cut
        sweeps = list(range(self.m - 1, last - 1, -1))
        bodies, used_consts, used_xs = turned_bodies(layout, cut, last)
        started = [neg(zeros(a)) if type(ct) is Zero else ct for ct, a in zip(ct_consts, self.lin_consts)]
        starts = [ct_carry if k == self.m - 1 else [zeros(a) for a in self.lin_carries[k]] for k in sweeps]
        starts[-1] = [*starts[-1], *pick(started, used_consts)]
        nonlinear = [k for k in range(self.m) if cut.carries[k].count(False)]
        known = [pick(self.carries[k], cut.carries[k], False) for k in nonlinear]
        new = Layout(bodies=bodies,
                     reverse=(*[layout.reverse[k] for k in nonlinear], *[not layout.reverse[k] for k in sweeps]),
                     n_consts=cut.consts.count(False), n_xs=cut.xs.count(False) + len(ct_ys),
                     carries=tuple(map(len, [*known, *starts])), length=layout.length,
                     results=(True,) * len(bodies[-1].outs), memory=layout.memory)
        outs = new.bind(self.n, *pick(self.consts, cut.consts, False), *pick(self.xs, cut.xs, False), *ct_ys,
                        *[x for group in (*known, *starts) for x in group])
        ct_init, sums, found_xs = split_list(outs, len(self.lin_carries[last]), sum(used_consts))
        it_sums, it_xs = iter(sums), iter(found_xs)
        ct_consts = [self.settle(next(it_sums), ct) if used else ct for used, ct in zip(used_consts, ct_consts)]
        ct_xs = [next(it_xs) if used else Zero(a) for used, a in zip(used_xs, self.lin_xs)]
        return ct_init, ct_consts, ct_xs

    def settle(self, total, before):
        """A sum that started at -0 (adding to -0 changes no word) is +0 when there was no turn."""
        if type(before) is not Zero:
            return total
        some = gt(self.n, 0)
        return select.bind(some, total, zeros(total.aval))


def turned_bodies(layout: Layout, cut: Split, last: int):
    """Bodies of the transposed tower that ends in T_last; which linear consts and xs it reaches."""
    flags = (tuple(cut.consts), tuple(cut.xs), tuple(map(tuple, cut.carries)))
    return remembered(layout.bodies[-1], ("turned", layout.bodies, layout.results, flags, last),
                      lambda: _turned_bodies(layout, cut, last))


def _turned_bodies(layout, cut, last):
    m = len(layout.bodies)
    n_ys = sum(cut.ys)
    nonlinear = [k for k in range(m) if cut.carries[k].count(False)]
    bodies = [_with_extra_xs(cut, k, n_ys, nonlinear) for k in nonlinear]
    for k in range(m - 1, last, -1):
        bodies.append(TurnedBody(layout, cut, k).plain())
    final, used_consts, used_xs = TurnedBody(layout, cut, last).with_sums()
    return (*bodies, final), used_consts, used_xs


def _with_extra_xs(cut, k, n_ys, nonlinear) -> Jaxpr:
    """Known body k, with the cotangents of ys as further xs, giving carries only."""
    body = cut.known[k]
    n_carry = cut.carries[k].count(False)
    n_front = 1 + cut.consts.count(False) + cut.xs.count(False)
    extra = [a.strong() for a in cut.unknown[-1].out_avals[len(cut.unknown[-1].outs) - n_ys:]] if n_ys else []
    return tidy(reorder(body, [*range(n_front), *extra, *range(n_front, len(body.in_binders))], range(n_carry)))


class TurnedBody:
    """T_k at one turn: from the cotangents that L_k .. L_{m-1} give to what they read."""

    def __init__(self, layout: Layout, cut: Split, k: int):
        self.layout, self.cut, self.k = layout, cut, k
        self.m = len(layout.bodies)
        self.n_lin = [sum(c) for c in cut.carries]
        self.n_known = [c.count(False) for c in cut.carries]
        self.avals_in = cut.unknown[-1].in_avals
        self.out_avals = [[a.strong() for a in b.out_avals] for b in cut.unknown]

    def flags_until(self, k) -> list[bool]:
        """Which inputs of body k are linear."""
        cut = self.cut
        return [False, *cut.consts, *cut.xs, *[u for c in cut.carries[:k + 1] for u in c]]

    def in_avals(self) -> list[Aval]:
        """turn, known consts, known xs, cts of ys, known carries of all sweeps, cts T_{m-1} .. T_k."""
        flags = self.flags_until(self.m - 1)
        shared = 1 + self.layout.n_consts + self.layout.n_xs
        front = pick(self.avals_in[:shared], flags[:shared], False)
        known = pick(self.avals_in[shared:], flags[shared:], False)
        n = self.n_lin[-1]
        cts = [a for k in range(self.m - 1, self.k - 1, -1) for a in self.out_avals[k][:self.n_lin[k]]]
        return [*front, *self.out_avals[-1][n:], *known, *cts]

    def pull(self, values, consts_out):
        """Cotangents of L_k's (consts, xs, carry), the first added to `consts_out`."""
        cut, m = self.cut, self.m
        n_front = 1 + cut.consts.count(False) + cut.xs.count(False)
        front, ct_ys, *rest = split_list(values, n_front, sum(cut.ys), *self.n_known,
                                         *[self.n_lin[k] for k in range(m - 1, self.k - 1, -1)])
        known, cts = rest[:m], rest[m:-1]
        total: list = [None] * self.n_lin[self.k]
        ct_consts, ct_xs = consts_out, []
        for j, ct in zip(range(m - 1, self.k - 1, -1), cts):
            found = self.backward(j, front, known, [*ct, *(ct_ys if j == m - 1 else [])],
                                  consts_out if j == self.k else None,
                                  total if j == self.k else None)
            lin_consts, lin_xs, *lin_carries, _ = split_list(found, sum(cut.consts), sum(cut.xs),
                                                             *self.n_lin[:j + 1])
            if j == self.k:
                ct_consts, ct_xs, total = lin_consts, lin_xs, lin_carries[self.k]
            else:
                total = [c if t is None else add_tangents(t, c) for t, c in zip(total, lin_carries[self.k])]
        return ct_consts, ct_xs, total

    def backward(self, j, front, known, cts, consts_out, carry_out):
        """Body j backwards at one turn.  What is already in `consts_out` and `carry_out` comes first
        in the sums, as it does in the program without the loop."""
        cut, body = self.cut, self.cut.unknown[j]
        flags = self.flags_until(j)
        it = iter([*front, *[x for group in known[:j + 1] for x in group]])
        args = [Linear(a) if u else next(it) for a, u in zip(body.in_avals, flags)]
        lin = pick(body.in_binders, flags)
        n_shared = sum(cut.consts) + sum(cut.xs)
        outs, cts = list(body.outs), list(cts)
        own = lin[n_shared + sum(self.n_lin[:j]):]
        for binders, before in ((lin[:sum(cut.consts)], consts_out), (own, carry_out)):
            for var, ct in zip(binders, before or []):
                if ct is not None and type(ct) is not Zero:
                    outs.insert(0, var)
                    cts.insert(0, ct)
        return backward(Jaxpr(body.in_binders, body.eqns, outs), args, cts)

    def plain(self) -> Jaxpr:
        """The body of T_k as an earlier sweep of a tower."""
        def f(*values):
            return [instantiate(ct) for ct in self.pull(values, None)[2]]
        return tidy(stage_closed(f, self.in_avals(), "reverse mode of a loop"))

    def with_sums(self):
        """The body of T_k as the last sweep: it also adds up cotangents of consts, and gives xs'.

        Also tells which linear consts and xs have a cotangent at all.
        """
        used_consts, used_xs = self.reached()
        lin_avals = pick(self.avals_in[1:1 + self.layout.n_consts], self.cut.consts)
        sums = [a.strong() for a in pick(lin_avals, used_consts)]
        n = len(self.in_avals())

        def f(*values):
            it = iter(values[n:])
            before = [next(it) if used else None for used in used_consts]
            ct_consts, ct_xs, ct_carry = self.pull(values[:n], before)
            return [instantiate(ct) for ct in (*ct_carry, *pick(ct_consts, used_consts), *pick(ct_xs, used_xs))]
        body = stage_closed(f, [*self.in_avals(), *sums], "reverse mode of a loop")
        return tidy(body), used_consts, used_xs

    def reached(self):
        """Which linear consts and xs get anything but a symbolic zero from L_k."""
        found = []

        def f(*values):
            ct_consts, ct_xs, _ = self.pull(values, [None] * sum(self.cut.consts))
            found[:] = [[type(ct) is not Zero for ct in cts] for cts in (ct_consts, ct_xs)]
            return []
        stage_closed(f, self.in_avals(), "reverse mode of a loop")
        return found
