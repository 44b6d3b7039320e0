"""Quick answers are equal to moto's, and tags from the index to moto's own tags."""

from __future__ import annotations

from typing import Any

import boto3
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.answers import quick_answers
from tests.harness.worlds.inprocess import credentials


def make_resources() -> str:
    """Makes resources of several services, with tags, without, and with tags that are gone. Returns a VPC's id."""
    services: list[Any] = ["ec2", "elbv2", "iam", "sqs", "secretsmanager", "events"]
    clients: list[Any] = [boto3.client(service, REGION) for service in services]
    ec2, elb, iam, sqs, secrets, events = clients
    vpc: str = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "a", "Value": "b"}, {"Key": "c", "Value": ""}])
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "a", "Value": "b"}])
    ec2.delete_tags(Resources=[subnet], Tags=[{"Key": "a"}])
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "x & <y>"}]}]
    ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2, SubnetId=subnet, TagSpecifications=tags)
    role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}", Tags=[{"Key": "a", "Value": "b"}])
    iam.create_instance_profile(InstanceProfileName="p")
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName=role["Role"]["RoleName"])
    elb.create_target_group(Name="t", Protocol="TCP", Port=6443, VpcId=vpc)
    sqs.create_queue(QueueName="q", Attributes={"VisibilityTimeout": "5"})
    secrets.create_secret(Name="s", SecretString="x")
    events.put_rule(Name="r", EventPattern="{}")
    return vpc


def answers(vpc: str) -> list[Any]:
    """Answers of several services about these resources, in every format that moto writes."""
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    questions: list[tuple[str, str, dict[str, Any]]] = [
        ("ec2", "describe_vpcs", {}),
        ("ec2", "describe_vpcs", {"Filters": [{"Name": "tag:a", "Values": ["b"]}]}),
        ("ec2", "describe_subnets", {"Filters": of_vpc}),
        ("ec2", "describe_instances", {}),
        ("ec2", "describe_instances", {"Filters": [{"Name": "tag-key", "Values": ["Name"]}]}),
        ("ec2", "describe_volumes", {}),
        ("ec2", "describe_network_interfaces", {}),
        ("ec2", "describe_security_groups", {}),
        ("ec2", "describe_route_tables", {}),
        ("ec2", "describe_tags", {}),
        ("elbv2", "describe_target_groups", {}),
        ("iam", "list_roles", {}),
        ("iam", "list_instance_profiles", {}),
        ("sqs", "list_queues", {}),
        ("secretsmanager", "list_secrets", {}),
        ("events", "list_rules", {}),
        ("sts", "get_caller_identity", {}),
    ]
    contents = []
    for service, operation, parameters in questions:
        client: Any = boto3.client(service, REGION)  # type: ignore[call-overload]
        answer = getattr(client, operation)(**parameters)
        contents.append((operation, {name: value for name, value in answer.items() if name != "ResponseMetadata"}))
    return contents


def test_answers_are_the_same() -> None:
    with mock_aws(), credentials(OWN_ACCOUNT):
        vpc = make_resources()
        slow = answers(vpc)
        assert all(any(content.values()) for _, content in slow), "an empty answer compares nothing"
        with quick_answers():
            # The second time the names of the members are kept.
            assert answers(vpc) == slow
            assert answers(vpc) == slow
            assert boto3.client("ec2", REGION).create_vpc(CidrBlock="10.1.0.0/16")["Vpc"].get("Tags", []) == []
