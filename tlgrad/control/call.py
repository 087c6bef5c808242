"""`call`: a jaxpr applied as one unit; what a nested `run` becomes inside another transform.

Every rule applies the transform to the jaxpr, so a derivative of a compiled function is a
compiled function.
"""
from __future__ import annotations

from tlgrad.control.inner import program_primitive, with_residuals
from tlgrad.core.execute import execute

call = program_primitive(
    "call", "The results of a jaxpr, run as one unit on `device`, its sums in `order`.",
    lambda *arrays, jaxpr, name, order, device: execute(jaxpr, arrays, device), with_residuals)
