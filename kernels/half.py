"""float16 to float32 and back on integers, for x86-64 without F16C: LLVM calls these by the names of
libgcc's functions, which a process need not have."""
from __future__ import annotations

#: the bits moved to their place are 2^-112 of the number, also of a subnormal one
_WIDEN = """
define float @tlgrad_float_of_half(half %x) {
  %h = bitcast half %x to i16
  %w = zext i16 %h to i32
  %size = and i32 %w, 32767
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %number = fmul float %small, 0x46F0000000000000
  %bits = bitcast float %number to i32
  %special = or i32 %moved, 2139095040
  %is_special = icmp uge i32 %size, 31744
  %found = select i1 %is_special, i32 %special, i32 %bits
  %sign = and i32 %w, 32768
  %high = shl i32 %sign, 16
  %all = or i32 %found, %high
  %y = bitcast i32 %all to float
  ret float %y
}
"""

#: to nearest even: adding 0.5 leaves a subnormal result in the low bits; for others the bits are rounded as
#: an integer, whose carry is that of the exponent; from 65536 on the result is infinite
_NARROW = """
define half @tlgrad_half_of_float(float %x) {
  %w = bitcast float %x to i32
  %size = and i32 %w, 2147483647
  %positive = bitcast i32 %size to float
  %shifted = fadd float %positive, 0x3FE0000000000000
  %low = bitcast float %shifted to i32
  %subnormal = sub i32 %low, 1056964608
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %moved = add i32 %size, 3355447295
  %rounded = add i32 %moved, %odd
  %normal = lshr i32 %rounded, 13
  %is_nan = icmp ugt i32 %size, 2139095040
  %special = select i1 %is_nan, i32 32256, i32 31744
  %is_small = icmp ult i32 %size, 947912704
  %finite = select i1 %is_small, i32 %subnormal, i32 %normal
  %is_large = icmp uge i32 %size, 1199570944
  %found = select i1 %is_large, i32 %special, i32 %finite
  %sign = lshr i32 %w, 16
  %high = and i32 %sign, 32768
  %all = or i32 %found, %high
  %word = trunc i32 %all to i16
  %y = bitcast i16 %word to half
  ret half %y
}
"""

#: what LLVM calls -> name and text of the function
FUNCTIONS = {"__extendhfsf2": ("tlgrad_float_of_half", _WIDEN), "__truncsfhf2": ("tlgrad_half_of_float", _NARROW)}
