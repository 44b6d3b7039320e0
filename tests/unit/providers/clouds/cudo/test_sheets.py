"""A sheet is read as it was written, to the last digit of a price."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from decimal import Decimal

import pytest

from local.cudo.stock import stock
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.cudo.sheets import Sheet, of_data_centers, read, written
from stockyard.providers.clouds.cudo.values import machine_type

SHEET = Sheet("2026-11-24T12:00:00.000Z", tuple(machine_type(offered.document()) for offered in stock()))


def test_a_sheet_is_read_as_it_was_written() -> None:
    exact = replace(SHEET.types[0], vcpu_price=Decimal("0.00660000000000000000001"))
    sheet = Sheet(SHEET.moment, (exact, *SHEET.types[1:]))
    data = written(sheet)
    assert read(data) == sheet
    assert written(read(data)) == data
    assert len(written(Sheet(SHEET.moment, SHEET.types * 20))) < 100_000, "an item of the table holds 400 KB"


def test_a_sheet_of_another_form_is_refused() -> None:
    document = gzip.compress(json.dumps({"form": 0, "types": []}).encode())
    with pytest.raises(VendorRefused, match="another release"):
        read(document)


def test_types_are_chosen_by_their_data_centers() -> None:
    assert of_data_centers(SHEET, ()) == SHEET.types
    dallas = of_data_centers(SHEET, ["us-dallas-1"])
    assert {kind.data_center for kind in dallas} == {"us-dallas-1"}
    assert len(dallas) == 2
