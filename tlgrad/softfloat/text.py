"""Text to words and back: every digit is worked out on exact integers."""
from __future__ import annotations

import math
import re

from tlgrad.softfloat.convert import from_scaled
from tlgrad.softfloat.format import FINITE, INFINITE, NAN

_DECIMAL = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?")
_HEX = re.compile(r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?\d+))?")
_SPEC = re.compile(r"(?:(.)?([<>^=]))?([-+ ]?)(0?)(\d*)([,_]?)(?:\.(\d+))?([efgEFGa%]?)")
DECIMAL_LIMIT = 1 << 20


def integer(digits, radix=10):
    """The integer of digits of any length, beyond Python's own limit of 4,300 too."""
    if radix != 10 or len(digits) <= 4000:
        return int(digits, radix)
    half = len(digits) // 2
    return integer(digits[:-half]) * 10 ** half + integer(digits[-half:])


def decimal_digits(number):
    """The decimal digits of a non-negative integer of any size."""
    if number.bit_length() <= 13000:
        return str(number)
    half = number.bit_length() * 30103 // 200000
    high, low = divmod(number, 10 ** half)
    return decimal_digits(high) + decimal_digits(low).rjust(half, "0")


def parse(fmt, text, env=None):
    """The word nearest to decimal or hexadecimal text, "inf" or "nan"; one rounding.

    Raises ValueError for other text.

    >>> from tlgrad.softfloat.format import binary128
    >>> to_hex(binary128, parse(binary128, "0.1"))
    '0x1.999999999999999999999999999ap-4'
    """
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    plain = text.strip().lower()
    if "_" in plain:
        plain = re.sub(r"(?<=[0-9a-f])_(?=[0-9a-f])", "", plain)
    unsigned, sign = plain.lstrip("+-"), int(plain.startswith("-"))
    if unsigned in ("inf", "infinity") and len(plain) - len(unsigned) < 2:
        return fmt.infinity(sign)
    if unsigned == "nan" and len(plain) - len(unsigned) < 2:
        return fmt.invalid()
    for pattern, radix, base, digits_exponent in ((_HEX, 16, 2, 4), (_DECIMAL, 10, 10, 1)):
        match = pattern.fullmatch(plain)
        if match and (match[2] or match[3]):
            fraction = match[3] or ""
            sig = integer((match[2] or "") + fraction, radix)
            exponent = int(match[4] or 0) - digits_exponent * len(fraction)
            return from_scaled(fmt, sign, sig, base, exponent, env)
    raise ValueError(f"{text!r} is not a number; expected text such as '0.1', '-1.5e-30', "
                     f"'0x1.8p-3', 'inf' or 'nan'")


def _special(fmt, word):
    kind, sign, sig, _ = fmt.unpack(word)
    if kind == NAN:
        return "nan"
    mark = "-" if sign else ""
    if kind == INFINITE:
        return mark + "inf"
    return mark + "0.0" if sig == 0 else None


def _interval(fmt, word):
    """The value and the ends of what rounds to it, ``(value, low, high, denominator, closed)``."""
    _, _, sig, exponent = fmt.unpack(word)
    magnitude = word & ~fmt.sign_bit if fmt.signed else word
    below_is_half = sig == 1 << fmt.F and magnitude >> fmt.F > 1
    value, low, high = 4 * sig, 4 * sig - (1 if below_is_half else 2), 4 * sig + 2
    if exponent >= 2:
        return *(v << (exponent - 2) for v in (value, low, high)), 1, sig % 2 == 0
    return value, low, high, 1 << (2 - exponent), sig % 2 == 0


