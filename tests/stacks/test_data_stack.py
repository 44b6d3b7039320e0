"""The table: kept, restorable, and never replaced by accident."""

from __future__ import annotations

from typing import Any


def test_the_table_is_all_there_is_and_its_logical_id_is_stable(assembly: Any) -> None:
    assert {name: one["Type"] for name, one in assembly.data["Resources"].items()} == {"Table": "AWS::DynamoDB::Table"}


def test_the_table_is_kept(assembly: Any) -> None:
    table = assembly.data["Resources"]["Table"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    properties = table["Properties"]
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_keys_stream_and_time_to_live(assembly: Any) -> None:
    properties = assembly.data["Resources"]["Table"]["Properties"]
    assert properties["TableName"] == "stockyard-dev"
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert properties["KeySchema"] == _keys("pk", "sk")
    assert {
        one["IndexName"]: (one["KeySchema"], one["Projection"]) for one in properties["GlobalSecondaryIndexes"]
    } == {
        "due": (_keys("due_pk", "due_sk"), {"ProjectionType": "ALL"}),
        "everything": (_keys("all_pk", "all_sk"), {"ProjectionType": "ALL"}),
    }


def test_it_is_encrypted_with_the_key_of_aws(assembly: Any) -> None:
    assert "SSESpecification" not in assembly.data["Resources"]["Table"]["Properties"]


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
