"""The table: kept, restorable, and never replaced by accident."""

from __future__ import annotations

from typing import Any

from stockyard.adapters.dynamodb.keys import RUN_LOG_DAYS


def test_data_stack_has_only_the_table_two_keys_and_a_bucket_with_stable_logical_ids(assembly: Any) -> None:
    kinds = {name: resource["Type"] for name, resource in assembly.data["Resources"].items()}
    assert kinds.pop("Table") == "AWS::DynamoDB::Table"
    assert kinds.pop("ClusterSecrets") == "AWS::KMS::Key"
    assert kinds.pop("MachineKey") == "AWS::SecretsManager::Secret"
    assert kinds.pop("Objects") == "AWS::S3::Bucket"
    assert sorted(kinds.values()) == ["AWS::KMS::Alias", "AWS::S3::BucketPolicy"]


def test_the_bucket_is_private_versioned_sealed_and_retained(assembly: Any) -> None:
    bucket = assembly.data["Resources"]["Objects"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    properties = bucket["Properties"]
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    [encryption] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    rules = {rule["Id"]: rule for rule in properties["LifecycleConfiguration"]["Rules"]}
    assert rules["EarlierVersions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert (rules["Logs"]["Prefix"], rules["Logs"]["ExpirationInDays"]) == ("logs/", RUN_LOG_DAYS)
    [policy] = (part for part in assembly.data["Resources"].values() if part["Type"] == "AWS::S3::BucketPolicy")
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    assert {statement["Effect"] for statement in statements} == {"Deny"}


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
