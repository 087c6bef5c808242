"""What a forked child needs: of the threads of its parent only one goes on in it.

A lock that another thread held at the fork would stay locked, so short ones are made anew in the child
(`in_child`), and the one that guards machine code is held during the fork (`kernels.machine`).
"""
import os
from typing import Callable


def in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """Call `renew` in every forked child before anything else runs there; a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return renew


def around(before: Callable[[], None], after: Callable[[], None]):
    """Call `before` ahead of a fork, and `after` behind it in both processes."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)
