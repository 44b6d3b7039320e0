"""Words of the command line in place of a price, for machines that are owned."""

from __future__ import annotations

import pytest

from stockyard_client.cli.nodes.explanations import fitting_types
from stockyard_client.cli.output.node_tables import CLAIMS, TYPES, dollars, price_text
from stockyard_client.node_models import Candidate, Explanation, NodeClaim, NodeType


@pytest.mark.parametrize(
    ("usd", "owned", "short", "long"),
    [
        (0.0, True, "own", "own"),
        (None, True, "own", "own"),
        (0.5, True, "0.5000", "0.5000 USD/hour, 365.00 USD/month"),
        (0.0, False, "0.0000", "0.0000 USD/hour, 0.00 USD/month"),
        (None, False, None, None),
    ],
)
def test_own_stands_for_no_price_in_money(usd: float | None, owned: bool, short: str | None, long: str | None) -> None:
    assert (dollars(usd, owned=owned), price_text(usd, owned=owned)) == (short, long)
    node_type = NodeType(id="t", name="hosts.gpu", usd_hour=usd, owned=owned)
    claim = NodeClaim(id="c", name="one", phase="Available", placement={"usd_hour": usd, "owned": owned})
    for printer, record in ((TYPES, node_type), (CLAIMS, claim)):
        cells = {column.heading: column for column in printer.columns}
        assert cells["USD/HOUR"].value(record) == short


def test_own_types_come_first_and_nothing_is_dearer_than_they_are() -> None:
    candidates = (
        Candidate(type="ec2.small", usd_hour=0.01),
        Candidate(type="hosts.gpu", usd_hour=3.0, owned=True),
        Candidate(type="hosts.plain", usd_hour=0.0, owned=True),
    )
    rows = fitting_types(Explanation(claim="c", candidates=candidates))
    assert [row.candidate.type for row in rows] == ["hosts.plain", "hosts.gpu", "ec2.small"]
    assert {row.dearer for row in rows} == {None}
