"""A tenant's AWS account in memory, a ledger in memory, and one cluster's work."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import boto3
import botocore.session
import pytest
from botocore.loaders import Loader
from moto import mock_aws
from moto.core.base_backend import BackendDict
from moto.s3.models import s3_backends

from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.domain.values.ids import client_id
from stockyard.domain.values.times import to_text
from stockyard.ports import CloudWork, Outcome
from stockyard.providers.clouds.aws.cloud import AwsCloud
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config
from tests.harness.worlds import inventory
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.stage import Stage

MODELS = Loader()
"""The services' large models, read once."""
ACME = "222222222222"
START = datetime(2026, 1, 1, tzinfo=UTC)
CREATE = ("account", "network", "security", "identity", "endpoint", "bastion", "control_plane")
DELETE = ("leftovers", "control_plane", "bastion", "endpoint", "identity", "security", "network")
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "example",
    "AWS_DEFAULT_REGION": "us-east-1",
}
T = TypeVar("T")


@dataclass(frozen=True)
class Moment:
    """State of moto at a moment. To put it back takes a few milliseconds, to make it anew hundreds of them."""

    places: Sequence[tuple[Any, str, Any, Mapping[str, Any]]]
    """A service's backends, an account, the account's backends, and those by region."""
    contents: Mapping[Any, Mapping[str, Any]]
    """A copy of what is in each backend."""

    @classmethod
    def now(cls) -> Moment:
        """State of moto now."""
        places = [
            (service, account, regions, dict(regions))
            for service in BackendDict._instances
            for account, regions in service.items()
        ]
        backends = [backend for *_, by_region in places for backend in by_region.values()]
        return cls(places, _copied({backend: backend.__dict__ for backend in backends}))

    def restore(self) -> None:
        """Let moto hold that, and nothing else."""
        for service in BackendDict._instances:
            service.clear()
        BackendDict._instances.clear()
        for service, account, regions, by_region in self.places:
            regions.clear()
            regions.update(by_region)
            service[account] = regions
            if service not in BackendDict._instances:
                BackendDict._instances.append(service)
        for backend, content in _copied(self.contents).items():
            backend.__dict__ = content


def _copied(contents: Mapping[Any, Mapping[str, Any]]) -> dict[Any, Any]:
    # the backends themselves stay what they are
    return copy.deepcopy(dict(contents), {id(backend): backend for backend in contents})


@dataclass
class MemoryLedger:
    """``ports.Ledger`` without a store; it keeps every line, also those that are gone."""

    cluster: Cluster
    phase: str = "network"
    now: datetime = START
    all: dict[str, Resource] = field(default_factory=dict)
    writes: int = 0
    fail_made: str = ""
    """``kind/key`` whose next ``made`` fails, as a crash between the call and the record would."""

    def intend(self, kind: str, key: str, detail: Mapping[str, Any] | None = None) -> Resource:
        name = f"{self.cluster.id}/{self.phase}/{kind}/{key}"
        old = self.all.get(name)
        if old is not None and old.state == "made":
            return old
        self.writes += 1
        token = hashlib.sha256(f"{name}/{self.cluster.attempt}".encode()).hexdigest()[:32]
        again = old if old is not None and old.token == token else None
        since = again.detail["since"] if again else to_text(self.now)
        recorded = again.detail if again and again.state == "intended" else {}
        self.all[name] = Resource(
            name, self.cluster.id, self.phase, kind, key, token, "intended", "us-east-1", 1, to_text(self.now),
            detail={**(detail or {}), **recorded, "since": since},
        )  # fmt: skip
        return self.all[name]

    def made(self, resource: Resource, vendor_id: str, detail: Mapping[str, Any] | None = None) -> Resource:
        if self.fail_made == f"{resource.kind}/{resource.key}":
            self.fail_made = ""
            raise RuntimeError("the machine stopped")
        self.writes += 1
        merged = {**resource.detail, **(detail or {})}
        line = replace(resource, state="made", vendor_id=vendor_id, made_at=to_text(self.now), detail=merged)
        self.all[resource.id] = line
        return line

    def gone(self, resource: Resource) -> None:
        self.writes += 1
        self.all[resource.id] = replace(self.all[resource.id], state="gone")

    def copy(self) -> MemoryLedger:
        """Another with the same lines."""
        return replace(self, all=dict(self.all))

    def find(self, kind: str, key: str) -> Resource | None:
        return next((line for line in self.lines() if (line.kind, line.key) == (kind, key)), None)

    def lines(self, phase: str | None = None) -> Sequence[Resource]:
        return [x for x in self.all.values() if x.state != "gone" and phase in (None, x.phase)]


