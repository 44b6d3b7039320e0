"""Runs compositions of EKSClusters: ``python tests/conformance/eks.py FILE...``.

Each case's manifest is applied in one process to the local cloud; when the cluster is ready, its status, and what
stands in the account and in the cluster, are compared with what the original composes. docs/eks.md has the table of
kinds, and what is not compared. Prints a line per failing case and one closing line for all files; exit 1 if any
failed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "layers" / "common" / "python"))

import boto3
from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from local.aws.corrections.compute.reservations import Reservation, reservation_backends
from stockyard import wiring
from stockyard.domain.clusters.manifests import ACCOUNT
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import StockyardError
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.clusters import published_manifest
from stockyard.operations.manifests.desired import read_desired
from stockyard.ports import Create
from stockyard.providers.clusters.eks.names import cluster_name
from stockyard.providers.clusters.eks.network import WITHOUT_CONTROL_PLANES
from tests.conformance.eks_references import lead
from tests.conformance.eks_stands import Account, Thing
from tests.harness.crash.cells import carry_on
from tests.harness.crash.ec2 import TENANT_ACCOUNT
from tests.harness.crash.eks import BACKENDS, CrashEks
from tests.harness.crash.world import TENANT, CrashWorld, crash_world
from tests.harness.worlds.inprocess import credentials

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
"""When the clusters are made: EKS has the versions of that day."""
ACTOR = "user:conformance"
OWN_MACHINERY = frozenset(
    {"ClusterAuth", "ProviderConfig", "ClusterProviderConfig", "ClusterUsage", "Usage", "Release"}
)
AUTOSCALER = "cluster-autoscaler"
STORAGE_CLASS = "storage-class"
FIELDS = frozenset({"case", "input", "status", "resources"})
ROUNDS = 12
_PLACEHOLDERS: Mapping[str, str] = {"sg-0efa": "sg:efa", "sg-0cluster": "sg:cluster", "fs-0abc123": "filesystem"}
"""Ids that the original has observed -> what they are of."""


class Different(Exception):
    """Difference between the expected value and the present one."""


def run(path: Path) -> list[tuple[str, str | None]]:
    """The cases of a file, each with what is wrong with it or None."""
    cases = json.loads(path.read_text(encoding="utf-8"))
    with crash_world(CrashEks, lean=True) as world:
        return [(str(case.get("case", number)), problem(world, case, number)) for number, case in enumerate(cases)]


def problem(world: CrashWorld, case: Mapping[str, Any], seed: int) -> str | None:
    """Fault of the case; None when it passes."""
    try:
        unknown = sorted(set(case) - FIELDS)
        if unknown:
            raise Different(f"unknown field {', '.join(unknown)}")
        cluster = ready(world, case["input"], seed)
        status = published_manifest(cluster)["status"]
        expected = case["status"].get("status", case["status"])
        if status != expected:
            raise Different(f"status: expected {expected}, came {status}")
        compare(compared(case["resources"]), things(world, cluster), cluster)
    except Different as different:
        return str(different)
    except (KeyError, ValueError, IndexError) as fault:
        return f"cannot be read: {type(fault).__name__} {fault}"
    except StockyardError as refused:
        faults = [f"{fault.pointer}: {fault.detail}" for fault in getattr(refused, "errors", ())]
        return f"{refused.error_type}: {'; '.join(faults) or refused.detail}"
    return None


# --- the cluster ------------------------------------------------------------------------------------------------------


def ready(world: CrashWorld, manifest: Mapping[str, Any], seed: int) -> Cluster:
    """The cluster of the manifest, applied and ready in an account that has what the manifest names."""
    world.reset(seed + 1)
    world.clock.moment = NOW
    for backends in (ec2_backends, *BACKENDS):  # the world forgets one region alone
        backends[TENANT_ACCOUNT][manifest["spec"]["region"]].reset()
    services = wiring.services(TENANT)
    _make_account(world, manifest)
    _make_reservations(manifest)
    _make_zones(manifest)
    _offer_types(manifest)
    apply_manifests(services, read_desired(services, [manifest], ACTOR, admin=False), ACTOR, "conformance")
    for _ in range(ROUNDS):
        carry_on(world)
        cluster, operation = world.cluster(), world.operation()
        if cluster is not None and cluster.status == "ready":
            return cluster
        if operation is not None and operation.error is not None:
            raise Different(f"{operation.error.phase}: {operation.error.cause}")
    raise Different("the cluster does not become ready")


def _make_account(world: CrashWorld, manifest: Mapping[str, Any]) -> None:
    """Another account of the name or number that the manifest has."""
    label = manifest["metadata"].get("labels", {}).get(ACCOUNT, "")
    credentials_name = manifest["spec"].get("credentials", {}).get("name", "default")
    name = label or ("" if credentials_name == "default" else credentials_name)
    first: CloudAccount = world.store.get(CloudAccount, "1")
    if name and name not in (first.id, first.name):
        number = name if name.isdecimal() else "2"
        fields = {field: getattr(first, field) for field in first.__dataclass_fields__}
        world.store.commit(Create(CloudAccount(**{**fields, "id": number, "name": name, "version": 1})))


def _make_reservations(manifest: Mapping[str, Any]) -> None:
    spec = manifest["spec"]
    backend = reservation_backends[TENANT_ACCOUNT][spec["region"]]
    backend.reservations.clear()
    for pool in spec["nodePools"]:
        reservation = pool.get("capacityBlock", {}).get("capacityReservationId")
        if reservation:
            count = max(pool.get("maxNodeCount", 8), pool.get("nodeCount", 1), 1)
            zone, begin = pool["zones"][0], NOW - timedelta(days=1)
            backend.reservations[reservation] = Reservation(
                reservation, pool["instanceType"], zone, count, begin, NOW + timedelta(days=30), is_block=True
            )


def _make_zones(manifest: Mapping[str, Any]) -> None:
    """The region has as many zones as the original takes, by their letters, and EKS has control planes in all."""
    region = manifest["spec"]["region"]
    there = {zone.name: zone for zone in RegionsAndZonesBackend.zones[region]}
    subnets = manifest["spec"].get("networking", {}).get("subnetCidrs", ())
    for letter, _ in zip("abcdef", subnets, strict=False):
        name = f"{region}{letter}"
        if name not in there or there[name].zone_id in WITHOUT_CONTROL_PLANES:
            there[name] = Zone(name, region, f"{region}-az-{letter}")
    RegionsAndZonesBackend.zones[region][:] = [there[name] for name in sorted(there)]


def _offer_types(manifest: Mapping[str, Any]) -> None:
    """The zones of the pools offer their types, whatever moto's list of the real ones says."""
    region = manifest["spec"]["region"]
    for pool in manifest["spec"]["nodePools"]:
        kind = pool["instanceType"]
        locations_by_type = {
            "region": [region],
            "availability-zone": pool.get("zones", [f"{region}{c}" for c in "abcdef"]),
        }
        for location_type, locations in locations_by_type.items():
            offerings = INSTANCE_TYPE_OFFERINGS[location_type].setdefault(region, [])
            there = {entry["Location"] for entry in offerings if entry["InstanceType"] == kind}
            offerings += [
                {"InstanceType": kind, "Location": location} for location in locations if location not in there
            ]


