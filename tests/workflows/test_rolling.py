"""Ten nodes of a static pool on EC2 become another type, one after the other, and ten are there all the while."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.workflows.faulty_cloud import Cloud, machine_cloud
from tests.workflows.rolling_life import AFTER, BEFORE, QUANTITY, counted, of_type, rolling_life


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with machine_cloud() as account:
        yield account


# Workflows are played one after the other, each to its end: here their waits for an agent's word count whole.
@pytest.mark.parametrize(("unavailable", "minutes"), [(1, 75), (3, 50)])
def test_a_type_change_of_ten_nodes_ends(
    cloud: Cloud, unavailable: int, minutes: int, record_property: Callable[[str, object], None]
) -> None:
    with rolling_life(cloud) as life:
        life.make(disruption={"budgets": [{"nodes": str(unavailable)}]})
        assert life.types() == {BEFORE}
        assert len(life.zones()) > 1, "nodes of one zone alone say nothing of the others"
        before = {claim.id for claim in life.claims()}
        life.change(requirements=of_type(AFTER))
        with counted(life):
            took = life.until(lambda: life.types() == {AFTER} and len(life.yard.claims("fixed")) == QUANTITY, minutes)
        assert not before & {claim.id for claim in life.claims()}
        assert life.fewest >= QUANTITY - unavailable
        assert life.most <= QUANTITY + unavailable, "no more are replaced at a time"
        assert len(cloud.machines()) == QUANTITY, "nothing is left of the former ones"
        record_property(f"figure:rolling_ec2_{unavailable}", {"minutes": took, "fewest": life.fewest})
