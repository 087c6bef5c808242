"""tlgrad: function transformations for Python in which the program defines the bits."""
import pathlib as _pathlib

_here = _pathlib.Path(__file__).parent
if not (_here / "kernels").exists():
    __path__.append(str(_here.parent))       # a source checkout: kernels/ lies beside tlgrad/

from tlgrad import errors
from tlgrad.api.derivatives import (grad, jvp, linear_transpose, linearize, value_and_grad, vjp,
                                    wirtinger)
from tlgrad.api.directional import derivative, derivative_vjp
from tlgrad.api.inspecting import aval, cache_info, eval_shape, make_jaxpr
from tlgrad.api.jacobians import hessian, hvp, jacfwd, jacrev
from tlgrad.api.record import Record, record
from tlgrad.api.run import run
from tlgrad.api.vmap import vmap
from tlgrad.core import pretty, tree
from tlgrad.core.aval import Aval
from tlgrad.core.dtypes import (bfloat16, bool_, complex64, complex128, float16, float32, float64,
                                int8, int16, int32, int64, uint8, uint16, uint32, uint64)
from tlgrad.core.tensor import Tensor, tensor
from tlgrad.ops.convert import bitcast, convert, same_bits
from tlgrad.patterns import einsum, expand, pack, parse_shape, rearrange, reduce, unpack

__version__ = "0.1.0"
