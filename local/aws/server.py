"""moto's server on 127.0.0.1 with every correction in place."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from moto.core.base_backend import BackendDict
from moto.core.config import default_user_config
from moto.dynamodb.models import dynamodb_backends
from moto.iam.models import iam_backends
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.aws.corrections.buses import Listener, heard_buses
from local.aws.corrections.capacity import counted_capacity
from local.aws.corrections.compute.balancers import fifty_tags
from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.compute.compute import hidden_at_first, idempotent_calls, instant_fleets
from local.aws.corrections.compute.console import shown_consoles, told_topology
from local.aws.corrections.compute.endpoints import gateway_endpoints
from local.aws.corrections.compute.interfaces import (
    dependencies_hold,
    interfaces_go_with_gateways,
    names_end_with_machines,
    tagged_interfaces,
)
from local.aws.corrections.compute.key_pairs import key_pairs_everywhere, known_key_pairs
from local.aws.corrections.compute.placement_groups import placement_groups
from local.aws.corrections.compute.pricing import listed_prices
from local.aws.corrections.compute.reservations import new_block
from local.aws.corrections.compute.shared_networks import shared_networks
from local.aws.corrections.compute.spot_prices import moving_spot_prices
from local.aws.corrections.eks.eks import eks_service
from local.aws.corrections.eks.node_images import node_images
from local.aws.corrections.eks.things import planned_insights
from local.aws.corrections.file_systems import file_systems
from local.aws.corrections.lifecycle_policies import lifecycle_policies
from local.aws.corrections.managed_policies import attachable_policies
from local.aws.corrections.pace import paced, scaled
from local.aws.corrections.quick.answers import quick_answers
from local.aws.corrections.quick.clients import quick_clients
from local.aws.corrections.quick.images import quick_images
from local.aws.corrections.quick.offerings import quick_offerings
from local.aws.corrections.quick.packed_items import packed_items
from local.aws.corrections.quick.server import quick_server
from local.aws.corrections.quick.tables import quick_tables
from local.aws.corrections.quotas import account_quotas
from local.aws.corrections.refusals import (
    gone_have_no_tags,
    known_things,
    new_profiles_unusable,
    planned_refusals,
    scarce_capacity,
)
from local.aws.corrections.retention import (
    first_position,
    forgotten_executions,
    trimmed,
    untracked_models,
    untracked_threads,
)
from local.aws.corrections.roles import lasting_principals, trusted_roles
from local.aws.corrections.service_tasks import tasks_of_their_account
from local.aws.corrections.tables import atomic_tables
from local.aws.corrections.workflows import (
    MOTO_CONFIG,
    functions_run,
    limited_histories,
    scaled_waits,
    unread_documents,
)
from local.aws.permissions import variants
from local.aws.permissions.account import Settings
from local.aws.permissions.asked import Guard, asked_permissions
from local.aws.presigned import presigned_requests
from local.fault_plan import FaultPlan
from local.functions.invocation import Invoker

HIDDEN_SECONDS = 30.0
"""The longest that AWS hides what was just made, before scaling."""


_OF_RESOURCES = (
    placement_groups,
    gateway_endpoints,
    shared_networks,
    gone_have_no_tags,
    shown_consoles,
    told_topology,
    key_pairs_everywhere,
    known_key_pairs,
    known_things,
    dependencies_hold,
    interfaces_go_with_gateways,
    tagged_interfaces,
    names_end_with_machines,
    fifty_tags,
)
"""Corrections of EC2's resources, in this order: a later one is asked before those above it."""
TIMEOUTS = 0.1
"""Half an hour of waiting for a machine's report takes three minutes; shorter, and a busy laptop would miss it."""


