"""Quantities: exact, in both directions, and refused where they are none."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.values.quantities import LARGEST, amount_text, milli, text

GI = 2**30
FACTORS = {
    **dict(
        zip(
            ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"),
            (Fraction(10) ** n for n in range(-9, 19, 3)),
            strict=True,
        )
    ),
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


@pytest.mark.parametrize(
    ("written", "thousandths"),
    [
        ("2", 2000),
        (2, 2000),
        (0, 0),
        ("0", 0),
        (-3, -3000),
        ("120m", 120),
        ("1.5", 1500),
        (0.1, 100),
        (1e-05, 1),
        ("0.5Gi", GI * 500),
        ("114Mi", 114 * 2**20 * 1000),
        ("4Gi", 4 * GI * 1000),
        ("1k", 10**6),
        ("1E", 10**21),
        ("1e3", 10**6),
        ("1E3", 10**6),
        ("1e+3", 10**6),
        ("25e-1", 2500),
        ("1n", 1),
        ("1000u", 1),
        ("1001u", 2),
        ("-1n", -1),
        ("-1.5", -1500),
        (".5", 500),
        ("5.", 5000),
        ("+5", 5000),
        ("1e-400", 1),
        ("0e100", 0),
        ("7Ei", 7 * 2**60 * 1000),
    ],
)
def test_milli_reads_quantity(written, thousandths):
    assert milli(written) == thousandths


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "x",
        "1x",
        "1 Gi",
        "1gi",
        "1K",
        "Gi",
        "1e",
        "1e3.5",
        "1e+-3",
        "--1",
        "1-",
        "1.2.3",
        ".",
        "+",
        "1_000",
        "1e3k",
        "\u0661",
        "0x10",
        "1,5",
        "NaN",
        "inf",
        "1Gi ",
        "1" * 65,
        "8Ei",
        "10E",
        "1e19",
        "1e1000",
        str(2**63),
        2**63,
        True,
        None,
        [],
        float("nan"),
        float("inf"),
        Decimal(1),
    ],
)
def test_milli_refuses_malformed_quantity(written):
    with pytest.raises(ValueError, match="quantity"):
        milli(written)


@pytest.mark.parametrize(
    ("thousandths", "binary", "written"),
    [
        (0, False, "0"),
        (0, True, "0"),
        (1500, False, "1500m"),
        (2000, False, "2"),
        (2_000_000, False, "2k"),
        (10**21, False, "1E"),
        (-1500, False, "-1500m"),
        (4 * GI * 1000, True, "4Gi"),
        (114 * 2**20 * 1000, True, "114Mi"),
        (1025 * 1000, True, "1025"),
        (1000 * 1000, True, "1k"),
        (1500, True, "1500m"),
        (-2 * GI * 1000, True, "-2Gi"),
    ],
)
def test_text_writes_canonical_quantity(thousandths, binary, written):
    assert text(thousandths, binary) == written


@given(st.integers(-LARGEST * 1000, LARGEST * 1000), st.booleans())
def test_quantity_round_trip(thousandths, binary):
    assert milli(text(thousandths, binary)) == thousandths


@given(
    st.from_regex(r"[+-]?([0-9]{1,9}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True),
    st.one_of(
        st.sampled_from(sorted(FACTORS)), st.integers(-20, 9).map("e{}".format), st.integers(-20, 9).map("E{}".format)
    ),
)
def test_milli_agrees_with_decimal_arithmetic(number, suffix):
    exact = Fraction(Decimal(number)) * FACTORS[suffix] if suffix in FACTORS else Fraction(Decimal(number + suffix))
    if abs(exact) > LARGEST:
        with pytest.raises(ValueError, match="larger"):
            milli(number + suffix)
        return
    with decimal.localcontext(prec=200):
        up = (Decimal(exact.numerator) * 1000 / exact.denominator).to_integral_value(decimal.ROUND_UP)
    assert milli(number + suffix) == int(up)


@pytest.mark.parametrize(
    ("resource", "milli_amount", "text"),
    [
        ("cpu", 1_000_000, "1000"),
        ("cpu", 47_810, "47.81"),
        ("cpu", 250, "0.25"),
        ("cpu", 0, "0"),
        ("cpu", -1_500, "-1.5"),
        ("pods", 110_000, "110"),
        ("memory", 2**31 * 1000, "2Gi"),
        ("ephemeral-storage", 5 * 2**20 * 1000, "5Mi"),
    ],
)
def test_amounts_for_people(resource, milli_amount, text):
    assert amount_text(resource, milli_amount) == text
