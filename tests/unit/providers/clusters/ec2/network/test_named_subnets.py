"""Static placement: the subnets of an existing VPC that somebody names for each zone."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.ports import Finding
from stockyard.providers.clusters.ec2.network import network
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc


@pytest.fixture
def vpc(yard: Any) -> Vpc:
    return Vpc(yard)


def entries(vpc: Vpc, zones: str, *, public: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "zone": f"us-east-1{zone}",
            "private": vpc.subnet("private", zone),
            "public": vpc.subnet("public", zone) if public else None,
        }
        for zone in zones
    ]


def findings(yard: Any, vpc: Vpc, subnets: list[dict[str, Any]], **settings: Any) -> list[Finding]:
    yard.with_settings(vpc_id=vpc.id, subnets=subnets, **settings)
    return [f for f in yard.provider.inspect(yard.work("account")) if f.pointer.startswith("/settings")]


def faults(yard: Any, vpc: Vpc, subnets: list[dict[str, Any]], **settings: Any) -> dict[str, str]:
    return {f.pointer: f.detail for f in findings(yard, vpc, subnets, **settings) if not f.warning}


def tag(vpc: Vpc, subnet: str, *keys: tuple[str, str]) -> None:
    vpc.ec2.create_tags(Resources=[subnet], Tags=[{"Key": key, "Value": value} for key, value in keys])


def test_machines_and_balancer_stand_where_they_are_named(yard: Any, vpc: Vpc) -> None:
    subnets = entries(vpc, "cab")
    vpc.subnet("private", "d")
    assert faults(yard, vpc, subnets) == {}
    before = sorted(yard.living())
    facts = yard.create()
    subnet_zones = [(entry["private"], entry["zone"]) for entry in subnets]
    assert list(network.of(yard.provider._builder(yard.work("endpoint"))).places) == subnet_zones
    answer = vpc.ec2.describe_instances(InstanceIds=[facts["instance_id"]])["Reservations"][0]["Instances"]
    assert answer[0]["SubnetId"] == subnets[0]["private"]
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert {zone_entry["SubnetId"] for zone_entry in balancer["AvailabilityZones"]} == {
        entry["public"] for entry in subnets
    }
    yard.later(120)
    yard.delete()
    assert sorted(yard.living()) == before


def test_a_named_subnet_that_is_gone_is_the_tenants_own(yard: Any, vpc: Vpc) -> None:
    subnets = entries(vpc, "ab")
    assert faults(yard, vpc, subnets) == {}
    yard.ensure("network")
    yard.later(3600)
    lines = yard.ledger.lines()
    assert yard.provider.gone_parts(yard.work(""), lines) == []
    gone_subnet = subnets[1]["private"]
    yard.tenant().client("ec2").delete_subnet(SubnetId=gone_subnet)
    (part,) = yard.provider.gone_parts(yard.work(""), lines)
    assert (part.name, part.is_given) == (f"subnet {gone_subnet}", True)


def test_without_public_ones_the_endpoint_is_internal(yard: Any, vpc: Vpc) -> None:
    subnets = entries(vpc, "ab", public=False)
    (warning,) = [f for f in findings(yard, vpc, subnets) if f.pointer == "/settings/vpc_id"]
    assert warning.warning
    yard.create()
    (balancer,) = yard.tenant().client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert balancer["Scheme"] == "internal"
    assert len(balancer["AvailabilityZones"]) == 2


def test_each_tag_that_a_subnet_lacks_is_a_warning_of_its_own(yard: Any, vpc: Vpc) -> None:
    (entry,) = subnets = entries(vpc, "a")
    name, client = yard.cluster.name, yard.cluster.client_id
    of_api = "sigs.k8s.io/cluster-api-provider-aws"
    lacking = [(f.pointer.rsplit("/", 1)[-1], f.detail.split(" the tag ")[1]) for f in findings(yard, vpc, subnets)]
    of_cluster = [f"kubernetes.io/cluster/{name}=shared.", f"{of_api}/cluster/{name}=owned."]
    assert lacking == [
        *(("private", text) for text in of_cluster),
        *(("public", text) for text in ("kubernetes.io/role/elb=1.", f"{of_api}/role=public.", *of_cluster)),
    ]
    tag(vpc, entry["private"], (f"kubernetes.io/cluster/{client}", "shared"), (f"{of_api}/cluster/{name}", "owned"))
    tag(vpc, entry["public"], ("kubernetes.io/role/elb", "1"), (f"{of_api}/role", "common"))
    pointers = [f.pointer for f in findings(yard, vpc, subnets)]
    assert pointers == ["/settings/subnets/0/public"] * 3, "a tag of another value is none"
    tag(vpc, entry["public"], (f"{of_api}/role", "public"), (f"kubernetes.io/cluster/{name}", "shared"))
    tag(vpc, entry["public"], (f"{of_api}/cluster/{client}", "owned"))
    assert findings(yard, vpc, subnets) == []


def test_subnets_that_will_not_do_are_faults_at_their_pointers(yard: Any, vpc: Vpc) -> None:
    good, bad, worse = subnets = entries(vpc, "abc")
    elsewhere = Vpc(yard, "172.22.0.0/16").subnet("private", "a")
    good["private"] = elsewhere
    full = vpc.subnet("private", "b", size=28)
    bad["private"], bad["public"] = full, vpc.subnet("private", "b")
    worse["private"], worse["zone"] = vpc.subnet("dark", "c"), "us-east-1d"
    texts = faults(yard, vpc, subnets)
    fields = ("0/private", "1/private", "1/public", "2/private", "2/public")
    assert set(texts) == {f"/settings/subnets/{field}" for field in fields}
    assert f"is not in {vpc.id}" in texts["/settings/subnets/0/private"]
    assert "only 11 free addresses of the 16" in texts["/settings/subnets/1/private"]
    assert "is not public" in texts["/settings/subnets/1/public"]
    assert "is in us-east-1c, not in us-east-1d" in texts["/settings/subnets/2/private"]
    worse["zone"] = "us-east-1c"
    assert "no route to the internet" in faults(yard, vpc, subnets)["/settings/subnets/2/private"]
    crowded = vpc.subnet("public", "c", size=28)
    vpc.fill(crowded, 7)
    worse["public"] = crowded
    assert "only 7 free addresses of the 8" in faults(yard, vpc, subnets)["/settings/subnets/2/public"]


def test_a_vpc_that_is_not_there_is_the_only_fault(yard: Any, vpc: Vpc) -> None:
    subnets = entries(vpc, "a")
    yard.with_settings(vpc_id="vpc-01234567", subnets=subnets)
    (fault,) = yard.provider.inspect(yard.work("account"))
    assert (fault.pointer, fault.warning) == ("/settings/vpc_id", False)


def test_a_public_control_plane_needs_public_ones(yard: Any, vpc: Vpc) -> None:
    subnets = entries(vpc, "a", public=False)
    assert set(faults(yard, vpc, subnets, public_control_plane=True)) == {"/settings/subnets/0/public"}