def _with_own_sessions(user: Any) -> Any:
    """A copy of a driver or a cloud that shares no list of sessions: moto forgets a session that a test makes later."""
    user_copy = copy.copy(user)
    user_copy._sessions = copy.copy(user._sessions)
    user_copy._sessions._kept = OrderedDict(user._sessions._kept)
    return user_copy


@dataclass
class Yard:
    """Runs phases as the workflow does: repeated until they are done, while the clock advances."""

    provider: Ec2ClusterDriver
    cloud: AwsCloud
    cluster: Cluster
    account: CloudAccount
    ledger: MemoryLedger
    now: datetime = START
    waits: int = 0
    seen_by: boto3.Session | None = None

    def work(self, phase: str) -> CloudWork:
        self.ledger.phase, self.ledger.now = phase, self.now
        return CloudWork("acme", "inst-1", self.cluster, self.account, self.ledger, self.now, "op_1")

    def copy(self) -> Yard:
        """Another at the same moment, which goes on with the sessions that there are."""
        provider, cloud = (_with_own_sessions(user) for user in (self.provider, self.cloud))
        account = copy.deepcopy(self.account)
        return replace(self, provider=provider, cloud=cloud, account=account, ledger=self.ledger.copy())

    def later(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def ensure(self, phase: str) -> Outcome:
        return self._until_done(phase, "ensure")

    def remove(self, phase: str) -> Outcome:
        return self._until_done(phase, "remove")

    def _until_done(self, phase: str, method: str) -> Outcome:
        for _ in range(40):
            outcome: Outcome = getattr(self.provider, method)(phase, self.work(phase))
            if outcome.done:
                return outcome
            self.waits += 1
            self.later(outcome.wait_seconds)
        raise AssertionError(f"{method} {phase} does not end: {outcome}")

    def create(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        for phase in CREATE:
            facts.update(self.ensure(phase).facts)
        return facts

    def delete(self) -> None:
        for phase in DELETE:
            self.remove(phase)

    def with_settings(self, **settings: Any) -> Yard:
        self.cluster = replace(self.cluster, settings={**self.cluster.settings, **settings})
        self.ledger.cluster = self.cluster
        return self

    def tenant(self) -> boto3.Session:
        """A session with the tenant's own credentials."""
        if self.seen_by is not None:
            return self.seen_by
        keys = boto3.client("sts", region_name="us-east-1").assume_role(
            RoleArn=f"arn:aws:iam::{ACME}:role/stockyard", RoleSessionName="look", ExternalId="ext-1"
        )["Credentials"]
        session = botocore.session.Session()
        session.register_component("data_loader", MODELS)
        self.seen_by = boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1", session
        )
        return self.seen_by

    def living(self) -> list[str]:
        """All resources of the account that a cluster can have, listed by AWS and not by the product's search."""
        session = self.tenant()
        ec2, elb, iam = session.client("ec2"), session.client("elbv2"), session.client("iam")
        reservations = ec2.describe_instances()["Reservations"]
        return [
            *(v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"] if not v["IsDefault"]),
            *(s["SubnetId"] for s in ec2.describe_subnets()["Subnets"] if not s["DefaultForAz"]),
            *(g["InternetGatewayId"] for g in ec2.describe_internet_gateways()["InternetGateways"]),
            *(a["AllocationId"] for a in ec2.describe_addresses()["Addresses"]),
            *(n["NatGatewayId"] for n in ec2.describe_nat_gateways()["NatGateways"] if n["State"] != "deleted"),
            *(e["VpcEndpointId"] for e in ec2.describe_vpc_endpoints()["VpcEndpoints"]),
            *(t["RouteTableId"] for t in ec2.describe_route_tables()["RouteTables"] if t.get("Tags")),
            *(g["GroupId"] for g in ec2.describe_security_groups()["SecurityGroups"] if g["GroupName"] != "default"),
            *(i["InstanceId"] for r in reservations for i in r["Instances"] if i["State"]["Name"] != "terminated"),
            *(v["VolumeId"] for v in ec2.describe_volumes()["Volumes"]),
            *(s["SnapshotId"] for s in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"] if s.get("Tags")),
            *(p["PolicyId"] for p in session.client("dlm").get_lifecycle_policies()["Policies"]),
            *(b["LoadBalancerArn"] for b in elb.describe_load_balancers()["LoadBalancers"]),
            *(g["TargetGroupArn"] for g in elb.describe_target_groups()["TargetGroups"]),
            *(r["RoleName"] for r in iam.list_roles()["Roles"] if r["RoleName"] != "stockyard"),
            *(p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]),
        ]


@pytest.fixture(autouse=True, scope="module")
def _moto() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        with mock_aws(), direct_aws():
            yield


@pytest.fixture(autouse=True)
def _aws(_moto: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is there of what the test before has made."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    Moment((), {}).restore()
    yield
    # moto keeps objects of S3 as open files, and names of buckets beside its accounts.
    for regions in list(s3_backends.values()):
        for backend in list(regions.values()):
            backend.reset()
    s3_backends.bucket_accounts.clear()


@pytest.fixture
def ec2_config() -> Ec2Config:
    return Ec2Config("vantage", "https://api.example.test", "https://id.example.test/realms/s", 60)


@pytest.fixture(scope="module")
def remembered(_moto: None) -> Callable[[str, Callable[[], T]], T]:
    """Makes an object once in a module. For later tests what moto held then is put back, and the same object returned:
    a test changes a copy of it only."""
    moments: dict[str, tuple[Moment, Any]] = {}

    def remember(name: str, make: Callable[[], T]) -> T:
        if name not in moments:
            first = make()
            moments[name] = Moment.now(), first
        else:
            moments[name][0].restore()
        thing: T = moments[name][1]
        return thing

    return remember


@pytest.fixture
def yard(ec2_config: Ec2Config, remembered: Callable[[str, Callable[[], Yard]], Yard]) -> Yard:
    return remembered("yard", lambda: _new_yard(ec2_config)).copy()


def _new_yard(ec2_config: Ec2Config) -> Yard:
    moment = to_text(START)
    cluster = Cluster(
        id="clu_01KDVJXQ80000000000000000A",
        name="My-Cluster",
        description="d",
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id=client_id("acme", "clu_01KDVJXQ80000000000000000A", "My-Cluster"),
        status="preparing",
        settings={"key_pair": "my-key"},
        created_at=moment,
        updated_at=moment,
        cloud_prefix="vantage",
    )
    attributes = {"role_arn": f"arn:aws:iam::{ACME}:role/stockyard", "region": "us-east-1"}
    account = CloudAccount("1", "aws", "main", "", attributes, "ext-1", "verified", "", moment, moment)
    yard = Yard(
        Ec2ClusterDriver(ec2_config, boto3.Session),
        AwsCloud(Stage(), boto3.Session),
        cluster,
        account,
        MemoryLedger(cluster),
    )
    yard.tenant().client("ec2").create_key_pair(KeyName="my-key")
    inventory.tenant_role(ACME, "stockyard")
    return yard
