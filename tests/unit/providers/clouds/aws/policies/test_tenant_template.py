"""The tenant's template keeps within the limits of AWS, narrows its grants by tags and boundaries, and leaves out the
parts that are not chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from moto.cloudformation import parsing

from local.aws.permissions.policies import Ask, allowed_by
from stockyard.errors import Internal
from stockyard.providers.clouds.aws.policies import nodes as node_statements
from stockyard.providers.clouds.aws.policies import tenant_template
from tests.harness import tenant_stack
from tests.harness.worlds.stage import Stage


def test_policies_are_within_size_limit_of_iam(yard: Any) -> None:
    template = tenant_template.render(yard.account, "01KDVJXQ80000000000000000A", Stage(name_prefix="vantage-stage"))
    policies = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::IAM::ManagedPolicy"]
    assert len(policies) == 9
    for policy in policies:
        size = len(json.dumps(tenant_stack.handed_to_iam(policy["PolicyDocument"]), separators=(",", ":")))
        assert size <= 6144, f"a policy has {size} characters"


def test_a_file_of_the_template_is_within_the_size_limit_of_cloudformation(yard: Any) -> None:
    """A larger one has to be put into a bucket first, which the command of the documentation does not."""
    template = tenant_template.render(yard.account, "01KDVJXQ80000000000000000A", Stage(name_prefix="vantage-stage"))
    assert len(json.dumps(template, separators=(",", ":"))) <= 51200


def test_statements_have_no_wildcard_except_resources_of_reads(yard: Any) -> None:
    for statement in tenant_stack.statements(tenant_template.render(yard.account, "inst-1", Stage())):
        assert not [action for action in statement["Action"] if "*" in action]
        if "*" in statement["Resource"]:
            assert statement["Sid"] in READS
            assert all(a.split(":")[1].startswith(("Describe", "Get", "List")) for a in statement["Action"])


READS = ("Read", "ReadEks", "ReadGroups", "ReadReservations")
OURS_ON_EKS = (
    "CreateInClusters",
    "ChangeAccessentry",
    "ChangeAddon",
    "ChangeCluster",
    "ChangeNodegroup",
    "ChangePodidentityassociation",
    "AttachPolicies",
    "ActAsPeople",
    "ChangeOurFiles",
    "ChangeOurGroups",
    "RemoveInterfaces",
    "UseOurPlacement",
)


def test_creations_and_changes_require_our_tag(yard: Any) -> None:
    statements = {s["Sid"]: s for s in tenant_stack.statements(tenant_template.render(yard.account, "inst-1", Stage()))}
    creating = (
        "Create",
        "CreateEndpoint",
        "CreateBalancers",
        "CreateProfiles",
        "CreateBoundedRoles",
        "TagWhatIsCreated",
    )
    for sid in (
        *creating,
        "CreateSnapshotPolicies",
        "CreateFleets",
        "CreateSpotRequests",
        "CreateTemplates",
        "TagNewNodes",
        "TagSpotRequests",
        "CreateClusters",
        "CreateInClusters",
        "CreateEksRoles",
        "CreateFiles",
        "TagNewFiles",
        "MarkGroups",
        "MarkClusterGroups",
        "CreatePlacement",
        "TagNewPlacement",
    ):
        assert statements[sid]["Condition"]["StringEquals"]["aws:RequestTag/stockyard:installation"] == "inst-1", sid
    for sid in (
        "ChangeOurs",
        "ChangeOurBalancers",
        "FillBoundedRoles",
        "ChangeOurNodes",
        "UseOurTemplates",
        *OURS_ON_EKS,
    ):
        assert statements[sid]["Condition"]["StringEquals"]["aws:ResourceTag/stockyard:installation"] == "inst-1", sid
    for sid in ("CreateBoundedRoles", "FillBoundedRoles"):
        boundary = statements[sid]["Condition"]["StringEquals"]["iam:PermissionsBoundary"]
        assert boundary == {"Fn::Sub": "arn:${AWS::Partition}:iam::222222222222:policy/vantage-node-boundary-4c4afe32"}
    for sid in ("CreateEksRoles", "AttachPolicies"):
        boundary = statements[sid]["Condition"]["StringEquals"]["iam:PermissionsBoundary"]
        assert boundary == {"Fn::Sub": "arn:${AWS::Partition}:iam::222222222222:policy/vantage-eks-boundary-4c4afe32"}
    attached = tenant_stack.handed_to_iam(statements["AttachPolicies"]["Condition"]["ArnEquals"]["iam:PolicyARN"])
    assert {arn.rpartition("/")[2] for arn in attached} == {
        "AmazonEKSClusterPolicy",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryReadOnly",
        "AmazonEFSCSIDriverPolicy",
    }
    assert statements["PassPodRoles"]["Condition"]["StringEquals"] == {"iam:PassedToService": "pods.eks.amazonaws.com"}
    for sid in ("CreateClusters", "CreateSnapshotPolicies", "TagNewIdentities", "MarkGroups", "MarkMachines"):
        not_of_others = statements[sid]["Condition"]["StringEqualsIfExists"]
        assert not_of_others == {"aws:ResourceTag/stockyard:installation": "inst-1"}, sid
    passed = statements["PassRoles"]["Condition"]["StringEquals"]["iam:PassedToService"]
    assert passed == ["ec2.amazonaws.com", "eks.amazonaws.com"]


def test_creations_without_condition_are_absent(yard: Any) -> None:
    for statement in tenant_stack.statements(tenant_template.render(yard.account, "inst-1", Stage())):
        if "Condition" not in statement and statement["Sid"] not in READS:
            types = {text["Fn::Sub"].split(":", 5)[5].split("/")[0] for text in statement["Resource"]}
            for action in statement["Action"]:
                creating = {**tenant_template.CREATE_EC2, **node_statements.CREATE_NODES}
                assert not types & set(creating.get(action, ())), (statement["Sid"], action)


def test_reads_of_absent_identities_are_granted_without_path(yard: Any) -> None:
    """IAM checks a read of an absent thing against the ARN without its path; a denial would end a deletion."""
    statements = {s["Sid"]: s for s in tenant_stack.statements(tenant_template.render(yard.account, "inst-1", Stage()))}
    read = statements["ReadIdentities"]
    assert {action.split(":")[1][:3] for action in read["Action"]} == {"Get", "Lis"}
    assert [text["Fn::Sub"].split("::", 2)[-1].split(":", 1)[-1] for text in read["Resource"]] == [
        "role/stockyard/vantage-*-role",
        "instance-profile/stockyard/vantage-*-instance-profile",
        "role/vantage-*-role",
        "instance-profile/vantage-*-instance-profile",
    ]
    pathless = [s["Sid"] for s in statements.values() if any("role/vantage-" in str(r) for r in s["Resource"])]
    assert sorted(pathless) == ["PassSnapshotRole", "ReadIdentities"], (
        "only reading and handing on reach beyond our path"
    )


def test_role_trusts_our_functions_with_external_id_only(yard: Any) -> None:
    template = tenant_template.render(yard.account, "inst-1", Stage())
    role = template["Resources"]["Role"]["Properties"]
    trust = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "stockyard"
    assert len(trust) == 1
    assert trust[0]["Condition"] == {
        "StringEquals": {"sts:ExternalId": "ext-1"},
        "StringLike": {"aws:PrincipalArn": "arn:aws:iam::111111111111:role/Stockyard-dev-*"},
    }


def test_output_is_the_arn_of_the_role_where_there_is_one(yard: Any) -> None:
    keys = {"user_arn": "arn:aws:iam::111111111111:user/stockyard", "access_key_id": "AKIAIOSFODNN7EXAMPLE"}
    by_key = replace(yard.account, attributes=keys)
    outputs = [tenant_template.render(account, "inst-1", Stage())["Outputs"] for account in (yard.account, by_key)]
    assert outputs == [{"RoleArn": {"Value": {"Fn::GetAtt": ["Role", "Arn"]}}}, {}]


def test_an_account_that_is_registered_twice_takes_both_templates(yard: Any) -> None:
    first, second = (
        tenant_template.render(replace(yard.account, external_id=external_id), "inst-1", Stage())
        for external_id in ("ext-1", "ext-2")
    )
    names = [
        {resource["Properties"].get("ManagedPolicyName") for resource in template["Resources"].values()}
        for template in (first, second)
    ]
    assert names[0] & names[1] == {None}


BY_NAME = {"OurBuckets": ":::vantage-*-etcd", "KeepSnapshots": "/stockyard-etcd/*"}
"""Statement about S3, which has no condition on tags -> the names that it is narrowed to."""


def test_what_is_removed_or_changed_carries_our_tag(yard: Any) -> None:
    statements = tenant_stack.statements(tenant_template.render(yard.account, "inst-1", Stage()))
    changing = [s for s in statements if any(":Delete" in action or ":Detach" in action for action in s["Action"])]
    assert len(changing) >= 6
    # EFS ends the interfaces of its mount targets in the caller's name; nobody else can by this.
    (via_service,) = [s for s in changing if s["Sid"] == "RemoveTargetInterfaces"]
    assert via_service["Condition"] == {"Bool": {"aws:ViaAWSService": "true"}}
    for statement in changing:
        if statement is via_service:
            continue
        if statement["Sid"] in BY_NAME:
            assert all(BY_NAME[statement["Sid"]] in str(resource) for resource in statement["Resource"])
            # Of a bucket that is not there yet AWS documents no account.
            operator = "StringEqualsIfExists" if "s3:CreateBucket" in statement["Action"] else "StringEquals"
            assert statement["Condition"][operator] == {"aws:ResourceAccount": "222222222222"}
            continue
        assert statement["Condition"]["StringEquals"]["aws:ResourceTag/stockyard:installation"] == "inst-1", statement


def test_template_requires_principal(yard: Any) -> None:
    with pytest.raises(Internal):
        tenant_template.render(yard.account, "inst-1", Stage(principal_pattern=""))


def test_only_tags_of_a_clusters_owner_are_changed_on_what_is_there(yard: Any) -> None:
    """Somebody who may change our tags could make anything ours, or lose it. A call without keys means all tags."""
    template = tenant_template.render(yard.account, "inst-1", Stage())
    statements = [
        tenant_stack.handed_to_iam(statement)
        for statement in tenant_stack.statements(template)
        if "Retag" in statement["Sid"]
    ]
    mark = {"aws:ResourceTag/stockyard:installation": "inst-1"}
    volume, role = (
        "arn:aws-us-gov:ec2:us-gov-west-1:222222222222:volume/vol-1",
        "arn:aws-us-gov:iam::222222222222:role/stockyard/vantage-c-node-role",
    )
    for action, thing in (("ec2:DeleteTags", volume), ("ec2:CreateTags", volume), ("iam:UntagRole", role)):
        assert allowed_by(statements, Ask(action, thing, {**mark, "aws:TagKeys": ("team", "stage")}))
        assert not allowed_by(statements, Ask(action, thing, mark)), "no keys"
        assert not allowed_by(statements, Ask(action, thing, {"aws:TagKeys": ("team",)})), "not ours"
        for key in ("stockyard:installation", "kubernetes.io/cluster/c", "Name", "vantage-cluster"):
            assert not allowed_by(statements, Ask(action, thing, {**mark, "aws:TagKeys": ("team", key)})), key


ALWAYS = {"MachinePermissions", "NodePermissions", "TagPermissions", "Role"}
OF_PART = {
    "kubeadm": {"Boundary", "KubeadmPermissions", "SnapshotRole"},
    "eks": {"EksBoundary", "EksPermissions", "EksRolePermissions", "GroupPermissions"},
    "efs": set(),
    "capacity-blocks": set(),
}


@pytest.mark.parametrize(
    ("parameters", "features"),
    [
        ({}, "kubeadm eks efs capacity-blocks"),
        ({"Kubeadm": "no"}, "eks efs capacity-blocks"),
        ({"Eks": "no"}, "kubeadm"),
        ({"Efs": "no"}, "kubeadm eks capacity-blocks"),
        ({"CapacityBlocks": "no"}, "kubeadm eks efs"),
        ({"Kubeadm": "no", "Efs": "no", "CapacityBlocks": "no"}, "eks"),
        ({"Kubeadm": "no", "Eks": "no"}, ""),
    ],
)
def test_a_part_that_is_left_out_is_neither_made_nor_attached_nor_told(
    yard: Any, parameters: dict[str, str], features: str
) -> None:
    template = tenant_template.render(yard.account, "inst-1", Stage())
    expected = ALWAYS.union(*(OF_PART[feature] for feature in features.split()))
    assert set(tenant_stack.resources(template, **parameters)) == expected
    attached = tenant_stack.attached(template, **parameters)
    assert sorted(attached) == sorted(name for name in expected if name.endswith("Permissions"))
    assert len(attached) <= 7, "IAM attaches ten, and organizations attach some of their own"
    sids = {statement["Sid"] for statement in tenant_stack.statements(template, parameters=parameters)}
    for feature, sid in {"efs": "ChangeOurFiles", "capacity-blocks": "UseReservations"}.items():
        assert (sid in sids) is (feature in features.split())
    tags = tenant_stack.role_tags(template, **parameters)
    assert tags["stockyard:features"] == f"common {features}".strip()


def test_parameters_are_choices_that_are_yes_unless_somebody_says_no(yard: Any) -> None:
    parameters = tenant_template.render(yard.account, "inst-1", Stage())["Parameters"]
    assert list(parameters) == ["Kubeadm", "Eks", "Efs", "CapacityBlocks", "EarlierEks"]
    assert {name for name, parameter in parameters.items() if parameter["Default"] == "no"} == {"EarlierEks"}
    for parameter in parameters.values():
        assert parameter["Type"] == "String"
        assert parameter["AllowedValues"] == ["yes", "no"]
        assert parameter["Description"].endswith(".")


@pytest.mark.parametrize("choices", [{}, {"Kubeadm": "no", "CapacityBlocks": "no"}])
def test_cloudformation_makes_what_was_chosen(
    yard: Any, choices: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conditions and the tag, by an implementation that is not ours: moto's, which attaches nothing to the role. It
    keeps in lists what AWS leaves out for AWS::NoValue."""
    original = parsing.clean_json

    def clean_json(value: Any, resources: Any) -> Any:
        cleaned = original(value, resources)
        return [item for item in cleaned if item is not None] if isinstance(cleaned, list) else cleaned

    monkeypatch.setattr(parsing, "clean_json", clean_json)
    iam, formation = yard.tenant().client("iam"), yard.tenant().client("cloudformation")
    iam.delete_role(RoleName="stockyard")
    template = tenant_template.render(yard.account, "inst-1", Stage())
    formation.create_stack(
        StackName="stockyard-role",
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in choices.items()],
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    summaries = formation.list_stack_resources(StackName="stockyard-role")["StackResourceSummaries"]
    # moto lists a resource whose condition does not hold without its name.
    present = {summary["LogicalResourceId"] for summary in summaries} - {""}
    assert present == set(tenant_stack.resources(template, **choices))
    tags = {pair["Key"]: pair["Value"] for pair in iam.list_role_tags(RoleName="stockyard")["Tags"]}
    assert tags == tenant_stack.role_tags(template, **choices)
