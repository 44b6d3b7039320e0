"""A plan of faults for the local cloud, read from a file: ``make serve FAULTS=plan.json``.

A plan is a JSON object; every part may be left out::

    {"throttled": {"ec2:CreateVpc": 2}, "refused": {"ec2:CreateNatGateway": 1},
     "capacity": {"t3.xlarge": 1}, "spot_prices": {"m5.large/us-east-1a": [[0, 0.03], [90, 0.2]]},
     "machines": {"silent": 1, "interrupted": 1, "boot_seconds": [0.2, 0.6]},
     "blocks": [{"id": "cr-0123456789abcdef0", "instance_type": "p5.48xlarge", "zone": "us-east-1a", "lasts": 3600}],
     "insights": [{"name": "Deprecated APIs removed in 1.36", "status": "ERROR"}],
     "zones_down": ["us-east-1b"], "managed": 0.5,
     "variants": {"444444444444": "guardrails"}, "functions": 10,
     "account": {"template": 6, "linked_roles": ["elasticloadbalancing.amazonaws.com"]},
     "cudo": {"failing": {"CreateVM": 1}, "free_vcpus": {"intel-broadwell/us-dallas-1": 4}}}

``zones_down`` is read again while the local cloud runs: write a zone into the file, and it is taken away; take it out,
and it is back.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from local.aws.permissions.linked import LINKED
from stockyard.domain.models.base import faults_of
from stockyard.providers.clouds.aws.policies.template_versions import CURRENT

Action = Annotated[str, StringConstraints(pattern=re.compile(r"^[a-z0-9-]+:[A-Z][A-Za-z0-9]+$"))]
"""A call as IAM writes it: ``ec2:CreateVpc``."""
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


def _service_with_a_role(service: str) -> str:
    if service not in LINKED:
        raise ValueError(f"must be one of {', '.join(sorted(LINKED))}")
    return service


class PlanError(Exception):
    """The plan cannot be used; the text names the part."""


class MachinePlan(BaseModel):
    """``silent``: how many of the next machines boot and never report. ``boot_seconds``: shortest and longest boot.
    ``interrupted``: how many of the next spot machines are taken back; ``interrupted_after`` seconds of their boot they
    are told so, and ``warning_seconds`` later they end. ``maintained``: for how many of the next machines on demand the
    cloud schedules maintenance as soon. ``snapshot_seconds``: how often a member of a control plane asks whether a
    snapshot of etcd is due."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    silent: Count = 0
    boot_seconds: tuple[Seconds, Seconds] = (0.2, 0.6)
    interrupted: Count = 0
    maintained: Count = 0
    interrupted_after: Seconds = 20
    warning_seconds: Seconds = 120
    snapshot_seconds: Annotated[float, Field(gt=0)] = 15

    @model_validator(mode="after")
    def _ordered(self) -> MachinePlan:
        if self.boot_seconds[0] > self.boot_seconds[1]:
            raise ValueError("boot_seconds: the shortest comes first")
        return self


Operation = Annotated[str, StringConstraints(pattern=re.compile(r"^[A-Z][A-Za-z0-9]+$"))]
"""A call as Cudo's document names it: ``CreateVM``."""


class CudoPlan(BaseModel):
    """Faults of the simulated Cudo. ``failing``: how many of the next machines (``CreateVM``), disks
    (``CreateStorageDisk``) or networks (``CreateNetwork``) become ``FAILED``. ``unavailable``, ``throttled``: how many
    of the next calls are refused so. ``free_vcpus``: by machine type and data center, how many vCPUs are left of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    failing: Mapping[Operation, Count] = Field(default_factory=dict)
    unavailable: Mapping[Operation, Count] = Field(default_factory=dict)
    throttled: Mapping[Operation, Count] = Field(default_factory=dict)
    free_vcpus: Mapping[str, Count] = Field(default_factory=dict)


class Block(BaseModel):
    """A capacity block of the tenant ``acme``, which begins ``begins_in`` seconds after the start, and ``lasts`` so
    many."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(pattern=re.compile(r"^cr-[0-9a-f]{8,17}$"))]
    instance_type: str
    zone: str
    count: Annotated[int, Field(ge=1)] = 1
    begins_in: float = 0
    lasts: Annotated[float, Field(gt=0)] = 86_400


