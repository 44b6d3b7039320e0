"""Kubernetes quantities as exact integers: thousandths of a unit.

The unit depends on the resource: a core for ``cpu``, a byte for ``memory``, one piece for any other resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.values.patterns import pattern

LARGEST = 2**63 - 1
"""The largest number of units that Kubernetes holds."""
_LONGEST = 64
_SUFFIXES = "n u m k M G T P E Ki Mi Gi Ti Pi Ei"
_EXPONENT_DIGITS = 3
_QUANTITY = pattern(r"([-+]?)([0-9]*)\.?([0-9]*)(?:[eE]([-+]?)([0-9]+)|([a-zA-Z]*))")
"""Sign, whole digits, digits of the fraction; sign and digits of the exponent, or a suffix."""
_THOUSANDTHS: Mapping[str, tuple[int, int]] = {
    "n": (1, 10**6),
    "u": (1, 10**3),
    "m": (1, 1),
    "": (10**3, 1),
    **{suffix: (1000 ** (power + 2), 1) for power, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": (1000 * 1024 ** (power + 1), 1) for power, suffix in enumerate("KMGTPE")},
}
"""The value of each suffix in thousandths, as a fraction (numerator, denominator)."""
_DECIMAL = ("E", "P", "T", "G", "M", "k", "", "m")
_OF_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def milli(value: str | float) -> int:
    """The quantity in thousandths of its unit. Finer values are rounded away from zero, as Kubernetes does.

    Takes text (``250m``, ``1.5Gi``, ``1e3``), an integer, or a float as it is printed. Raises ``ValueError`` for
    anything else, and for more than ``LARGEST`` units.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _bounded(value, value * 1000)
    if not isinstance(value, str | float) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a quantity: give a number or a text such as 500m or 4Gi")
    written = str(value)
    plain = _whole(written)
    if plain is not None:
        return plain
    if len(written) > _LONGEST:
        raise ValueError(f"a quantity has at most {_LONGEST} characters")
    parts = _QUANTITY.fullmatch(written)
    if parts is None or not parts[2] + parts[3] or (parts[5] is None and parts[6] not in _THOUSANDTHS):
        raise ValueError(f"{written!r} is not a quantity: a number with one of {_SUFFIXES} or e3")
    sign, whole, fraction, exponent_sign, exponent, suffix = parts.groups()
    if exponent is None:
        up, down = _THOUSANDTHS[suffix]
    elif len(exponent.lstrip("0")) > _EXPONENT_DIGITS:
        raise ValueError(f"the exponent of the quantity {written!r} is out of range")
    else:
        up, down = (1000, 10 ** int(exponent)) if exponent_sign == "-" else (1000 * 10 ** int(exponent), 1)
    thousandths, remainder = divmod(int(whole + fraction) * up, down * 10 ** len(fraction))
    thousandths += remainder > 0
    return _bounded(value, -thousandths if sign == "-" else thousandths)


def text(milli: int, binary: bool = False) -> str:
    """The canonical text: the largest suffix that needs no fraction. ``binary`` prefers Ki, Mi, ... from 1024 up."""
    if binary and milli % 1000 == 0 and abs(milli) >= 1024 * 1000:
        for suffix in _BINARY:
            if milli % _THOUSANDTHS[suffix][0] == 0:
                return f"{milli // _THOUSANDTHS[suffix][0]}{suffix}"
        return str(milli // 1000)
    if milli == 0:
        return "0"
    suffix = next(unit for unit in _DECIMAL if milli % _THOUSANDTHS[unit][0] == 0)
    return f"{milli // _THOUSANDTHS[suffix][0]}{suffix}"


def resource_text(resource: str, milli: int) -> str:
    """The canonical text of an amount of a resource: in Ki, Mi, Gi where it is counted in bytes."""
    return text(milli, binary=resource.startswith(_OF_BYTES))


def amount_text(resource: str, milli: int) -> str:
    """An amount of a resource for people: bytes as a quantity, all else as a plain number of units (1000, 47.81)."""
    if resource.startswith(_OF_BYTES):
        return resource_text(resource, milli)
    whole, part = divmod(abs(milli), 1000)
    number = f"{whole}.{part:03d}".rstrip("0").rstrip(".")
    return f"-{number}" if milli < 0 else number


def _whole(written: str) -> int | None:
    """A fast path for the usual form: at most 12 digits and a suffix of at least a thousandth. None for others."""
    end = -2 if written[-1:] == "i" else -1
    digits, factor = written[:end], _THOUSANDTHS.get(written[end:])
    if factor is None:
        digits, factor = written, _THOUSANDTHS[""]
    if len(digits) > 12 or not (digits.isascii() and digits.isdigit()) or factor[1] != 1:
        return None
    thousandths = int(digits) * factor[0]
    return thousandths if thousandths <= LARGEST else None


def _bounded(value: object, thousandths: int) -> int:
    if abs(thousandths) > LARGEST * 1000:
        raise ValueError(f"the quantity {value!r} is larger than 2^63-1")
    return thousandths