@dataclass(frozen=True, slots=True)
class Aws:
    """The running server."""

    url: str
    lock: AbstractContextManager[Any]
    began: threading.Event
    """Set once everything is there: from then on the plan's refusals strike in the tenants' accounts."""
    forgets: bool = True
    """Whether stream records go once all who read the stream have read them."""
    _positions: dict[tuple[str, str], list[list[int]]] = field(default_factory=dict)

    def keys(self, account: str, user: str = "local") -> dict[str, str]:
        """New access keys of an account, as environment variables."""
        backend = iam_backends[account]["aws"]
        if user not in {existing.name for existing in backend.users.values()}:
            backend.create_user(REGION, user)
        key = backend.create_access_key(user)
        return {"AWS_ACCESS_KEY_ID": key.access_key_id, "AWS_SECRET_ACCESS_KEY": key.secret_access_key}

    def client(self, service: str, keys: Mapping[str, str]) -> Any:
        """A boto3 client that reaches this server with those keys."""
        session: Any = boto3.Session(keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
        return session.client(service, endpoint_url=self.url)

    def stream(self, account: str, stream_arn: str) -> Callable[[int, int], Sequence[Mapping[str, Any]]]:
        """Reads a table's stream by position; what a cancelled transaction wrote is never seen."""
        table = stream_arn.split(":table/", 1)[1].split("/", maxsplit=1)[0]
        readers = self._positions.setdefault((account, table), [])
        reached = [0]
        readers.append(reached)

        def read(position: int, limit: int) -> Sequence[Mapping[str, Any]]:
            with self.lock:
                shard = dynamodb_backends[account][REGION].tables[table].stream_shard
                reached[0] = position
                if self.forgets:
                    trimmed(shard, min(slowest for (slowest,) in readers))
                begin = position - first_position(shard)
                return [record.to_json() for record in shard.items[begin : begin + limit]]

        return read


@contextmanager
def running_aws(
    invoker: Invoker,
    listener: Listener,
    scale: float,
    plan: FaultPlan | None = None,
    *,
    forgets: bool = True,
    record: Path | None = None,
) -> Iterator[Aws]:
    """moto on a free port of 127.0.0.1. ``scale`` shortens waits, retry intervals and the hiding of new resources;
    ``plan`` says which calls fail. ``forgets``: read stream records and old executions go. ``record``: a file for each
    permission check of a tenant's session."""
    faults = plan or FaultPlan()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    logging.getLogger("moto").setLevel(logging.CRITICAL)  # it logs each failed execution, which operations tell anyway
    with ExitStack() as stack:
        stack.enter_context(quick_images())
        # moto keeps everything in the process, also what an earlier local cloud has made
        BackendDict.reset()
        stack.callback(BackendDict.reset)
        stack.enter_context(patch.dict(default_user_config, {k: dict(v) for k, v in MOTO_CONFIG.items()}))
        stack.enter_context(untracked_models())
        stack.enter_context(untracked_threads())
        if forgets:
            stack.enter_context(forgotten_executions())
        for quick in (quick_server, quick_clients, quick_offerings, quick_answers, quick_tables):
            stack.enter_context(quick())
        if forgets:
            stack.enter_context(packed_items())
        stack.enter_context(counted_capacity())
        lock = stack.enter_context(atomic_tables())
        stack.enter_context(functions_run(invoker))
        stack.enter_context(unread_documents())
        stack.enter_context(limited_histories())
        stack.enter_context(scaled_waits(scale, TIMEOUTS))
        stack.enter_context(heard_buses(listener))
        for correction in (tasks_of_their_account, trusted_roles, lasting_principals):
            stack.enter_context(correction())
        stack.enter_context(scarce_capacity(faults.capacity, faults.zones_down))
        stack.enter_context(instant_fleets(faults.capacity))
        stack.enter_context(account_quotas(faults.quotas))
        stack.enter_context(new_profiles_unusable(lambda: random.uniform(0, HIDDEN_SECONDS) * scale))
        began = threading.Event()
        stack.enter_context(
            planned_refusals(
                faults.throttled, faults.refused, lambda account: began.is_set() and account != OWN_ACCOUNT
            )
        )
        for correction in _OF_RESOURCES:
            stack.enter_context(correction())
        stack.enter_context(_managed_services(scale, faults))
        stack.enter_context(idempotent_calls())
        stack.enter_context(hidden_at_first(lambda: random.uniform(0, HIDDEN_SECONDS) * scale))
        stack.enter_context(_permission_checks(faults, record))
        stack.enter_context(presigned_requests())
        stack.enter_context(listed_prices())
        stack.enter_context(moving_spot_prices(faults.spot_prices))
        stack.enter_context(lifecycle_policies())
        port = stack.enter_context(_listening())
        yield Aws(f"http://127.0.0.1:{port}", lock, began, forgets)


@contextmanager
def _listening() -> Iterator[int]:
    """moto's server; its port."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        with patch.dict(os.environ, {"MOTO_PORT": str(port)}):
            yield port
    finally:
        server.stop()


def _permission_checks(plan: FaultPlan, record: Path | None) -> AbstractContextManager[None]:
    """The table of permissions, asked in the tenants' accounts."""
    settings = Settings(plan.account.volume_key)
    for account, variant in plan.variants.items():
        variants.begin(account, variant)
    by_account = {account: variants.settings_of(variant) for account, variant in plan.variants.items()}
    return asked_permissions(Guard(lambda account: account != OWN_ACCOUNT, settings, record, by_account))


@contextmanager
def _managed_services(scale: float, plan: FaultPlan) -> Iterator[None]:
    """EKS and EFS and what belongs to them, at the pace of AWS, scaled."""
    with ExitStack() as stack:
        stack.enter_context(attachable_policies())
        stack.enter_context(capacity_reservations())
        stack.enter_context(eks_service())
        stack.enter_context(node_images())
        stack.enter_context(file_systems())
        stack.enter_context(paced(scaled(scale, plan.managed)))
        stack.enter_context(planned_insights([insight.model_dump() for insight in plan.insights]))
        for block in plan.blocks:
            begin = datetime.now(UTC) + timedelta(seconds=block.begins_in)
            end = begin + timedelta(seconds=block.lasts)
            new_block(ACME_ACCOUNT, REGION, block.instance_type, block.zone, block.count, begin, end, name=block.id)
        yield
