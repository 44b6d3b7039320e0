"""A node that its vendor would make otherwise leaves as any drifted one does: within its pool's budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.operations.node_claims.comparisons import compare_machine
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption.conftest import Pods

FIXED = "fixed"


def test_a_machine_that_differs_is_replaced_when_a_budget_allows_it(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    # not on its class: what a class can do, a check of a protocol remembers
    source = pods.yard.nodes.services.node_sources["simulated"]
    monkeypatch.setattr(source, "compares", True)
    monkeypatch.setattr(source, "template_fingerprint", lambda *_: "commit-2", raising=False)
    monkeypatch.setattr(source, "drift", lambda *_: "image: noble instead of jammy", raising=False)
    pods.yard.pool(FIXED, quantity=2, disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]})
    pods.run(4)
    old = {claim.id for claim in pods.claims()}
    assert len(old) == 2
    for claim_id in old:
        assert compare_machine(pods.yard.nodes.services, claim_id, "commit-2") == "drifted"
    pods.tell()
    pods.run(15)
    assert {claim.id for claim in pods.claims()} == old
    pool = pods.yard.now(FIXED)
    opened = replace(pool, disruption={"budgets": [{"nodes": "1"}]}, version=pool.version + 1)
    pods.yard.nodes.services.store.commit(Replace(opened))
    monkeypatch.setattr(source, "drift", lambda *_: None, raising=False)
    pods.last_picture, pods.fewest = "", 10
    pods.run(40)
    assert not old & {claim.id for claim in pods.claims()}
    assert (len(pods.claims()), pods.fewest) == (2, 2)
