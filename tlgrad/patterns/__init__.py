"""Named-axis patterns: one language for contractions and axis moves.  Text -> plan -> primitives."""
from tlgrad.patterns.einsum import einsum
from tlgrad.patterns.explain import explain
from tlgrad.patterns.packing import pack, parse_shape, unpack
from tlgrad.patterns.transform import expand, rearrange, reduce

__all__ = ["einsum", "expand", "explain", "pack", "parse_shape", "rearrange", "reduce", "unpack"]
