"""Removal of things in reverse order: what is used by others goes after them. One that fails does not stop others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stockyard_client.cli import context as contexts
from stockyard_client.cli.failures import exit_code, explain
from stockyard_client.cli.output import progress
from stockyard_client.errors import ApiError, StockyardClientError

if TYPE_CHECKING:
    from stockyard_client.client import Client
    from stockyard_client.models import Plan

ORDER = ("claim", "pool", "cluster", "profile", "provider", "os-image")
"""What is used by others goes after them."""
_AT_ONCE = frozenset({"profile", "provider", "os-image"})
"""What is gone when its deletion is answered."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A thing that is to be deleted: what it is, its name, and of a pool its cluster."""

    noun: str
    name: str
    cluster: str = ""
    namespace: str = ""
    """Of a cluster whose manifest has one: its name is one in that namespace."""
    has_namespace: bool = False
    """Whether the manifest says the namespace; the usual one stands for a cluster without any, too."""
    id: str | None = None
    """Of a member of a set: this thing is meant, and no other one of its name."""

    @property
    def key(self) -> str:
        """Name or id that requests have; a pool goes by its name."""
        return self.name if self.noun == "pool" else self.id or self.name

    @property
    def title(self) -> str:
        """Name of the thing, as people call it."""
        return f"{self.noun} {self.name}" + (f" of cluster {self.cluster}" if self.cluster else "")


def verb(thing: Doomed, *, wait: bool) -> str:
    """State of the thing after its removal, as it is told."""
    return "deleted" if wait or thing.noun in _AT_ONCE else "is going"


def remove(
    context: contexts.Context,
    client: Client,
    things: Sequence[Doomed],
    *,
    ignore_missing: bool,
    wait: bool,
    timeout: float | None,
    on_removed: Callable[[Doomed], None],
) -> list[int]:
    """Delete the things, one after the other, and give the exit code of each failure, which is told where it
    happens."""
    codes: list[int] = []
    for thing in things:
        try:
            _delete(context, client, thing, wait=wait, timeout=timeout)
        except ApiError as error:
            if error.status == 404 and ignore_missing:
                context.say(f"There is no {thing.title}.")
                continue
            codes.append(failed(context, thing, error, wait=wait))
        except StockyardClientError as error:
            codes.append(failed(context, thing, error, wait=wait))
        else:
            on_removed(thing)
    return codes


def plan_of(client: Client, thing: Doomed) -> Plan:
    """The plan of a deletion."""
    if thing.noun == "pool":
        return client.pools.plan_delete(thing.cluster, thing.name)
    calls: dict[str, Callable[[str], Plan]] = {
        "claim": client.node_claims.plan_delete,
        "cluster": client.clusters.plan_delete,
        "profile": client.profiles.plan_delete,
        "provider": client.node_providers.plan_delete,
        "os-image": client.os_images.plan_delete,
    }
    return calls[thing.noun](thing.key)


def ordered(things: Sequence[Doomed]) -> list[Doomed]:
    """First what nothing needs; among equals the last document first. Each once."""
    unique = list(dict.fromkeys(reversed(things)))
    return sorted(unique, key=lambda thing: ORDER.index(thing.noun))


def _delete(context: contexts.Context, client: Client, thing: Doomed, *, wait: bool, timeout: float | None) -> None:
    if thing.noun == "pool":
        client.pools.delete(thing.cluster, thing.name)
        if wait:
            client.wait_pool_gone(thing.cluster, thing.name, timeout=timeout, on_change=progress.lines(context))
        return
    calls: dict[str, Callable[[str], Any]] = {
        "claim": client.node_claims.delete,
        "cluster": client.clusters.delete,
        "profile": client.profiles.delete,
        "provider": client.node_providers.delete,
        "os-image": client.os_images.delete,
    }
    operation = calls[thing.noun](thing.key)
    if wait:
        progress.wait(context, client, operation.id, timeout)


def failed(context: contexts.Context, thing: Doomed, error: StockyardClientError, *, wait: bool) -> int:
    """Tell why a thing stays; the exit code."""
    context.say(f"{thing.title}:", "bold")
    explain(context, error)
    if isinstance(error, ApiError) and error.status == 409 and not wait:
        context.say("What uses it may still be going: --wait waits for each.")
    return exit_code(error)
