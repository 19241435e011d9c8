"""Kubernetes quantities, read and written exactly: no float ever stands between two of them.

A quantity is compared by its value, since the API server rewrites how it is spelled (`0.5Gi` comes
back as `512Mi`). What Kubernetes does not read is refused with a form that it does.

Source: field case 9, spec/authoring.md §2.10 (Size rules).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {
    "n": -3,
    "u": -2,
    "m": -1,
    "": 0,
    "k": 1,
    "M": 2,
    "G": 3,
    "T": 4,
    "P": 5,
    "E": 6,
}
_DECIMAL_NAMES: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_LARGEST: Final = 2**63 - 1
_NANO: Final = 10**9
_LONGEST: Final = 64
_LARGEST_EXPONENT: Final = 40

_LIKELY: Final = {
    "kb": ("k", "Ki"),
    "mb": ("M", "Mi"),
    "gb": ("G", "Gi"),
    "tb": ("T", "Ti"),
    "pb": ("P", "Pi"),
    "kib": ("Ki",),
    "mib": ("Mi",),
    "gib": ("Gi",),
    "tib": ("Ti",),
    "ki": ("Ki",),
    "mi": ("Mi",),
    "gi": ("Gi",),
    "ti": ("Ti",),
    "pi": ("Pi",),
    "ei": ("Ei",),
    "k": ("k", "Ki"),
    "g": ("G", "Gi"),
    "t": ("T", "Ti"),
    "p": ("P", "Pi"),
    "b": ("",),
    "e": ("", "E"),
}
"""What people write after a number, folded to lower case, and what they may have meant."""


class QuantityError(ValueError):
    """A text is no quantity that jr2 takes; the message shows a right form."""


def parse(text: str) -> Fraction:
    """Return the exact value of a Kubernetes quantity.

    Args:
        text: such as `2Gi`, `1500m`, `1e3`, `.5Gi` or `+1`.

    Raises:
        QuantityError: Kubernetes does not read it, or it is larger than Kubernetes can hold.
    """
    match = _match(text)
    number = Fraction(match["number"].rstrip("."))
    if match["sign"] == "-":
        number = -number
    value = number * _scale(match)
    if abs(value) > _LARGEST:
        raise QuantityError(f'"{text}" is larger than Kubernetes can hold — write a smaller one')
    return value


def positive(text: str) -> Fraction:
    """Return the value of a quantity that must be more than zero, as a Size must.

    Raises:
        QuantityError: it is no quantity, or it is zero or negative.
    """
    value = parse(text)
    if value <= 0:
        raise QuantityError(
            f'"{text}" is not more than zero — write a positive quantity, such as "2Gi" or "1500m"'
        )
    return value


def spell(value: object) -> str:
    """Return how a quantity of the config is spelled: a text as it is, a number in its digits.

    Raises:
        QuantityError: it is neither a text nor a finite number.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return str(int(value)) if value.is_integer() else repr(value)
    raise QuantityError(
        f'{value!r} is not a Kubernetes quantity — write one such as "2Gi", "1500m" or 1'
    )


def equal(first: str, second: str) -> bool:
    """Say whether two quantities have the same value.

    Raises:
        QuantityError: one of them is no quantity.
    """
    return parse(first) == parse(second)


def canonical(text: str) -> str:
    """Return the form in which the API server gives a quantity back.

    Nothing below a billionth is kept: Kubernetes rounds it away from zero.

    Raises:
        QuantityError: it is no quantity.
    """
    match = _match(text)
    value = parse(text)
    nanos, rest = divmod(abs(value) * _NANO, 1)
    exact = Fraction(int(nanos) + bool(rest), _NANO)
    if not exact:
        return "0"
    sign = "-" if value < 0 else ""
    if match["binary"] and exact >= 1024 and exact.denominator == 1:
        return sign + _binary(int(exact))
    digits, power = _thousands(exact)
    if match["exponent"] is not None:
        return f"{sign}{digits}" + (f"e{3 * power}" if power else "")
    return f"{sign}{digits}{_DECIMAL_NAMES[power]}"


def format_memory(value: Fraction | int) -> str:
    """Return bytes as a person reads them: `2Gi`, `1500M` or plain digits; a part is rounded up."""
    whole = -(-Fraction(value) // 1)
    binary = _binary(int(whole))
    digits, power = _thousands(Fraction(whole)) if whole else (0, 0)
    decimal = f"{digits}{_DECIMAL_NAMES[power]}"
    return binary if len(binary) <= len(decimal) else decimal


def format_cpu(value: Fraction | int) -> str:
    """Return cpu as a person reads it: `2` or `1500m`; what is below a thousandth is rounded up."""
    thousandths = int(-(-Fraction(value) * 1000 // 1))
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def part_of_a_byte(text: str) -> str | None:
    """Return what to say of a memory quantity that is not whole bytes; `None` when it is.

    Raises:
        QuantityError: it is no quantity.
    """
    value = parse(text)
    if value.denominator == 1:
        return None
    return (
        f'"{text}" is not a whole number of bytes: Kubernetes keeps it as {canonical(text)} — '
        f'write "{-(-value // 1)}"'
    )


def _match(text: str) -> re.Match[str]:
    match = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(f'"{text[:_LONGEST]}" is not a Kubernetes quantity — {_right(text)}')
    if match["exponent"] is not None and abs(int(match["exponent"])) > _LARGEST_EXPONENT:
        raise QuantityError(f'"{text}" has an exponent beyond {_LARGEST_EXPONENT} — write it out')
    return match


def _scale(match: re.Match[str]) -> Fraction:
    if match["binary"]:
        return Fraction(1024 ** _BINARY[match["binary"]])
    if match["exponent"] is not None:
        return Fraction(10) ** int(match["exponent"])
    return Fraction(1000) ** _DECIMAL[match["decimal"] or ""]


def _right(text: str) -> str:
    """Return the advice for a text that is no quantity: what it may have meant, or two samples."""
    likely = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if likely is not None and len(text) <= _LONGEST:
        number, unit = likely.groups()
        suffixes = _LIKELY.get(unit.lower(), ())
        if _SHAPE.fullmatch(number + unit):
            suffixes = (unit,)
        if suffixes:
            return "write " + " or ".join(f'"{number}{suffix}"' for suffix in suffixes)
    return 'write one such as "2Gi" or "1500m"'


def _binary(whole: int) -> str:
    power = 0
    while whole and whole % 1024 == 0 and power < len(_BINARY):
        whole //= 1024
        power += 1
    return f"{whole}{['', *_BINARY][power]}"


def _thousands(value: Fraction) -> tuple[int, int]:
    """Return whole digits and the power of 1000 that they count, the largest that keeps them."""
    power = min(_DECIMAL_NAMES)
    digits = int(value * Fraction(1000) ** -power)
    while digits % 1000 == 0 and power < max(_DECIMAL_NAMES):
        digits //= 1000
        power += 1
    return digits, power
