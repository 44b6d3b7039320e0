from __future__ import annotations
from typing import Any
from tests.unit.providers.clusters.eks.conftest import CREATE, DELETE

def test_thin(eks: Any) -> None:
    for phase in CREATE:
        if phase in ("node_groups", "addons","storage", "objects"): continue
        print(phase, eks.ensure(phase))
    print([(l.kind,l.key,l.vendor_id) for l in eks.ledger.lines()])
    for phase in DELETE:
        print(phase, eks.remove(phase))
    print(eks.living())
    assert 0
