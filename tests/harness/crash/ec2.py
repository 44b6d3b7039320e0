"""EC2 for the crash world: moto with its corrections, where new things are hidden at first."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from local.aws.accounts import REGION
from local.aws.corrections.compute.compute import hidden_at_first, idempotent_calls
from local.aws.corrections.lifecycle_policies import dlm_backends
from local.aws.corrections.refusals import gone_have_no_tags, scarce_capacity
from stockyard.domain.records import CloudAccount, Cluster
from tests.harness.crash.cloud import Story
from tests.harness.crash.faults import Call, Tap
from tests.harness.worlds import inventory
from tests.harness.worlds.memory import FixedClock

TENANT_ACCOUNT = "222222222222"
ROLE = f"arn:aws:iam::{TENANT_ACCOUNT}:role/stockyard"
HIDDEN_SECONDS = 45.0
"""The longest that a new thing is hidden; below the product's ``visibility_seconds``."""
_REGISTER = (Call("provision:control_plane", "elbv2.RegisterTargets", 1),)


class CrashEc2:
    """A tenant's AWS account. Its calls pass the tap with those of every other boto3 client."""

    rows = ""
    body: Mapping[str, Any] = {
        "name": "demo",
        "description": "d",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key", "ssh_cidrs": ["198.51.100.0/24"], "bastion": {"enabled": True}},
    }
    stories: Mapping[str, Story] = {
        "clean": Story(),
        "undone": Story((Call("provision:network", "ec2.CreateNatGateway", 1),)),
        "blocked": Story((Call("delete:network", "ec2.DeleteVpc", 1),)),
        "kept": Story(_REGISTER, ("provision:control_plane", "provision:compensate"), keeps_failed=True),
        "swept": Story(_REGISTER, ("sweep_scope",), keeps_failed=True, is_swept=True),
        "scarce": Story((), ("provision:control_plane",)),
    }
    """In ``scarce`` EC2 has none of the first type in the first zone."""

    def __init__(self) -> None:
        ec2_backends[DEFAULT_ACCOUNT_ID][REGION]  # else moto makes it, and draws from our randomness, in the first life
        self._key_pair = ec2_backends[TENANT_ACCOUNT][REGION].create_key_pair("my-key", "rsa", {})
        self._role = inventory.tenant_role(TENANT_ACCOUNT, "stockyard")
        self._clock = FixedClock()
        self.chance = random.Random(0)
        self.capacity: dict[str, int] = {}  # how many instances of a type, or of type/zone, there may be

    @contextmanager
    def installed(self, tap: Tap, clock: FixedClock) -> Iterator[None]:
        """See ``CrashCloud.installed``."""
        self._clock = clock
        yield

    @contextmanager
    def begin(self, story: str) -> Iterator[None]:
        """See ``CrashCloud.begin``."""
        self.capacity = {"t3.xlarge/us-east-1a": 0} if story == "scarce" else {}
        with ExitStack() as life:
            life.enter_context(idempotent_calls())
            life.enter_context(gone_have_no_tags())
            life.enter_context(scarce_capacity(self.capacity))
            life.enter_context(hidden_at_first(self.hidden, lambda: self._clock.now().timestamp()))
            self._empty()
            yield

    def _empty(self) -> None:
        ec2 = ec2_backends[TENANT_ACCOUNT][REGION]
        images = ec2.amis
        with patch.object(type(ec2), "_load_amis"):  # the same images as before
            ec2.reset()
        ec2.amis, ec2.key_pairs["my-key"] = images, self._key_pair
        elbv2_backends[TENANT_ACCOUNT][REGION].reset()
        dlm_backends[TENANT_ACCOUNT][REGION].reset()
        inventory.empty_managed(TENANT_ACCOUNT, REGION)
        iam = iam_backends[TENANT_ACCOUNT]["aws"]
        iam.roles.clear()
        iam.roles[self._role.id] = self._role
        iam.instance_profiles.clear()
        sts_backends[TENANT_ACCOUNT]["aws"].assumed_roles.clear()

    def hidden(self) -> float:
        """For how long the next new thing is hidden: most for a moment, one in ten for longer than twenty seconds."""
        return float(HIDDEN_SECONDS * self.chance.random() ** 8)

    def account(self, moment: str) -> CloudAccount:
        """See ``CrashCloud.account``."""
        return CloudAccount("1", "aws", "a", "", {"role_arn": ROLE}, "ext", "verified", "", moment, moment)

    def secrets(self) -> Mapping[str, str]:
        """See ``CrashCloud.secrets``: a role is taken, so there are none."""
        return {}

    def repair(self) -> None:
        """See ``CrashCloud.repair``: another type is taken for the one that EC2 has not."""

    def things(self) -> set[tuple[str, str]]:
        """See ``CrashCloud.things``. Also what is hidden."""
        return inventory.things(TENANT_ACCOUNT, REGION)

    def differences(self, cluster: Cluster) -> list[str]:
        """See ``CrashCloud.differences``. Clusters here do not change."""
        return []

    def alive(self, machine_id: str) -> bool:
        """See ``CrashCloud.alive``."""
        return ("instance", machine_id) in self.things()

    def machine_token(self, machine_id: str) -> str | None:
        """See ``CrashCloud.machine_token``."""
        return None
