"""Parts of answers of the API.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from stockyard_client.base_models import Model


class Condition(Model):
    """One observed aspect of a resource (Kubernetes API conventions)."""

    type: str
    """What is observed, such as `Ready`."""
    status: str
    """Whether it is so."""
    reason: str = ""
    """A word for programs that says why."""
    message: str = ""
    """A sentence for people that says why; may be empty."""
    last_transition_time: str | None = None
    """When `status` changed last."""


class PoolNodes(Model):
    """Numbers of nodes that a pool is to have and has, and their cost."""

    desired: int = 0
    """How many nodes there are to be at least: the quantity or the floor."""
    claims: int = 0
    """How many claims there are that are not being deleted."""
    available: int = 0
    """How many of them have a node that is ready."""
    leaving: int = 0
    """How many more are being drained or given back; they cost until they are gone."""
    usd_hour: float | None = None
    """What all of them cost together, in USD an hour; null while a price is not known."""
