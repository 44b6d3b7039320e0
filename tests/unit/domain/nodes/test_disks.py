"""Types are counted with the usual disk; a pool's own disk changes what its nodes have, and what its claims may ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.nodes.disks import STORAGE, USUAL_GIB, kept_gib, of_catalogue, with_disk
from stockyard.domain.nodes.node_types import Declaration, NodeType, node_type_of
from stockyard.domain.values.quantities import milli

GIB = 2**30 * 1000


def kind(disk: int | None = USUAL_GIB) -> NodeType:
    storage = {} if disk is None else {STORAGE: f"{disk}Gi"}
    overhead = {} if disk is None else {STORAGE: f"{kept_gib(disk)}Gi"}
    return node_type_of(Declaration("yard", "m5", {"cpu": 2, "memory": "8Gi", **storage}, overhead))


@pytest.mark.parametrize(("disk", "for_pods"), [(20, 17), (50, 44), (200, 179)])
def test_a_node_has_the_disk_of_its_pool(disk: int, for_pods: int) -> None:
    sized = with_disk(kind(), {"root_disk_gib": str(disk)})
    assert (sized.capacity[STORAGE], sized.allocatable[STORAGE]) == (disk * GIB, for_pods * GIB)
    assert sized.capacity["cpu"] == kind().capacity["cpu"]
    assert sized.name == kind().name


@pytest.mark.parametrize("text", ["", "large", "-5", "1e3", "9" * 30, "²"])
def test_what_is_no_size_changes_nothing(text: str) -> None:
    assert with_disk(kind(), {"root_disk_gib": text}) == kind()
    assert of_catalogue({STORAGE: "60Gi"}, {"root_disk_gib": text}) == {STORAGE: "60Gi"}


def test_a_type_that_tells_nothing_of_a_disk_stays_so() -> None:
    assert with_disk(kind(None), {"root_disk_gib": "100"}) == kind(None)
    assert of_catalogue({"cpu": "1"}, {"root_disk_gib": "100"}) == {"cpu": "1"}


@given(disk=st.integers(20, 2000), wish=st.integers(0, 3000))
def test_a_claim_fits_the_catalogue_when_its_pods_fit_its_disk(disk: int, wish: int) -> None:
    properties = {"root_disk_gib": str(disk)}
    quantities = of_catalogue({"cpu": "1", STORAGE: f"{wish}Gi"}, properties)
    fits_catalogue = milli(quantities.get(STORAGE, "0")) <= kind().allocatable[STORAGE]
    assert fits_catalogue == (wish * GIB <= with_disk(kind(), properties).allocatable[STORAGE])