class Insight(BaseModel):
    """Insight of EKS about the upgrade of every cluster. One with ``ERROR`` stops it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    status: Literal["PASSING", "WARNING", "ERROR", "UNKNOWN"]
    reason: str = ""
    recommendation: str = ""


Variant = Literal["new", "shared-network", "central-key", "guardrails"]
"""What is special of a tenant's account; see ``local/aws/permissions/variants.py``."""
AccountNumber = Annotated[str, StringConstraints(pattern=re.compile(r"^[0-9]{12}$"))]


class AccountPlan(BaseModel):
    """State of the tenant's account at the start. ``linked_roles``: services whose own roles it has to begin with;
    without, it is new, and never had a load balancer, a spot machine, a file system or anything on EKS. ``template``:
    which version of our template was deployed in it; None: the current one. ``volume_key``: id of a key of the
    account's own by which new volumes are encrypted; empty: the key of AWS. ``runs``: whether the template for runs was
    deployed in it too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    linked_roles: Sequence[Annotated[str, AfterValidator(_service_with_a_role)]] = ()
    template: Annotated[int, Field(ge=1, le=CURRENT)] | None = None
    volume_key: str = ""
    runs: bool = True


class FaultPlan(BaseModel):
    """``throttled``, ``refused``: call -> how many of the next ones. ``capacity``: instance type -> how many fit.
    ``spot_prices``: type, or type and zone -> prices in USD an hour, each from so many seconds after the start on.
    ``quotas``: code of Service Quotas -> what the account may have. ``blocks``: capacity blocks that are there.
    ``variants``: number of an AWS account -> what is special of it, as ``local/aws/permissions/variants.py`` says.
    ``functions``: how many functions run at a time in our own account.
    ``zones_down``: zones in which every instance ends and none is to be had. ``managed``: what part of its usual time
    a change takes that EKS or EFS makes. ``account``: what the tenant's account has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    throttled: Mapping[Action, Count] = Field(default_factory=dict)
    refused: Mapping[Action, Count] = Field(default_factory=dict)
    capacity: Mapping[str, Count] = Field(default_factory=dict)
    spot_prices: Mapping[str, Sequence[tuple[Seconds, float]]] = Field(default_factory=dict)
    quotas: Mapping[str, Count] = Field(default_factory=dict)
    blocks: Sequence[Block] = ()
    insights: Sequence[Insight] = ()
    zones_down: Sequence[str] = ()
    managed: Annotated[float, Field(gt=0)] = 1
    account: AccountPlan = Field(default_factory=AccountPlan)
    variants: Mapping[AccountNumber, Variant] = Field(default_factory=dict)
    functions: Annotated[int, Field(ge=1)] | None = None
    machines: MachinePlan = Field(default_factory=MachinePlan)
    cudo: CudoPlan = Field(default_factory=CudoPlan)


def read(path: Path) -> FaultPlan:
    """The plan in a file. Raises ``PlanError``."""
    try:
        return FaultPlan.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{path} is not a text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise PlanError(f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValidationError as error:
        field_path, text = faults_of(error, FaultPlan)[0]
        raise PlanError(f"{path}: {'.'.join(map(str, field_path)) or 'the plan'}: {text}") from None


LOOK_SECONDS = 0.5


def follow_zones(path: Path, take_away: Callable[[Sequence[str]], None], stop: threading.Event) -> None:
    """Until ``stop``: tell which zones the file says to be down, each time that it was written. What cannot be read is
    half written, or a mistake that is still being made: what was told stands."""
    written = 0
    while not stop.wait(LOOK_SECONDS):
        try:
            latest = path.stat().st_mtime_ns
            if latest != written:
                take_away(read(path).zones_down)
                written = latest
        except (OSError, PlanError):
            continue
