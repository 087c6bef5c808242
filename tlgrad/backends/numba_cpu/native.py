"""The native launcher of this process, compiled at first use."""
from __future__ import annotations

from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.launch import ENTRY, Launcher
from tlgrad.kernels.machine import once


@once
def launcher() -> Launcher:
    """The launcher; compiling it takes a few milliseconds."""
    return Launcher(build(ENTRY, "tlgrad_launch"))
