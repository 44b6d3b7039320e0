"""The runner of compositions: a case passes that is true, and fails as soon as anything of it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from stockyard.providers.clusters.eks.names import child_name
from tests.conformance import eks
from tests.harness.crash.eks import CrashEks
from tests.harness.crash.world import CrashWorld, crash_world

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
REGION, NAME = "eu-north-1", "yard"
OWNER = {"matchControllerRef": True}
Case = dict[str, Any]


def selector(**labels: str) -> dict[str, Any]:
    return {
        **OWNER,
        "matchLabels": {f"modelplane.ai/{name.replace('_', '-')}": value for name, value in labels.items()},
    }


def of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "forProvider": fields or None}


def network() -> dict[str, Any]:
    resources = {
        "vpc": of("VPC", cidrBlock="10.4.0.0/16", enableDnsHostnames=True, enableDnsSupport=True, region=REGION),
        "igw": of("InternetGateway", vpcIdSelector=OWNER),
        "eip": of("EIP", domain="vpc"),
        "nat": of("NATGateway", subnetIdSelector=selector(subnet_tier="public", zone=f"{REGION}a")),
        "out": of("Route", destinationCidrBlock="0.0.0.0/0", natGatewayIdSelector=OWNER),
        "in": of("Route", gatewayIdSelector=OWNER, routeTableIdSelector=selector(subnet_tier="public")),
        "public": of("RouteTable", vpcIdSelector=OWNER),
        "private": of("RouteTable"),
    }
    for number, zone in enumerate((f"{REGION}a", f"{REGION}b")):
        for tier, third in (("public", 16 * number), ("private", 16 * number + 48)):
            cidr = f"10.4.{third}.0/20"
            resources[f"{tier}-{number}"] = of("Subnet", availabilityZone=zone, cidrBlock=cidr, vpcIdSelector=OWNER)
            subnet = selector(subnet_tier=tier, zone=zone)
            resources[f"{tier}-link-{number}"] = of("RouteTableAssociation", subnetIdSelector=subnet)
        name = child_name(NAME, f"private-subnet-{zone}")
        resources[f"mount-{number}"] = of(
            "MountTarget", subnetIdRef={"name": name}, securityGroupsSelector=selector(sg_role="efs")
        )
    return resources


def roles() -> dict[str, Any]:
    policies = {
        "cluster": ("AmazonEKSClusterPolicy",),
        "node": ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"),
        "efs-csi": ("service-role/AmazonEFSCSIDriverPolicy",),
    }
    services = {"cluster": "eks", "node": "ec2", "efs-csi": "pods.eks"}
    resources = {}
    for use, attached in policies.items():
        actions: Any = ["sts:AssumeRole", "sts:TagSession"] if use == "efs-csi" else "sts:AssumeRole"
        principal = {"Service": f"{services[use]}.amazonaws.com"}
        document = {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": actions}]}
        resources[f"role-{use}"] = of("Role", assumeRolePolicy=json.dumps(document))
        for policy in attached:
            arn, role = f"arn:aws:iam::aws:policy/{policy}", selector(iam_role=use)
            resources[f"attach-{policy}"] = of("RolePolicyAttachment", policyArn=arn, roleSelector=role)
    return resources


def cluster() -> dict[str, Any]:
    subnets = [{"name": child_name(NAME, f"private-subnet-{REGION}b")}]
    template = child_name(NAME, "lt-big")
    interface = {"deviceIndex": 0.0, "interfaceType": "efa", "securityGroups": ["sg-0efa", "sg-0cluster"]}
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-0b"}}
    fabric = selector(fabric="EFA")
    parameters = {"fileSystemId": "fs-0abc123", "directoryPerms": "700"}
    return {
        "cluster": of("Cluster", version="1.36", vpcConfig={"endpointPublicAccess": True, "subnetIdSelector": OWNER}),
        "system": of("NodeGroup", labels={"modelplane.ai/pool": "system"}, scalingConfig={"minSize": 1.0}),
        "big": of(
            "NodeGroup",
            capacityType="CAPACITY_BLOCK",
            launchTemplate={"name": template, "version": "$Latest"},
            nodeRoleArnSelector=selector(iam_role="node"),
            subnetIdRefs=subnets,
            taint=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
        ),
        "template": of(
            "LaunchTemplate", name=template, networkInterfaces=[interface], capacityReservationSpecification=target
        ),
        "addons": of("Addon", addonName="vpc-cni"),
        **{f"addon-{name}": of("Addon") for name in ("kube-proxy", "coredns", "identity", "efs")},
        "identity": of("PodIdentityAssociation", namespace="kube-system", roleArnSelector=selector(iam_role="efs-csi")),
        "files": of("FileSystem", encrypted=True, throughputMode="elastic"),
        "efs": of("SecurityGroup", name=f"{NAME}-efs"),
        "nfs": of("SecurityGroupIngressRule", cidrIpv4="10.4.0.0/16", fromPort=2049.0, ipProtocol="tcp"),
        "efa": of("SecurityGroup", name=f"{NAME}-efa"),
        "efa-in": of("SecurityGroupIngressRule", ipProtocol="-1", referencedSecurityGroupIdSelector=fabric),
        "efa-out": of("SecurityGroupEgressRule", ipProtocol="-1", securityGroupIdSelector=fabric),
        "storage-class": of("Object", manifest={"metadata": {"name": "modelplane-rwx-efs"}, "parameters": parameters}),
        "provider-config": of("ProviderConfig"),
        "release-cluster-autoscaler": of("Release"),
        "iam-role-cluster-autoscaler": of("Role"),
    }


@pytest.fixture
def case() -> Case:
    pool = {
        "name": "big",
        "role": "GPU",
        "instanceType": "g6.8xlarge",
        "fabric": "EFA",
        "nodeCount": 0,
        "maxNodeCount": 2,
        "zones": [f"{REGION}b"],
        "gpu": {"acceleratorType": "nvidia-l4"},
        "capacityBlock": {"capacityReservationId": "cr-0b"},
    }
    spec = {
        "region": REGION,
        "networking": {"vpcCidr": "10.4.0.0/16", "subnetCidrs": ["10.4.0.0/20", "10.4.16.0/20"]},
        "credentials": {"name": "second"},
        "nodePools": [pool],
    }
    manifest = {
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "EKSCluster",
        "metadata": {"name": NAME, "namespace": "lab"},
        "spec": spec,
    }
    secret = {"type": "Kubeconfig", "name": child_name(NAME, "kubeconfig"), "key": "kubeconfig"}
    status = {"secrets": [secret], "cache": {"storageClassName": "modelplane-rwx-efs"}}
    resources = {**network(), **roles(), **cluster()}
    return {"case": "own", "input": manifest, "status": {"status": status}, "resources": resources}


@pytest.fixture(scope="module")
def world() -> Iterator[CrashWorld]:
    with crash_world(CrashEks, lean=True) as world_of_module:
        yield world_of_module


def test_a_true_case_passes(world: CrashWorld, case: Case) -> None:
    assert eks.problem(world, case, 0) is None


def _without(name: str) -> Callable[[Case], None]:
    def change(case: Case) -> None:
        del case["resources"][name]

    return change


def _field(name: str, *path: Any) -> Callable[[Case], None]:
    def change(case: Case) -> None:
        *parents, last, value = path
        target = case["resources"][name]["forProvider"]
        for part in parents:
            target = target[part]
        target[last] = value

    return change


WRONG: list[tuple[Callable[[Case], None], str]] = [
    (_without("nat"), "NATGateway: expected 0, came 1"),
    (_without("role-node"), "Role: expected 2, came 3"),
    (_field("vpc", "cidrBlock", "10.5.0.0/16"), "vpc: /cidrBlock"),
    (_field("private-0", "cidrBlock", "10.4.112.0/20"), "/cidrBlock: expected 10.4.112.0/20"),
    (_field("big", "taint", 0, "effect", "NO_EXECUTE"), "big: /taint/0/effect"),
    (_field("big", "subnetIdRefs", [{"name": child_name(NAME, f"private-subnet-{REGION}a")}]), "big: /subnetIdRefs"),
    (_field("big", "nodeRoleArnSelector", selector(iam_role="cluster")), "big: /nodeRoleArnSelector"),
    (_field("system", "labels", "extra", "x"), "system: /labels"),
    (_field("system", "labels", {}), "system: /labels"),
    (_field("template", "networkInterfaces", 0, "securityGroups", ["sg-0cluster", "sg-0efa"]), "securityGroups/0"),
    (_field("template", "instanceType", "g6.xlarge"), "template: /instanceType"),
    (_field("efa-in", "referencedSecurityGroupIdSelector", selector(sg_role="efs")), "efa-in: /referenced"),
    (_field("storage-class", "manifest", "parameters", "directoryPerms", "755"), "/manifest/parameters/directoryPerms"),
    (_field("mount-1", "subnetIdRef", {"name": "another"}), "cannot be read: KeyError"),
    (_field("cluster", "version", "1.35"), "cluster: /version: expected 1.35, came 1.36"),
    (lambda case: case.update(status={"secrets": []}), "status: expected {'secrets': []}"),
    (lambda case: case.update(more=1), "unknown field more"),
    (lambda case: case["input"]["spec"].update(kubernetesVersion="1.20"), "/0/spec/kubernetesVersion: must be"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_a_case_that_is_not_true_fails(
    world: CrashWorld, case: Case, change: Callable[[Case], None], words: str
) -> None:
    wrong = deepcopy(case)
    change(wrong)
    text = eks.problem(world, wrong, 0)
    assert text is not None
    assert words in text


def test_ranges_of_the_original_that_do_not_fit_are_not_compared(world: CrashWorld, case: Case) -> None:
    resources = case["resources"]
    case["input"]["spec"]["networking"]["subnetCidrs"] = ["10.4.0.0/20", "10.4.48.0/20"]
    resources["public-1"]["forProvider"]["cidrBlock"] = "10.4.48.0/20"
    resources["private-1"]["forProvider"] |= {"cidrBlock": "10.4.96.0/20", "mapPublicIpOnLaunch": False}
    resources["private-0"]["forProvider"] |= {"cidrBlock": "10.4.48.0/20", "mapPublicIpOnLaunch": False}
    assert eks.problem(world, case, 0) is None


def runner(path: Path) -> tuple[int, list[str]]:
    """The runner as a person starts it: exit code and lines."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "tests/conformance/eks.py", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False, timeout=120)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_the_last_line_counts_the_cases(case: Case, tmp_path: Path) -> None:
    wrong = {**deepcopy(case), "case": "wrong", "more": 1}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([case, wrong]), encoding="utf-8")
    assert runner(path) == (1, ["FAILED wrong: unknown field more", "1 passed, 1 failed, 0 skipped"])


def test_the_shared_compositions_pass() -> None:
    path = SHARED / "conformance" / "eks_compositions.json"
    if not path.is_file():
        pytest.skip("the shared compositions are not here")
    assert runner(path) == (0, ["6 passed, 0 failed, 0 skipped"])


def test_the_composed_examples_pass_with_every_field(world: CrashWorld) -> None:
    paths = sorted((SHARED / "examples" / "modelplane" / "composed").glob("*.json"))
    if not paths:
        pytest.skip("the composed examples are not here")
    for number, path in enumerate(paths):
        composed = json.loads(path.read_text(encoding="utf-8"))
        final = composed["second_pass_all_observed_ready"]
        resources = {
            name: {"kind": entry["manifest"]["kind"], "forProvider": entry["manifest"]["spec"].get("forProvider")}
            for name, entry in final["resources"].items()
            if "spec" in entry["manifest"]
        }
        case = {"case": path.stem, "input": composed["input"], "status": final["status"], "resources": resources}
        assert eks.problem(world, case, number) is None, path.stem
