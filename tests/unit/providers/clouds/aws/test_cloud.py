"""Answers of an AWS account about machines in it."""

from __future__ import annotations

import boto3

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.providers.clouds.aws.cloud import AwsCloud
from stockyard.providers.clusters.ec2 import planning
from tests.harness.worlds.stage import Stage
from tests.unit.operations.conftest import MemoryPrices


def test_machines_prove_the_role_that_the_driver_makes_in_the_account() -> None:
    arn = "arn:aws:iam::222222222222:role/stockyard"
    account = CloudAccount("1", "aws", "a", "", {"role_arn": arn}, "ext", "verified", "", "t", "t")
    settings = {"key_pair": "my-key", "region_name": "us-east-1", "cloud_controllers": True}
    cluster = Cluster("clu_1", "c", "d", "k8s", "aws", 1, "acme-c-0123456789ab", "preparing", settings, "t", "t")
    number, roles = AwsCloud(Stage(), boto3.Session).machine_roles(account, cluster)
    assert number == "222222222222"
    creates = planning.plan(cluster, MemoryPrices(), Stage().name_prefix).creates
    assert sorted(roles) == sorted(name for kind, name in creates if kind == "iam role")
