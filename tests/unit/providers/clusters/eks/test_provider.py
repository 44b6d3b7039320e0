
from typing import Any
from tests.unit.providers.clusters.eks.conftest import CREATE, DELETE, settings, H100
from dataclasses import replace
def test_thin(eks: Any, run: Any, api: Any) -> None:
    eks.cluster = replace(eks.cluster, settings=settings(node_groups=[H100, {**H100, "name": "efa", "fabric": "efa"}]))
    run("objects")
    print([(l.kind,l.key,l.vendor_id) for l in eks.ledger.lines()])
    print(api.objects.keys())
    for phase in DELETE:
        print(phase, eks.remove(phase))
    print(eks.living())
    assert 0
