"""Keys and attributes of a record in the table."""

from __future__ import annotations

from stockyard.adapters.dynamodb import keys
from stockyard.domain.records import DONE, AuditRecord

DAY = 86_400


def _record(outcome: str) -> AuditRecord:
    return AuditRecord("aud_1", "1970-01-01T00:00:00.000Z", "user:ann", "CreateCluster", "cluster/a", outcome, "r")


def test_the_record_of_a_refused_call_is_kept_for_a_week_others_for_more_than_a_year() -> None:
    assert keys.expiry(_record(DONE)) == 400 * DAY
    assert keys.expiry(_record("Forbidden")) == 7 * DAY
