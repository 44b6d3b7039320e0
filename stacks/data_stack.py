"""Stack of the resources that must outlive the service: the table, the key of what is sealed in it, the key of
machines' tokens, and the bucket of what is too large for the table."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.roles import acknowledge
from stacks.environment import environment_of, render
from stacks.names import TABLE_OUTPUT, Names


class DataStack(Stack):
    """One table on demand with the sparse indexes ``due`` and ``everything``. ``stream_arn`` is for the service."""

    def __init__(self, scope: Construct, config: StageConfig) -> None:
        names = Names(config.stage)
        super().__init__(
            scope,
            names.data_stack,
            description=f"Stockyard {config.stage}: the table",
            env=environment_of(config),
            termination_protection=True,
        )
        table = dynamodb.Table(
            self,
            "Table",
            table_name=names.table,
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            time_to_live_attribute="ttl",
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        for index, prefix in (("due", "due"), ("everything", "all")):
            table.add_global_secondary_index(
                index_name=index, partition_key=_text(f"{prefix}_pk"), sort_key=_text(f"{prefix}_sk")
            )
        resource = table.node.default_child
        if not isinstance(resource, dynamodb.CfnTable) or table.table_stream_arn is None:
            raise TypeError("the table has another shape than this stack expects")
        self.stream_arn = table.table_stream_arn
        key = kms.Key(
            self,
            "ClusterSecrets",
            alias=names.secrets_key,
            description=f"Stockyard {config.stage}: seals the secrets of clusters that stand in the table",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        tokens = secretsmanager.Secret(
            self,
            "MachineKey",
            secret_name=names.machine_key,
            description="Machines' tokens are derived from it: who reads it can join a cluster as a node that waits",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=RemovalPolicy.RETAIN,
        )
        acknowledge(
            tokens, "AwsSolutions-SMG4", "A new key makes nodes that are joining fail; an operator chooses when"
        )
        self._bucket(names)
        # Logical ids must never change: CloudFormation would make a new, empty table, and a key that opens nothing.
        resource.override_logical_id("Table")
        if isinstance(key.node.default_child, kms.CfnKey):
            key.node.default_child.override_logical_id("ClusterSecrets")
        if isinstance(tokens.node.default_child, secretsmanager.CfnSecret):
            tokens.node.default_child.override_logical_id("MachineKey")
        CfnOutput(self, TABLE_OUTPUT, value=table.table_name)

    def _bucket(self, names: Names) -> None:
        bucket = s3.Bucket(
            self,
            "Objects",
            bucket_name=render(names.bucket),
            versioned=True,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="EarlierVersions",
                    noncurrent_version_expiration=Duration.days(30),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                ),
                s3.LifecycleRule(id="Logs", prefix="logs/", expiration=Duration.days(90)),
                # Tasks and results: the record of a run is kept as long.
                s3.LifecycleRule(id="Runs", prefix="runs/", expiration=Duration.days(90)),
            ],
            removal_policy=RemovalPolicy.RETAIN,
        )
        acknowledge(bucket, "AwsSolutions-S1", "Our functions alone read it; what they do stands in their own log")
        if isinstance(bucket.node.default_child, s3.CfnBucket):
            bucket.node.default_child.override_logical_id("Objects")


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
