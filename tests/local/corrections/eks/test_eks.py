"""Our imitation of EKS: clusters, their updates, who may use them, add-ons."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from local.aws.corrections.eks.tables import POLICY_ARN
from local.aws.corrections.eks.things import planned_insights
from tests.harness.worlds.eks_setting import Setting, eks_setting, refusal

ACCOUNT = "123456789012"


@pytest.fixture(params=[False, True], ids=["direct", "wire"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    with eks_setting(wire=request.param) as setting:
        yield setting


def test_a_cluster_is_made_and_deleted_in_its_time(setting: Setting) -> None:
    setting.time.seconds = 10
    answer = setting.cluster(tags={"a": "b"})
    assert (answer["status"], "endpoint" in answer) == ("CREATING", False)
    assert refusal(setting.eks.delete_cluster, name="demo")[0] == "ResourceInUseException"
    assert refusal(setting.eks.create_addon, clusterName="demo", addonName="coredns")[0] == "InvalidRequestException"
    setting.time.now += 10
    cluster = setting.look()
    assert cluster["status"] == "ACTIVE"
    assert cluster["endpoint"].startswith("https://")
    assert base64.b64decode(cluster["certificateAuthority"]["data"]).startswith(b"-----BEGIN CERTIFICATE")
    assert cluster["resourcesVpcConfig"]["vpcId"] == setting.vpc
    assert cluster["upgradePolicy"] == {"supportType": "EXTENDED"}
    group = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    (described,) = setting.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert {"Key": "kubernetes.io/cluster/demo", "Value": "owned"} in described["Tags"]
    subnet = setting.subnets[0]
    assert refusal(setting.ec2.delete_subnet, SubnetId=subnet)[0] == "DependencyViolation"
    assert refusal(setting.ec2.delete_security_group, GroupId=group)[0] == "DependencyViolation"
    assert setting.eks.list_clusters()["clusters"] == ["demo"]
    assert setting.eks.delete_cluster(name="demo")["cluster"]["status"] == "DELETING"
    assert setting.look()["status"] == "DELETING"
    setting.time.now += 10
    assert refusal(setting.eks.describe_cluster, name="demo")[0] == "ResourceNotFoundException"
    assert refusal(setting.ec2.describe_security_groups, GroupIds=[group])[0] == "InvalidGroup.NotFound"
    setting.ec2.delete_subnet(SubnetId=subnet)


def test_what_cannot_be_is_refused_at_creation(setting: Setting) -> None:
    one_zone = {"subnetIds": setting.subnets[:1]}
    for fields, text in (
        ({"version": "1.12"}, "unsupported Kubernetes version"),
        ({"version": "1.31", "upgradePolicy": {"supportType": "STANDARD"}}, "standard support"),
        ({"roleArn": setting.node_role}, "could not be assumed"),
        ({"resourcesVpcConfig": one_zone}, "two different AZs"),
        ({"resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]}}, "does not exist"),
        (
            {"resourcesVpcConfig": {"subnetIds": setting.subnets, "publicAccessCidrs": ["10.0.0.0/99"]}},
            "CIDRs are not valid",
        ),
        (
            {"resourcesVpcConfig": {"subnetIds": setting.subnets, "publicAccessCidrs": ["10.0.0.0/8"]}},
            "CIDRs are not allowed",
        ),
    ):
        code, message = refusal(setting.cluster, **fields)
        assert code == "InvalidParameterException"
        assert text in message
    assert setting.eks.list_clusters()["clusters"] == []


def test_services_have_other_addresses_than_the_network(setting: Setting) -> None:
    network = {"serviceIpv4Cidr": "10.0.128.0/20"}
    code, message = refusal(setting.cluster, kubernetesNetworkConfig=network)
    assert (code, "overlaps" in message) == ("InvalidParameterException", True)
    assert setting.cluster()["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "172.20.0.0/16"
    other = setting.cluster("other", kubernetesNetworkConfig={"serviceIpv4Cidr": "10.100.0.0/16"})
    assert other["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "10.100.0.0/16"


def test_a_repeated_token_makes_one_cluster(setting: Setting) -> None:
    first = setting.cluster(clientRequestToken="t")
    assert setting.cluster(clientRequestToken="t")["createdAt"] == first["createdAt"]
    assert refusal(setting.cluster, clientRequestToken="t", version="1.34")[0] == "InvalidParameterException"
    assert refusal(setting.cluster, clientRequestToken="other")[0] == "ResourceInUseException"
    setting.eks.delete_cluster(name="demo")
    assert setting.eks.list_clusters()["clusters"] == []
    assert setting.cluster(clientRequestToken="t")["status"] == "CREATING"


def test_updates_come_one_after_the_other_and_one_minor_at_a_time(setting: Setting) -> None:
    setting.cluster(version="1.33")
    assert setting.look()["status"] == "ACTIVE"
    setting.time.seconds = 10
    eks = setting.eks
    code, message = refusal(eks.update_cluster_version, name="demo", version="1.35")
    assert (code, "from 1.33 to 1.35" in message) == ("InvalidParameterException", True)
    update = eks.update_cluster_version(name="demo", version="1.34")["update"]
    assert (update["status"], update["type"], setting.look()["status"]) == ("InProgress", "VersionUpdate", "UPDATING")
    assert setting.look()["version"] == "1.33"
    assert refusal(eks.update_cluster_version, name="demo", version="1.34")[0] == "ResourceInUseException"
    policy = {"supportType": "STANDARD"}
    assert refusal(eks.update_cluster_config, name="demo", upgradePolicy=policy)[0] == "ResourceInUseException"
    assert refusal(eks.delete_cluster, name="demo")[0] == "ResourceInUseException"
    setting.time.now += 10
    assert eks.describe_update(name="demo", updateId=update["id"])["update"]["status"] == "Successful"
    assert (setting.look()["version"], setting.look()["status"]) == ("1.34", "ACTIVE")
    assert eks.list_updates(name="demo")["updateIds"] == [update["id"]]
    missing = refusal(eks.describe_update, name="demo", updateId=update["id"], nodegroupName="system")
    assert missing[0] == "ResourceNotFoundException"


def test_a_configuration_changes_by_one_kind_of_field(setting: Setting) -> None:
    setting.cluster()
    eks, cidrs = setting.eks, {"publicAccessCidrs": ["203.0.113.0/24"], "endpointPrivateAccess": True}
    both = {"resourcesVpcConfig": cidrs, "upgradePolicy": {"supportType": "STANDARD"}}
    assert "Only one type" in refusal(eks.update_cluster_config, name="demo", **both)[1]
    eks.update_cluster_config(name="demo", resourcesVpcConfig=cidrs)
    assert cidrs.items() <= setting.look()["resourcesVpcConfig"].items()
    assert "already at the desired" in refusal(eks.update_cluster_config, name="demo", resourcesVpcConfig=cidrs)[1]
    eks.update_cluster_config(name="demo", accessConfig={"authenticationMode": "API"})
    back = {"authenticationMode": "API_AND_CONFIG_MAP"}
    assert setting.look()["accessConfig"]["authenticationMode"] == "API"
    assert "Unsupported authentication mode" in refusal(eks.update_cluster_config, name="demo", accessConfig=back)[1]
    none = {"endpointPublicAccess": False, "endpointPrivateAccess": False}
    assert refusal(eks.update_cluster_config, name="demo", resourcesVpcConfig=none)[0] == "InvalidParameterException"


def test_an_insight_with_an_error_stops_an_upgrade(setting: Setting) -> None:
    setting.cluster(version="1.34")
    eks = setting.eks
    assert eks.list_insights(clusterName="demo")["insights"] == []
    with planned_insights([{"name": "Deprecated APIs", "status": "ERROR"}]):
        (insight,) = eks.list_insights(clusterName="demo", filter={"statuses": ["ERROR"]})["insights"]
        assert insight["insightStatus"]["status"] == "ERROR"
        assert eks.list_insights(clusterName="demo", filter={"statuses": ["WARNING"]})["insights"] == []
        assert eks.describe_insight(clusterName="demo", id=insight["id"])["insight"]["name"] == "Deprecated APIs"
        assert "Deprecated APIs" in refusal(eks.update_cluster_version, name="demo", version="1.35")[1]
        eks.update_cluster_version(name="demo", version="1.35", force=True)
    assert setting.look()["version"] == "1.35"


def test_access_entries_admit_principals_by_policies(setting: Setting) -> None:
    setting.cluster()
    eks, role = setting.eks, setting.pod_role
    (creator,) = eks.list_access_entries(clusterName="demo")["accessEntries"]
    policies = eks.list_associated_access_policies(clusterName="demo", principalArn=creator)
    assert [p["policyArn"] for p in policies["associatedAccessPolicies"]] == [
        f"{POLICY_ARN}AmazonEKSClusterAdminPolicy"
    ]
    entry = {"clusterName": "demo", "principalArn": role}
    answer = eks.create_access_entry(**entry, kubernetesGroups=["people"], tags={"a": "b"})["accessEntry"]
    assert (answer["type"], answer["kubernetesGroups"], answer["tags"]) == ("STANDARD", ["people"], {"a": "b"})
    assert answer["username"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/pod/{{{{SessionName}}}}"
    assert refusal(eks.create_access_entry, **entry)[0] == "ResourceInUseException"
    stranger = {**entry, "principalArn": f"arn:aws:iam::{ACCOUNT}:role/nobody"}
    assert refusal(eks.create_access_entry, **stranger)[0] == "InvalidParameterException"
    assert refusal(eks.describe_access_entry, **stranger)[0] == "ResourceNotFoundException"
    view, scope = {"policyArn": f"{POLICY_ARN}AmazonEKSViewPolicy"}, {"type": "cluster"}
    unknown = {"policyArn": f"{POLICY_ARN}Nothing", "accessScope": scope}
    assert refusal(eks.associate_access_policy, **entry, **unknown)[0] == "InvalidParameterException"
    eks.associate_access_policy(**entry, **view, accessScope=scope)
    namespaced = eks.associate_access_policy(**entry, **view, accessScope={"type": "namespace", "namespaces": ["n"]})
    assert namespaced["associatedAccessPolicy"]["accessScope"] == {"type": "namespace", "namespaces": ["n"]}
    assert eks.list_access_entries(clusterName="demo", associatedPolicyArn=view["policyArn"])["accessEntries"] == [role]
    eks.disassociate_access_policy(**entry, **view)
    assert refusal(eks.disassociate_access_policy, **entry, **view)[0] == "ResourceNotFoundException"
    eks.update_access_entry(**entry, kubernetesGroups=[])
    assert eks.describe_access_entry(**entry)["accessEntry"]["kubernetesGroups"] == []
    eks.delete_access_entry(**entry)
    assert eks.list_access_entries(clusterName="demo")["accessEntries"] == [creator]
    node = {**entry, "type": "EC2_LINUX"}
    assert refusal(eks.create_access_entry, **node, kubernetesGroups=["people"])[0] == "InvalidParameterException"
    eks.create_access_entry(**node)
    assert refusal(eks.associate_access_policy, **entry, **view, accessScope=scope)[0] == "InvalidRequestException"


def test_without_the_api_mode_there_are_no_entries(setting: Setting) -> None:
    setting.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
    assert refusal(setting.eks.list_access_entries, clusterName="demo")[0] == "InvalidRequestException"
    setting.cluster(
        "bare", accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    )
    setting.look("bare")
    assert setting.eks.list_access_entries(clusterName="bare")["accessEntries"] == []


def test_addons_need_nodes_to_be_well(setting: Setting) -> None:
    setting.cluster()
    eks = setting.eks
    for name in ("vpc-cni", "coredns"):
        assert eks.create_addon(clusterName="demo", addonName=name)["addon"]["status"] == "CREATING"
    assert eks.list_addons(clusterName="demo")["addons"] == ["coredns", "vpc-cni"]
    assert eks.describe_addon(clusterName="demo", addonName="vpc-cni")["addon"]["status"] == "ACTIVE"
    unwell = eks.describe_addon(clusterName="demo", addonName="coredns")["addon"]
    assert (unwell["status"], unwell["health"]["issues"][0]["code"]) == ("DEGRADED", "InsufficientNumberOfReplicas")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}]}]
    image = setting.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    setting.ec2.run_instances(
        ImageId=image, MinCount=1, MaxCount=1, SubnetId=setting.subnets[0], TagSpecifications=tags
    )
    well = eks.describe_addon(clusterName="demo", addonName="coredns")["addon"]
    assert (well["status"], well["health"]["issues"]) == ("ACTIVE", [])
    addon = {"clusterName": "demo", "addonName": "coredns"}
    assert refusal(eks.create_addon, **addon)[0] == "ResourceInUseException"
    assert "version" in refusal(eks.update_addon, **addon, addonVersion="v0")[1]
    versions = eks.describe_addon_versions(addonName="coredns", kubernetesVersion="1.35")["addons"][0]["addonVersions"]
    older = versions[1]["addonVersion"]
    assert [v["compatibilities"][0]["defaultVersion"] for v in versions] == [True, False]
    update = eks.update_addon(**addon, addonVersion=older)["update"]
    assert (
        eks.describe_update(name="demo", updateId=update["id"], addonName="coredns")["update"]["type"] == "AddonUpdate"
    )
    assert eks.describe_addon(**addon)["addon"]["addonVersion"] == older
    assert eks.delete_addon(**addon)["addon"]["status"] == "DELETING"
    assert refusal(eks.describe_addon, **addon)[0] == "ResourceNotFoundException"
    assert "not supported" in refusal(eks.create_addon, clusterName="demo", addonName="nothing")[1]


def test_a_service_account_has_one_role(setting: Setting) -> None:
    setting.cluster()
    setting.look()
    eks = setting.eks
    account = {"clusterName": "demo", "namespace": "kube-system", "serviceAccount": "efs-csi-controller-sa"}
    wrong = refusal(eks.create_pod_identity_association, **account, roleArn=setting.node_role)
    assert wrong[0] == "InvalidParameterException"
    association = eks.create_pod_identity_association(**account, roleArn=setting.pod_role, tags={"a": "b"})[
        "association"
    ]
    again = refusal(eks.create_pod_identity_association, **account, roleArn=setting.pod_role)
    assert (again[0], association["associationId"] in again[1]) == ("ResourceInUseException", True)
    association_key = {"clusterName": "demo", "associationId": association["associationId"]}
    assert eks.describe_pod_identity_association(**association_key)["association"]["roleArn"] == setting.pod_role
    listed = eks.list_pod_identity_associations(clusterName="demo", namespace="kube-system")["associations"]
    assert [row["associationId"] for row in listed] == [association["associationId"]]
    assert eks.list_pod_identity_associations(clusterName="demo", namespace="other")["associations"] == []
    eks.delete_pod_identity_association(**association_key)
    assert refusal(eks.describe_pod_identity_association, **association_key)[0] == "ResourceNotFoundException"


def test_tags_are_changed_by_arn(setting: Setting) -> None:
    arn = setting.cluster(tags={"a": "b"})["arn"]
    setting.eks.tag_resource(resourceArn=arn, tags={"c": "d"})
    setting.eks.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert setting.eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"c": "d"}
    assert refusal(setting.eks.list_tags_for_resource, resourceArn=f"{arn}x")[0] == "ResourceNotFoundException"


def test_versions_are_told_with_their_support(setting: Setting) -> None:
    versions = setting.eks.describe_cluster_versions()["clusterVersions"]
    assert [row["clusterVersion"] for row in versions if row["defaultVersion"]] == ["1.35"]
    old = setting.eks.describe_cluster_versions(versionStatus="EXTENDED_SUPPORT")["clusterVersions"]
    assert {row["clusterVersion"] for row in old} == {"1.31", "1.32", "1.33"}
