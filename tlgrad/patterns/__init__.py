"""Named-axis patterns: one language for contractions and axis moves.  Text -> plan -> primitives."""
from tlgrad.patterns.einsum import einsum as einsum
from tlgrad.patterns.packing import pack as pack, parse_shape as parse_shape, unpack as unpack
from tlgrad.patterns.transform import expand as expand, rearrange as rearrange, reduce as reduce
