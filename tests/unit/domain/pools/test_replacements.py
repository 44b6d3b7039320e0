"""Nodes that were to come in the place of others, and do not come."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.pools.disruption_records import IDLE, PROPOSED, REPLACING, ClusterDisruption
from stockyard.domain.pools.replacements import failed_replacements, failure_of
from stockyard.domain.records import NodeClaim

EARLY, DECIDED, LATE = (f"2026-01-31T12:00:0{second}.000Z" for second in range(3))
RECORD = ClusterDisruption(
    "clu_1", EARLY, EARLY, state=REPLACING, nodes=("ncl_old",), replacements=("ncl_new",), decided_at=DECIDED
)


def claim(id: str, **fields: object) -> NodeClaim:
    plain = NodeClaim(id=id, name=id, created_at=LATE, updated_at=LATE, phase="Failed", pool="web", message="No room.")
    return replace(plain, **fields)


def failed(record: ClusterDisruption, *claims: NodeClaim) -> set[str]:
    return set(failed_replacements(record, claims))


def test_only_the_failed_claims_of_the_decision_count() -> None:
    claims = claim("ncl_new"), claim("ncl_other"), claim("ncl_old", phase="Available")
    assert failed(RECORD, *claims) == {"ncl_new"}
    assert failed(RECORD, claim("ncl_new", phase="Pending")) == set()


def test_nothing_counts_before_a_decision_is_carried_out_nor_once_its_nodes_leave() -> None:
    assert failed(replace(RECORD, state=IDLE), claim("ncl_new")) == set()
    assert failed(replace(RECORD, state=PROPOSED), claim("ncl_new")) == set()
    assert failed(replace(RECORD, leaving=True), claim("ncl_new")) == set()


def test_where_pools_make_what_comes_their_failed_claims_since_the_decision_count() -> None:
    record, old = replace(RECORD, replacements=()), claim("ncl_old", phase="Available", created_at=EARLY)
    claims = claim("ncl_a", created_at=DECIDED), claim("ncl_b", created_at=EARLY), claim("ncl_c", pool="other")
    assert failed(record, old, *claims) == {"ncl_a"}


def test_a_failure_has_the_words_of_the_cloud_first_and_each_text_once() -> None:
    refusal = claim("ncl_new", last_refusal="InsufficientInstanceCapacity", type_ref="ec2.m5.large")
    assert failure_of(refusal) == {"message": "InsufficientInstanceCapacity No room.", "types": "ec2.m5.large"}
    assert failure_of(replace(refusal, last_refusal="No room"))["message"] == "No room."
