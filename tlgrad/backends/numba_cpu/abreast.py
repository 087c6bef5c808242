"""Which elementary functions of a kernel are emitted operation by operation in turn."""
from __future__ import annotations

from typing import Callable

from tlgrad.codegen.ir import Op

#: functions emitted in turn; more would spill what they share
MOST = 3


def groups(ops: list[Op], may: Callable[[Op], bool]) -> list[list[Op]]:
    """The operations in another order that keeps each behind what it needs: functions that `may` be emitted in
    turn come late, so that several of them are in one group; any other operation is a group of its own."""
    level: dict = {}
    steps: dict[tuple, list[Op]] = {}
    for op in ops:
        needs, function = max((level.get(a, 0) for a in op.args), default=0), may(op)
        level.update(dict.fromkeys(op.outs, needs + function))
        steps.setdefault((needs, function), []).append(op)
    found = []
    for (_, function), members in sorted(steps.items(), key=lambda step: step[0]):
        size = MOST if function else 1
        found += [members[k:k + size] for k in range(0, len(members), size)]
    return found
