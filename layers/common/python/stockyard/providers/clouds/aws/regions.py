"""The regions of AWS in botocore's data, and sessions with a shared cache of botocore's files."""

from __future__ import annotations

from functools import cache

from botocore.loaders import Loader
from botocore.session import Session

_DESCRIPTIONS = Loader()
"""The services' large models, read once and not once per session."""


def session() -> Session:
    """A session without credentials."""
    plain = Session()
    plain.register_component("data_loader", _DESCRIPTIONS)
    return plain


@cache
def every() -> frozenset[str]:
    """The regions of all partitions. No call is made."""
    botocore = session()
    partitions = botocore.get_available_partitions()
    return frozenset(region for name in partitions for region in botocore.get_available_regions("ec2", name))
