"""The table: kept, restorable, and never replaced by accident."""

from __future__ import annotations

from typing import Any


def test_data_stack_has_only_the_table_and_two_keys_with_stable_logical_ids(assembly: Any) -> None:
    kinds = {name: resource["Type"] for name, resource in assembly.data["Resources"].items()}
    assert kinds.pop("Table") == "AWS::DynamoDB::Table"
    assert kinds.pop("ClusterSecrets") == "AWS::KMS::Key"
    assert kinds.pop("MachineKey") == "AWS::SecretsManager::Secret"
    assert list(kinds.values()) == ["AWS::KMS::Alias"]


def test_the_key_of_machines_tokens_is_generated_and_retained(assembly: Any) -> None:
    key = assembly.data["Resources"]["MachineKey"]
    assert key["DeletionPolicy"] == key["UpdateReplacePolicy"] == "Retain"
    assert key["Properties"]["Name"] == "stockyard/dev/machine-key"
    assert key["Properties"]["GenerateSecretString"]["PasswordLength"] >= 32
    assert "SecretString" not in key["Properties"]


def test_the_key_of_secrets_is_retained_and_rotated(assembly: Any) -> None:
    key = assembly.data["Resources"]["ClusterSecrets"]
    assert key["DeletionPolicy"] == key["UpdateReplacePolicy"] == "Retain"
    assert key["Properties"]["EnableKeyRotation"] is True
    (alias,) = (part for part in assembly.data["Resources"].values() if part["Type"] == "AWS::KMS::Alias")
    assert alias["Properties"]["AliasName"] == "alias/stockyard-dev-cluster-secrets"


def test_table_is_retained_and_protected(assembly: Any) -> None:
    table = assembly.data["Resources"]["Table"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    properties = table["Properties"]
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_table_has_keys_stream_and_time_to_live(assembly: Any) -> None:
    properties = assembly.data["Resources"]["Table"]["Properties"]
    assert properties["TableName"] == "stockyard-dev"
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert properties["KeySchema"] == _keys("pk", "sk")
    assert {
        index["IndexName"]: (index["KeySchema"], index["Projection"]) for index in properties["GlobalSecondaryIndexes"]
    } == {
        "due": (_keys("due_pk", "due_sk"), {"ProjectionType": "ALL"}),
        "everything": (_keys("all_pk", "all_sk"), {"ProjectionType": "ALL"}),
    }


def test_table_is_encrypted_with_aws_owned_key(assembly: Any) -> None:
    assert "SSESpecification" not in assembly.data["Resources"]["Table"]["Properties"]


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
