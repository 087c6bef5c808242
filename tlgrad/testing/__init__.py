"""Checks for programs written with tlgrad: derivatives, distances in ulps, equality of words.

    check_grads  : f, args, order -> None          raises GradientError
    ulp_distance : a, b -> array                   how many roundings apart
    same_bits    : a, b -> bool
"""
from tlgrad.ops.convert import same_bits
from tlgrad.testing.gradients import check_grads
from tlgrad.testing.ulps import ulp_distance
from tlgrad.testing.wide import wide_eval

__all__ = ["check_grads", "ulp_distance", "same_bits", "wide_eval"]