def shortest(fmt, word):
    """The fewest decimal digits that read back to a finite nonzero word, the closest of these.

    Returns ``(digits, exponent)`` for ``d.ddd * 10**exponent``: the digit count is found by
    bisection on exact integers (an interval test, not the digit loop of Steele and White 1990).
    """
    value, low, high, unit, closed = _interval(fmt, word)
    exponent = math.floor((high.bit_length() - unit.bit_length()) * 0.30102999566398120)
    value, low, high, unit = _scale(value, low, high, unit, -exponent)
    while high > 10 * unit or (high == 10 * unit and not closed):
        unit, exponent = unit * 10, exponent + 1
    while high < unit:
        value, low, high, exponent = value * 10, low * 10, high * 10, exponent - 1

    def candidates(count):
        power = 10 ** (count - 1)
        first, last = -(-low * power // unit), high * power // unit
        if not closed:
            first += first * unit == low * power
            last -= last * unit == high * power
        return first, last

    few, many = 1, fmt.max_digits10 + 1
    while few < many:
        middle = (few + many) // 2
        first, last = candidates(middle)
        few, many = (few, middle) if first <= last else (middle + 1, many)
    first, last = candidates(few)
    nearest = (2 * value * 10 ** (few - 1) + unit) // (2 * unit)
    digits = decimal_digits(min(max(nearest, first), last))
    return digits.rstrip("0"), exponent + len(digits) - few


def _scale(value, low, high, unit, power):
    if power < 0:
        return value, low, high, unit * 10 ** -power
    return value * 10 ** power, low * 10 ** power, high * 10 ** power, unit


def to_repr(fmt, word):
    """The shortest decimal text that reads back to the same word.

    Beyond 2**(+-1,048,576) the text is hexadecimal: the exact powers of ten would take seconds.

    >>> from tlgrad.softfloat.format import binary128, bfloat16
    >>> to_repr(binary128, parse(binary128, "0.1")), to_repr(bfloat16, 0x3f81)
    ('0.1', '1.01')
    """
    special = _special(fmt, word)
    if special is not None:
        return special
    _, sign, _, low = fmt.unpack(word)
    if abs(low) > DECIMAL_LIMIT:
        return to_hex(fmt, word)
    digits, exponent = shortest(fmt, word)
    mark = "-" if sign else ""
    if not -5 <= exponent < 17:
        return f"{mark}{digits[0]}.{digits[1:] or '0'}e{exponent:+03d}"
    if exponent < 0:
        return mark + "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 1, "0")
    return f"{mark}{digits[:exponent + 1]}.{digits[exponent + 1:] or '0'}"


def to_hex(fmt, word):
    """Exact hexadecimal text in the style of ``float.hex``.

    >>> from tlgrad.softfloat.format import binary32
    >>> to_hex(binary32, 0x40490fdb)
    '0x1.921fb6p+1'
    """
    special = _special(fmt, word)
    if special is not None:
        return special.replace("0.0", "0x0p+0")
    _, sign, sig, exponent = fmt.unpack(word)
    pad = -fmt.F % 4
    fraction = (sig & ((1 << fmt.F) - 1)) << pad
    digits = f"{fraction:0{(fmt.F + 3) // 4}x}".rstrip("0") if fmt.F else ""
    point = "." if digits else ""
    return f"{'-' if sign else ''}0x{sig >> fmt.F}{point}{digits}p{exponent + fmt.F:+d}"


def format_word(fmt, word, spec=""):
    """``format(x, spec)`` with exact digits; spec is that of Python's floats, and "a" stands for hexadecimal.

    >>> from tlgrad.softfloat.format import binary128
    >>> format_word(binary128, parse(binary128, "0.1"), ".40f")
    '0.1000000000000000000000000000000000048148'
    """
    match = _SPEC.fullmatch(spec)
    if not match or (match[4] and match[6]):           # zeros are not grouped
        raise ValueError(f"format {spec!r} of a {fmt!r} number; expected for example '.40f', "
                         f"'.3e', '>+12.5g', 'a' or ''")
    fill, align, plus, zeros, width, group, digits, kind = match.groups()
    if not kind and digits is None:
        body = to_repr(fmt, word)
    elif kind == "a":
        body = to_hex(fmt, word)
    else:
        body = _finite(fmt, word, 6 if digits is None else int(digits), kind.lower() or "g")
        body = body.upper() if kind in ("E", "F", "G") else body
    sign, body = ("-", body[1:]) if body.startswith("-") else (plus.strip("-"), body)
    whole = re.match(r"\d*", body)[0]
    body = (f"{int(whole):{group}}" if group and whole else whole) + body[len(whole):]
    fill, align = fill or ("0" if zeros else " "), align or ("=" if zeros else ">")
    if align == "=":
        return sign + body.rjust(int(width or 0) - len(sign), fill)
    side = {"<": str.ljust, ">": str.rjust, "^": str.center}[align]
    return side(sign + body, int(width or 0), fill)


def _finite(fmt, word, digits, kind):
    part, sign, sig, exponent = fmt.unpack(word)
    if part != FINITE:
        return _special(fmt, word) + ("%" if kind == "%" else "")
    mark = "-" if sign else ""
    top, bottom = (sig << exponent, 1) if exponent >= 0 else (sig, 1 << -exponent)
    if kind == "%":
        return mark + _fixed(top * 100, bottom, digits) + "%"
    if kind == "f":
        return mark + _fixed(top, bottom, digits)
    count = digits + 1 if kind == "e" else max(digits, 1)
    text, power = _leading(top, bottom, count)
    if kind == "g" and -4 <= power < count:
        return mark + _strip(_fixed(top, bottom, count - 1 - power))
    body = text[0] + ("." + text[1:] if text[1:] else "")
    return f"{mark}{_strip(body) if kind == 'g' else body}e{power:+03d}"


def _strip(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round_half_even(top, bottom):
    quotient, rest = divmod(top, bottom)
    return quotient + (2 * rest > bottom or (2 * rest == bottom and quotient & 1))


def _fixed(top, bottom, digits):
    text = decimal_digits(_round_half_even(top * 10 ** digits, bottom)).rjust(digits + 1, "0")
    return text[:-digits] + "." + text[-digits:] if digits else text


def _leading(top, bottom, count):
    """The first ``count`` significant digits and the decimal exponent."""
    if top == 0:
        return "0" * count, 0
    power = math.floor((top.bit_length() - bottom.bit_length()) * 0.30102999566398120) - 1
    while True:
        shift = count - 1 - power
        scaled = (top * 10 ** shift, bottom) if shift >= 0 else (top, bottom * 10 ** -shift)
        digits = decimal_digits(_round_half_even(*scaled))
        if len(digits) == count:
            return digits, power
        power += 1
