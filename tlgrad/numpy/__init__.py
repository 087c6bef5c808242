"""NumPy-named functions of tensors and traced values, and the array API standard 2024.12.

Every function takes tensors, traced values, NumPy arrays, numbers and nested lists; promotes and
broadcasts; differentiates, batches and runs in every transform.
"""
from importlib import import_module as _import_module
from math import e, inf, nan, pi

from tlgrad.numpy.arrays import check_device
from tlgrad.numpy.info import namespace_info as __array_namespace_info__
from tlgrad.core.dtypes import (bfloat16, complex64, complex128, float16, float32, float64, int8,
                                int16, int32, int64, uint8, uint16, uint32, uint64)
from tlgrad.core.dtypes import bool_
from tlgrad.core.dtypes import bool_ as bool
from tlgrad.numpy.creation import (arange, array, asarray, ascontiguousarray, asfarray, copy, empty,
    empty_like, eye, from_dlpack, full, full_like, geomspace, identity, indices, linspace, logspace,
    meshgrid, ones, ones_like, tri, tril, triu, zeros, zeros_like)
from tlgrad.numpy.differences import (diff, ediff1d, trace)
from tlgrad.numpy.dtypes import (astype, can_cast, finfo, iinfo, iscomplexobj, isdtype, isrealobj,
    issubdtype, promote_types, result_type)
from tlgrad.numpy.elementwise import (abs, absolute, acos, acosh, add, allclose, angle, arccos,
    arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin, asinh, atan, atan2, atanh,
    bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
    bitwise_xor, cbrt, ceil, clip, conj, conjugate, copysign, cos, cosh, deg2rad, degrees, divide,
    divmod, equal, exp, exp2, expm1, fabs, fix, float_power, floor, floor_divide, fma, fmax, fmin,
    fmod, greater, greater_equal, heaviside, hypot, imag, invert, isclose, iscomplex, isfinite,
    isinf, isnan, isneginf, isposinf, isreal, left_shift, less, less_equal, log, log10, log1p, log2,
    logaddexp, logaddexp2, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod,
    multiply, nan_to_num, negative, nextafter, not_equal, positive, pow, power, rad2deg, radians,
    real, reciprocal, remainder, right_shift, rint, round, rsqrt, sign, signbit, sin, sinc, sinh,
    sqrt, square, subtract, tan, tanh, true_divide, trunc)
from tlgrad.numpy.exponentials import (celu, elu, gelu, hard_tanh, leaky_relu, log_cosh,
    log_sigmoid, log_softmax, logsumexp, mish, relu, relu6, selu, sigmoid, silu, softmax, softplus,
    softsign)
from tlgrad.numpy.norms import (norm, vector_norm)
from tlgrad.numpy.ordering import (argpartition, argsort, digitize, lexsort, partition,
    searchsorted, sort, sort_complex, top_k)
from tlgrad.numpy.products import (cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot,
    vecdot, vecmat)
from tlgrad.numpy.reductions import (all, amax, amin, any, argmax, argmin, average, count_nonzero,
    cumprod, cumsum, cumulative_prod, cumulative_sum, max, mean, min, prod, ptp, std, sum, var)
from tlgrad.numpy.repeating import (delete, dsplit, hsplit, insert, ndim, pad, repeat, resize,
    shape, size, tile, trim_zeros, vsplit)
from tlgrad.numpy.selection import (argwhere, choose, compress, diag, diag_indices, diagflat,
    diagonal, extract, fill_diagonal, flatnonzero, nonzero, one_hot, piecewise, put_along_axis,
    ravel_multi_index, select, take, take_along_axis, tril_indices, triu_indices, unravel_index,
    where)
from tlgrad.numpy.shaping import (append, array_split, atleast_1d, atleast_2d, atleast_3d, block,
    broadcast_arrays, broadcast_shapes, broadcast_to, column_stack, concat, concatenate, dstack,
    expand_dims, flip, fliplr, flipud, hstack, matrix_transpose, moveaxis, permute_dims, ravel,
    reshape, roll, rollaxis, rot90, row_stack, split, squeeze, stack, swapaxes, transpose, unstack,
    vstack)

newaxis = None
euler_gamma = 0.5772156649015329
__array_api_version__ = "2024.12"

#: the functions that `tlgrad` itself exports
EVERYDAY = (
    "array", "asarray", "zeros", "ones", "full", "arange", "linspace", "eye", "zeros_like",
    "ones_like", "full_like", "meshgrid", "tril", "triu", "abs", "add", "subtract", "multiply",
    "divide", "negative", "sign", "sqrt", "square", "reciprocal", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "asinh",
    "acosh", "atanh", "hypot", "cbrt", "rsqrt", "pow", "power", "maximum", "minimum", "floor",
    "ceil", "trunc", "round", "floor_divide", "remainder", "mod", "fma", "clip", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite",
    "logical_and", "logical_or", "logical_not", "logical_xor", "where", "real", "imag", "conj",
    "logaddexp", "nan_to_num", "copysign", "isclose", "allclose", "sum", "prod", "mean", "max",
    "min", "amax", "amin", "any", "all", "argmax", "argmin", "var", "std", "cumsum", "cumprod",
    "diff", "trace", "matmul", "dot", "tensordot", "outer", "inner", "vecdot", "norm", "kron",
    "cross", "reshape", "ravel", "transpose", "permute_dims", "squeeze", "expand_dims",
    "broadcast_to", "broadcast_arrays", "concatenate", "concat", "stack", "unstack", "split",
    "moveaxis", "swapaxes", "flip", "roll", "repeat", "tile", "pad", "sort", "argsort", "take",
    "take_along_axis", "top_k", "searchsorted", "one_hot", "diagonal", "diag", "logsumexp",
    "softmax", "log_softmax", "relu", "sigmoid", "softplus", "silu", "gelu")


#: name -> (module, its name there), loaded when it is first used; `tlgrad.protocols` adds what lies above
LATER = {name: (f"tlgrad.numpy.{module}", name) for module, names in {
    "activations": "glu hard_sigmoid hard_silu hard_swish log1mexp logmeanexp scaled_dot_product_attention "
        "soft_sign sparse_plus sparse_sigmoid squareplus standardize swish",
    "contracting": "einsum",
    "counting": "histogram2d histogramdd mask_indices packbits unpackbits",
    "polynomials": "bartlett blackman cumulative_trapezoid gradient hamming hanning i0 interp kaiser polyadd "
        "polyder polyint polymul polysub polyval trapezoid unwrap vander",
    "rootfinding": "apply_along_axis apply_over_axes asanyarray c_ diag_indices_from fromfunction index_exp "
        "isscalar ix_ mgrid ogrid poly polydiv polyfit r_ real_if_close roots s_ tril_indices_from "
        "triu_indices_from",
    "sets": "array_equal array_equiv in1d intersect1d isin setdiff1d setxor1d union1d unique unique_all "
        "unique_counts unique_inverse unique_values",
    "statistics": "bincount corrcoef cov histogram histogram_bin_edges median nanargmax nanargmin nancumprod "
        "nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum "
        "nanvar percentile quantile",
    "words": "bitwise_count frexp gcd lcm ldexp modf spacing",
}.items() for name in names.split()}


def __getattr__(name):
    if name not in LATER:
        raise AttributeError(f"module 'tlgrad.numpy' has no attribute {name!r}")
    module, its_name = LATER[name]
    found = _import_module(module)
    globals()[name] = found = getattr(found, its_name) if its_name else found
    return found


def __dir__():
    return [*globals(), *LATER]
