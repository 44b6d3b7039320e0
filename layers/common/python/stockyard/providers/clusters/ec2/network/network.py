"""The network phase: our own VPC over the cluster's zones, or the tenant's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stockyard.domain.records import Resource
from stockyard.errors import VendorRefused
from stockyard.ports import CloudWork, Finding, Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import GIVEN_NETWORK
from stockyard.providers.clouds.aws.network import own_network
from stockyard.providers.clouds.aws.resources.making import PresentResource
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import vpc_cidr
from stockyard.providers.clusters.ec2.network import layout, named_subnets, tenant_network, zones
from stockyard.providers.clusters.ec2.network.layout import LETTERS, PRIVATE, PUBLIC
from stockyard.providers.clusters.ec2.network.network_configuration import has_nat_in_each_zone, is_given

PHASE = "network"
_FIRST_NAT, _FIRST_ADDRESS = "main", "nat"
"""What the gateway of the first zone, or of all, and its address are called."""
_ZONES_BEFORE = 2
"""How many zones the networks of earlier releases have."""


@dataclass(frozen=True, slots=True)
class Network(tenant_network.TenantNetwork):
    """Network as later phases need to know it; ``nats`` are the addresses of our gateways."""

    nats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _OwnNetwork:
    """Plan of our own network: the zones of its letters, and the subnets' ranges by name.

    A letter stays its zone's when the zone has left, as long as another subnet was laid out beside it. ``staying`` and
    ``leaving`` are places in ``zones``: of those that the settings want, and of those with subnets that they do not
    name any more.
    """

    zones: tuple[str, ...]
    ranges: Mapping[str, str]
    staying: tuple[int, ...]
    leaving: tuple[int, ...]
    gateways: tuple[int, ...]
    """The places of the zones with a NAT gateway."""

    @classmethod
    def of(cls, work: CloudWork, calls: Calls | None = None) -> _OwnNetwork:
        """With what the settings want, where ``calls`` can be made; else as it stands, by the ledger alone."""
        lines, cluster = _subnet_lines(work), work.cluster
        generations = [_generation(line) for line in lines.values() if line.detail.get("zones")]
        present = _zones_of(lines, generations)
        present_zones = [zone for index, zone in enumerate(present) if _has_subnet(lines, index)]
        wanted_zones = zones.cluster_zones(calls, cluster, present_zones) if calls is not None else present_zones
        named = [str(zone) for zone in cluster.settings.get("zones") or ()]
        names = layout.merged(present, wanted_zones)
        if len(names) > layout.MOST_ZONES:
            raise ValueError(f"has had subnets in {', '.join(present)}, and has no place for more")
        if any(not line.detail.get("zones") for line in lines.values()):
            generations.append(names[:_ZONES_BEFORE])
        ranges = layout.laid_out(vpc_cidr(cluster), layout.counts_of(generations, len(names)))
        staying = [names.index(zone) for zone in names if zone in wanted_zones and (not named or zone in named)]
        leaving = [names.index(zone) for zone in present_zones if names.index(zone) not in staying]
        gateways = staying if has_nat_in_each_zone(cluster.settings) else [0]
        return cls(tuple(names), ranges, tuple(staying), tuple(leaving), tuple(gateways))

    @property
    def occupied(self) -> frozenset[int]:
        """The places of zones whose gateway is wanted, or goes only with its zone."""
        return frozenset((*self.gateways, *self.leaving))

    def keys(self, tier: str) -> list[str]:
        """The names of the subnets of a tier."""
        return [layout.key(tier, index) for index in self.staying]


def ensure(builder: Builder) -> Outcome:
    """Make the network, or choose the given one. Not done while a NAT gateway comes up, or one too many goes."""
    if is_given(builder.work.cluster.settings):
        network = _tenant_network(builder)
        return Outcome(True, f"{network.vpc_id} and {', '.join(network.machine_subnets)} are used as they are")
    try:
        plan = _OwnNetwork.of(builder.work, builder.calls)
    except ValueError as error:
        raise VendorRefused(f"{vpc_cidr(builder.work.cluster)} {error}", hint="Name fewer zones.") from error
    vpc = own_network.vpc(builder, builder.name("vpc"), vpc_cidr(builder.work.cluster))
    gateway = own_network.internet_gateway(builder, builder.name("igw"), vpc)
    subnets = _subnets(builder, vpc, plan)
    public, private = ([subnets[key] for key in plan.keys(tier)] for tier in (PUBLIC, PRIVATE))
    tables = [_route_table(builder, PUBLIC, vpc, public, {"GatewayId": gateway})]
    gateways = {index: _nat_gateway(builder, index, subnets[layout.key(PUBLIC, index)]) for index in plan.gateways}
    pending = [nat.vendor_id for nat in gateways.values() if nat.pending]
    if pending:
        noun = "NAT gateway" if len(pending) == 1 else "NAT gateways"
        return Outcome(False, f"{noun} {', '.join(pending)} coming up")
    # The table of the first zone last: the ledger then still tells which subnets the others take from it.
    for index in reversed(plan.gateways):
        served = private if len(plan.gateways) == 1 else [subnets[layout.key(PRIVATE, index)]]
        target = {"NatGatewayId": gateways[index].vendor_id}
        tables.append(_route_table(builder, _table_key(index), vpc, served, target))
    note = own_network.s3_endpoint(builder, builder.name("s3"), vpc, tables)
    waiting = _without(builder, [index for index in range(layout.MOST_ZONES) if index not in plan.occupied])
    if waiting:
        return Outcome(False, waiting)
    names = [plan.zones[index] for index in plan.staying]
    return Outcome(True, f"{vpc} with {2 * len(names)} subnets in {', '.join(names)}{note}")


def first_zone(builder: Builder) -> str:
    """The zone that the network was begun in; empty where nothing is known. Nobody is asked."""
    return next(iter(_OwnNetwork.of(builder.work).zones), "")


def growth_fault(builder: Builder) -> str | None:
    """Reason why the network cannot have the zones that the settings want; None when it can."""
    try:
        _OwnNetwork.of(builder.work, builder.calls)
    except ValueError as error:
        return f"{vpc_cidr(builder.work.cluster)} {error}."
    return None


def given_faults(builder: Builder) -> Iterator[Finding]:
    """Subnets of a given VPC that the settings change in a zone where the cluster stands: its machines are there."""
    settings, line = builder.work.cluster.settings, builder.work.ledger.find(GIVEN_NETWORK.name, "main")
    if line is None or not settings.get("subnets"):
        return
    present = _network_of_line(line)
    by_zone = {zone: subnet for subnet, zone in present.places}
    tier = PUBLIC if settings.get("public_control_plane") else PRIVATE
    for index, entry in enumerate(settings["subnets"]):
        subnet = by_zone.get(str(entry["zone"]))
        if subnet not in (None, entry[tier]):
            text = f"The cluster stands in {subnet} in {entry['zone']}, and cannot change to {entry[tier]} there."
            yield Finding(f"/settings/subnets/{index}/{tier}", text)
        if present.public != bool(entry.get("public")):
            text = "cannot change whether the cluster has public subnets: the API's balancer was made for that."
            yield Finding(f"/settings/subnets/{index}/public", text)


def leaving_zones(work: CloudWork) -> list[str]:
    """The zones that the network stands in and the settings do not name any more. Nobody is asked."""
    settings = work.cluster.settings
    if is_given(settings):
        named = {str(entry["zone"]) for entry in settings.get("subnets") or ()}
        line = work.ledger.find(GIVEN_NETWORK.name, "main")
        places = _network_of_line(line).places if line is not None and named else ()
        return [zone for _, zone in places if zone and zone not in named]
    plan = _OwnNetwork.of(work)
    return [plan.zones[index] for index in plan.leaving]


def without_leaving(builder: Builder) -> str | None:
    """Remove what stands in zones that the settings do not name any more. What is waited for.

    The balancer has to have left them.
    """
    if is_given(builder.work.cluster.settings):
        return None
    leaving = _OwnNetwork.of(builder.work).leaving
    waiting = _without(builder, leaving) if leaving else None
    for tier in (PUBLIC, PRIVATE):
        for index in leaving:
            line = builder.work.ledger.find(ec2_kinds.SUBNET.name, layout.key(tier, index))
            waiting = waiting or (builder.remove(line) if line is not None else None)
    return waiting


def of(builder: Builder) -> Network:
    """The network as the ledger knows it. Raises ``VendorRefused`` when the network phase has not run."""
    ledger = builder.work.ledger
    choice = ledger.find(GIVEN_NETWORK.name, "main")
    if choice is not None:
        return _network_of_line(choice)

    def vendor_id(kind: str, key: str) -> str:
        line = ledger.find(kind, key)
        if line is None or line.state != "made":
            raise VendorRefused(f"{kind} {key} is not on the ledger", hint="Resume from the network phase.")
        return line.vendor_id

    cluster, plan = builder.work.cluster, _OwnNetwork.of(builder.work)
    if not plan.staying:
        raise VendorRefused("no subnet is on the ledger", hint="Resume from the network phase.")
    tier = PUBLIC if cluster.settings.get("public_control_plane") else PRIVATE
    machine_subnets = [vendor_id("subnet", key) for key in plan.keys(tier)]
    places = tuple(zip(machine_subnets, (plan.zones[index] for index in plan.staying), strict=True))
    # Nobody comes from a zone that is being left, and its address will be somebody else's.
    keys = [_address_key(index) for index in range(1, layout.MOST_ZONES) if index not in plan.leaving]
    further = [line for line in ledger.lines() if line.kind == "address" and line.key in keys]
    addresses = [vendor_id("address", _FIRST_ADDRESS), *(line.vendor_id for line in further if line.state == "made")]
    answer = builder.calls.call("ec2", "describe_addresses", AllocationIds=addresses)
    nats = tuple(str(item["PublicIp"]) for item in answer["Addresses"] if item.get("PublicIp"))
    balanced = tuple(vendor_id("subnet", key) for key in plan.keys(PUBLIC))
    cidrs = (vpc_cidr(cluster),)
    return Network(vendor_id("vpc", "main"), cidrs, places[0][0], balanced, public=True, places=places, nats=nats)


def gateway_addresses(builder: Builder, net: Network) -> tuple[str, ...]:
    """The public addresses from which nodes come to the API: of our NAT gateways, or of those of a given VPC."""
    if net.nats or not net.public:
        return net.nats
    working = [{"Name": "vpc-id", "Values": [net.vpc_id]}, {"Name": "state", "Values": ["pending", "available"]}]
    gateways = builder.calls.pages("ec2", "describe_nat_gateways", "NatGateways", Filters=working)
    addresses = (entry.get("PublicIp") for gateway in gateways for entry in gateway.get("NatGatewayAddresses", ()))
    return tuple(sorted(str(address) for address in addresses if address))


def choose(calls: Calls, settings: Mapping[str, Any]) -> tenant_network.TenantNetwork | Finding:
    """The network of the tenant that the settings name, or what is wrong with it."""
    choice = named_subnets.choose if settings.get("subnets") else tenant_network.choose
    return choice(calls, settings)


def _tenant_network(builder: Builder) -> Network:
    ledger = builder.work.ledger
    line = ledger.find(GIVEN_NETWORK.name, "main")
    if line is None or line.state != "made" or _names_others(builder, line):
        choice = choose(builder.calls, builder.work.cluster.settings)
        if isinstance(choice, Finding):
            raise VendorRefused(choice.detail, hint=f"Correct {choice.pointer} and create the cluster again.")
        intended = line if line is not None and line.state == "made" else None
        intended = intended or ledger.intend(GIVEN_NETWORK.name, "main", asdict(choice))
        line = ledger.made(intended, choice.subnet_id, asdict(choice))
    return _network_of_line(line)


def _names_others(builder: Builder, line: Resource) -> bool:
    """Whether the settings name other subnets than those that the network was chosen with."""
    cluster = builder.work.cluster
    settings, places = cluster.settings, _network_of_line(line).places
    if cluster.status != "ready" and not settings.get("subnets"):
        # A creation that has failed may have named other zones since.
        zone_names = {str(zone) for zone in settings.get("zones") or ()}
        return bool(zone_names) and zone_names != {zone for _, zone in places}
    tier = PUBLIC if settings.get("public_control_plane") else PRIVATE
    named = {(str(entry[tier]), str(entry["zone"])) for entry in settings.get("subnets") or ()}
    return bool(named) and named != set(places)


def _network_of_line(line: Resource) -> Network:
    """The choice as the ledger keeps it, with lists where it had tuples."""
    detail = line.detail
    # A line of an earlier release has no places: its one subnet was the only one.
    places = tuple((str(subnet), str(zone)) for subnet, zone in detail.get("places") or [(detail["subnet_id"], "")])
    cidrs, balanced = tuple(detail["cidrs"]), tuple(detail["balanced"])
    return Network(detail["vpc_id"], cidrs, detail["subnet_id"], balanced, detail["public"], places)


def _subnet_lines(work: CloudWork) -> dict[str, Resource]:
    kind = ec2_kinds.SUBNET.name
    return {line.key: line for line in work.ledger.lines() if line.kind == kind}


def _generation(line: Resource) -> list[str]:
    return [str(zone) for zone in line.detail["zones"]]


def _has_subnet(lines: Mapping[str, Resource], index: int) -> bool:
    return any(layout.key(tier, index) in lines for tier in (PUBLIC, PRIVATE))


def _zones_of(lines: Mapping[str, Resource], generations: Sequence[Sequence[str]]) -> list[str]:
    """The zones of the network in the order of their letters, as far as the ledger tells. Lines of an earlier release
    have one each."""
    longest = max(generations, key=len, default=())
    if longest:
        return list(longest)
    # In an earlier release public subnets were made first.
    keys = [layout.key(PUBLIC, index) for index in range(_ZONES_BEFORE)]
    return [str(lines[key].detail["zone"]) for key in keys if key in lines]


def _subnets(builder: Builder, vpc: str, plan: _OwnNetwork) -> dict[str, str]:
    """The subnets by name. Each line has the zones that the network was laid out for with it, since a later growth
    lays out what is free beside them."""
    lines, zone_names = _subnet_lines(builder.work), layout.zones_by_key(plan.zones)
    subnet_ids: dict[str, str] = {}
    staying = {*plan.keys(PUBLIC), *plan.keys(PRIVATE)}
    for key, cidr in plan.ranges.items():
        if key not in staying:
            continue
        zone = str(lines[key].detail["zone"]) if key in lines else zone_names[key]
        role = "elb" if key.startswith(PUBLIC) else "internal-elb"
        extra = {f"kubernetes.io/role/{role}": "1", tags.kubernetes(builder.work.cluster.client_id): "owned"}
        where: dict[str, Any] = {"VpcId": vpc, "CidrBlock": cidr, "AvailabilityZone": zone}
        create = builder.creation("create_subnet", "subnet", "Subnet", "SubnetId", **where)
        # A line of an earlier release keeps its own, which tells as much.
        known_zones = {"zones": _generation(lines[key])} if key in lines and lines[key].detail.get("zones") else {}
        detail = {"zone": zone, "zones": list(plan.zones), **known_zones}
        desired = DesiredResource(ec2_kinds.SUBNET, key, builder.name(key), create, detail=detail, extra_tags=extra)
        subnet_ids[key] = builder.want(desired).vendor_id
    return subnet_ids


def _nat_gateway(builder: Builder, index: int, subnet: str) -> PresentResource:
    name = builder.name("nat" if index == 0 else f"nat-{LETTERS[index]}")
    return own_network.nat_gateway(builder, name, subnet, _nat_key(index), _address_key(index))


def _nat_key(index: int) -> str:
    return LETTERS[index] if index else _FIRST_NAT


def _address_key(index: int) -> str:
    return f"{_FIRST_ADDRESS}-{LETTERS[index]}" if index else _FIRST_ADDRESS


def _table_key(index: int) -> str:
    return layout.key(PRIVATE, index) if index else PRIVATE


def _without(builder: Builder, indexes: Sequence[int]) -> str | None:
    """Remove the gateways of these zones, once nothing leads there. What is waited for."""
    names: list[tuple[str, Callable[[int], str]]] = [
        (ec2_kinds.ROUTE_TABLE.name, _table_key),
        (ec2_kinds.NAT_GATEWAY.name, _nat_key),
        (ec2_kinds.ADDRESS.name, _address_key),
    ]
    for kind, key_of in names:
        for index in indexes:
            line = builder.work.ledger.find(kind, key_of(index))
            waiting = builder.remove(line) if line is not None else ""
            if waiting:
                return waiting
    return None


def _route_table(builder: Builder, key: str, vpc: str, subnets: Sequence[str], target: dict[str, str]) -> str:
    return own_network.route_table(builder, key, builder.name(f"{key}-routes"), vpc, subnets, target)