def things(world: CrashWorld, cluster: Cluster) -> list[Thing]:
    """Things that stand for the cluster."""
    region = str(cluster.settings["region_name"])
    cloud: Any = world.cloud
    world.clock.advance(120)  # nothing is hidden any more

    def kubernetes(path: str) -> Any:
        return cloud._kube.request("GET", path, {"authorization": f"Bearer {cloud._token}"}, b"")[1]

    with _clients(region) as client:
        return list(Account(client, region, cluster_name(cluster), kubernetes).things())


@contextmanager
def _clients(region: str) -> Iterator[Any]:
    with ExitStack() as stack:
        stack.enter_context(credentials(TENANT_ACCOUNT))
        make: Any = boto3.client
        yield lambda service: make(service, region_name=region)


# --- the comparison ---------------------------------------------------------------------------------------------------


def compared(resources: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The resources of the original that are compared, by name."""
    return {
        name: resource
        for name, resource in resources.items()
        if resource["kind"] not in OWN_MACHINERY
        and AUTOSCALER not in name
        and (resource["kind"] != "Object" or STORAGE_CLASS in name)
    }


def compare(expected: Mapping[str, Mapping[str, Any]], standing: Sequence[Thing], cluster: Cluster) -> None:
    """Raises ``Different`` unless each kind is there as often, and each resource with its fields."""
    counts, present = Counter(r["kind"] for r in expected.values()), Counter(thing.kind for thing in standing)
    if counts != present:
        kinds = sorted(kind for kind in counts | present if counts[kind] != present[kind])
        raise Different("; ".join(f"{kind}: expected {counts[kind]}, came {present[kind]}" for kind in kinds))
    free = _free_cidrs(expected, cluster)
    remaining = list(standing)
    for name, resource in expected.items():
        fields = _resolved(resource.get("forProvider") or {}, resource["kind"], cluster)
        if fields.get("cidrBlock") in free and resource["kind"] == "Subnet":
            fields = {key: value for key, value in fields.items() if key != "cidrBlock"}
        ranked = sorted(
            (thing for thing in remaining if thing.kind == resource["kind"]),
            key=lambda thing, fields=fields: len(list(_differences(fields, thing.fields))),
        )
        differences = list(_differences(fields, ranked[0].fields))
        if differences:
            raise Different(f"{name}: {'; '.join(differences)}")
        remaining.remove(ranked[0])
    _check_subnets(standing, cluster)


def _free_cidrs(expected: Mapping[str, Mapping[str, Any]], cluster: Cluster) -> set[str]:
    """Ranges of the original's private subnets that overlap others or leave the VPC."""
    subnets = [r.get("forProvider") or {} for r in expected.values() if r["kind"] == "Subnet"]
    public = [IPv4Network(text) for text in cluster.settings["subnet_cidrs"]]
    free = set()
    for text in (str(s["cidrBlock"]) for s in subnets if "cidrBlock" in s and not s.get("mapPublicIpOnLaunch")):
        try:
            network = IPv4Network(text)
        except ValueError:
            free.add(text)
            continue
        inside = network.subnet_of(IPv4Network(cluster.settings["vpc_cidr"]))
        if not inside or any(network.overlaps(other) for other in public):
            free.add(text)
    return free


def _check_subnets(standing: Sequence[Thing], cluster: Cluster) -> None:
    networks = [IPv4Network(thing.fields["cidrBlock"]) for thing in standing if thing.kind == "Subnet"]
    vpc = IPv4Network(cluster.settings["vpc_cidr"])
    if any(not network.subnet_of(vpc) for network in networks):
        raise Different("a subnet leaves the VPC")
    if any(a.overlaps(b) for index, a in enumerate(networks) for b in networks[:index]):
        raise Different("subnets overlap")


def _differences(expected: Any, present: Any, pointer: str = "") -> Iterator[str]:
    """Places where an expected value differs: of objects only the fields that are given count."""
    if isinstance(expected, Mapping) and isinstance(present, Mapping):
        for name, value in expected.items():
            yield from _differences(value, present.get(name), f"{pointer}/{name}")
        if pointer == "/labels" and set(expected) != set(present):
            yield f"{pointer}: expected {dict(expected)}, came {dict(present)}"
    elif isinstance(expected, list) and isinstance(present, list) and len(expected) == len(present):
        for index, (value, other) in enumerate(zip(expected, present, strict=True)):
            yield from _differences(value, other, f"{pointer}/{index}")
    elif expected != present:
        yield f"{pointer}: expected {_text(expected)}, came {_text(present)}"


def _text(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


def _resolved(value: Any, kind: str, cluster: Cluster, key: str = "") -> Any:
    """The value with what its references lead to, and placeholders named."""
    if key.endswith(("Selector", "Ref", "Refs")):
        return lead(key, value, kind, cluster)
    if isinstance(value, Mapping):
        return {name: _resolved(inner, kind, cluster, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, kind, cluster) for inner in value]
    if key in ("assumeRolePolicy", "policy"):
        return json.loads(value)
    return _PLACEHOLDERS.get(value, value) if isinstance(value, str) else value


def main(paths: Sequence[str]) -> int:
    """Run the files; the exit code."""
    outcomes = [outcome for path in paths for outcome in run(Path(path))]
    for case, text in outcomes:
        if text is not None:
            print(f"FAILED {case}: {text}")
    failed = sum(text is not None for _, text in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
