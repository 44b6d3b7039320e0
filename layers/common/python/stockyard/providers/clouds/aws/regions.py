"""The regions of AWS in botocore's data, and sessions with a shared cache of botocore's files."""

from __future__ import annotations

from copy import copy
from functools import cache

from botocore.hooks import HierarchicalEmitter
from botocore.loaders import Loader
from botocore.session import Session

_DESCRIPTIONS = Loader()
"""The services' large models, read once and not once per session."""


def session() -> Session:
    """A session without credentials."""
    plain = Session(event_hooks=copy(_handlers()), include_builtin_handlers=False)
    plain.register_component("data_loader", _DESCRIPTIONS)
    return plain


@cache
def _handlers() -> HierarchicalEmitter:
    """The handlers of each session. To register them takes most of making one: botocore looks at their signatures."""
    emitter = HierarchicalEmitter()
    Session(event_hooks=emitter)
    return emitter


TO_OPT_INTO = frozenset(
    {
        "af-south-1", "ap-east-1", "ap-east-2", "ap-south-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
        "ap-southeast-6", "ap-southeast-7", "ca-west-1", "eu-central-2", "eu-south-1", "eu-south-2", "il-central-1",
        "me-central-1", "me-south-1", "mx-central-1",
    }
)  # fmt: skip
"""Regions that an account has to enable before anything of them answers: those that are younger than March 2019."""


def opt_in_remark(region: str) -> str:
    """A remark for a region of which nothing is known, with a space before it; empty for one that is open to all."""
    if region not in TO_OPT_INTO:
        return ""
    return (
        f" {region} has to be opted into, and Stockyard reads what it offers with its own account: who operates"
        " Stockyard has to enable the region there. Until then the region has no node types."
    )


@cache
def every() -> frozenset[str]:
    """The regions of all partitions. No call is made."""
    botocore = session()
    partitions = botocore.get_available_partitions()
    return frozenset(region for name in partitions for region in botocore.get_available_regions("ec2", name))
