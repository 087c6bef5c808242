"""tlgrad: function transformations for Python in which the program defines the bits."""
import importlib as _importlib
import pathlib as _pathlib

_here = _pathlib.Path(__file__).parent
if not (_here / "kernels").exists():
    __path__.append(str(_here.parent))       # a source checkout: kernels/ lies beside tlgrad/

from tlgrad import errors, numpy, protocols
from tlgrad.api.derivatives import (grad, jvp, linear_transpose, linearize, value_and_grad, vjp,
                                    wirtinger)
from tlgrad.api.inspecting import aval, block, cache_info, clear_caches, eval_shape, make_jaxpr
from tlgrad.api.kernels import kernels
from tlgrad.api.record import Record, record
from tlgrad.api.run import run
from tlgrad.api.vmap import vmap
from tlgrad.control.checkpoint import checkpoint
from tlgrad.control.cond import cond, switch
from tlgrad.control.custom import custom_jvp, custom_vjp
from tlgrad.control.loops import iterate, scan
from tlgrad.control.stop import stop_gradient
from tlgrad.control.while_loop import while_loop
from tlgrad.core import pretty, tree
from tlgrad.core.aval import Aval
from tlgrad.core.dtypes import (Complex, bfloat16, bool_, complex64, complex128, float16, float32, float64,
                                int8, int16, int32, int64, uint8, uint16, uint32, uint64)
from tlgrad.core.limits import finfo
from tlgrad.core.tensor import Tensor, tensor
from tlgrad.numpy import (abs, acos, acosh, add, all, allclose, amax, amin, any, arange, arccos,
                          arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, argmax,
                          argsort, array, asarray, asin, asinh, atan, atan2, atanh,
                          broadcast_arrays, broadcast_to, cbrt, ceil, clip, concat, concatenate,
                          conj, copysign, cos, cosh, cross, cumprod, cumsum, diag, diagonal, diff,
                          divide, dot, equal, exp, exp2, expand_dims, expm1, eye, flip, floor,
                          floor_divide, fma, full, full_like, gelu, greater, greater_equal, hypot,
                          imag, inner, isclose, isfinite, isinf, isnan, kron, less, less_equal,
                          linspace, log, log10, log1p, log2, log_softmax, logaddexp, logical_and,
                          logical_not, logical_or, logical_xor, logsumexp, matmul, max, maximum,
                          mean, meshgrid, min, minimum, mod, moveaxis, multiply, nan_to_num,
                          negative, norm, not_equal, one_hot, ones, ones_like, outer, pad,
                          permute_dims, pow, power, prod, ravel, real, reciprocal, relu, remainder,
                          repeat, reshape, roll, round, rsqrt, searchsorted, sigmoid, sign, silu,
                          sin, sinh, softmax, softplus, sort, split, sqrt, square, squeeze, stack,
                          std, subtract, sum, swapaxes, take, take_along_axis, tan, tanh, tensordot,
                          tile, top_k, trace, transpose, tril, triu, trunc, unstack, var, vecdot,
                          where, zeros, zeros_like)
from tlgrad.ops.convert import bitcast, convert, same_bits
from tlgrad.ops.elementary import erf, logistic
from tlgrad.softfloat.array import environment as float_environment
from tlgrad.softfloat.format import (Binary, binary16, binary32, binary64, binary128, binary256,
                                     float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4,
                                     float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
                                     float8_e8m0fnu, tf32)
from tlgrad.softfloat.value import Float

__version__ = "0.1.0"


#: loaded when they are first used, so that a small program starts fast
_MODULES = ("conv", "fft", "image", "interop", "krylov", "linalg", "random", "scipy", "special", "testing")
_NAMES = {name: module for module, names in {
    "api.directional": "derivative derivative_vjp", "api.jacobians": "hessian hvp jacfwd jacrev",
    "api.precision": "compare_precision", "control.implicit": "fixed_point root",
    "numpy.blocks": "dot_general dynamic_slice dynamic_update_slice gather iota "
                    "reverse scatter scatter_add select",
    "numpy.minimising": "argmin", "frontend.foreign": "from_numba", "frontend.indexed": "Program",
    "frontend.mapping": "map zip", "frontend.recursive": "recurrence",
    "patterns": "einsum expand explain pack parse_shape rearrange reduce unpack"}.items()
    for name in names.split()}


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module(f"tlgrad.{name}")
    if name in _NAMES:
        globals()[name] = found = getattr(_importlib.import_module(f"tlgrad.{_NAMES[name]}"), name)
        return found
    raise AttributeError(f"module 'tlgrad' has no attribute {name!r}")


def __dir__():
    return [*globals(), *_MODULES, *_NAMES]
