"""Clients of our own account's services, made by botocore, boto3's own base. See decision 0001."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from botocore.config import Config
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserFactory
from botocore.session import Session, get_session

# The descriptions of services and endpoints are read once, not once for each client.
_descriptions = cache(create_loader)
_one_at_a_time = Lock()


def client(
    service: str,
    region: str | None = None,
    *,
    parsers: ResponseParserFactory | None = None,
    session: Session | None = None,
    **settings: Any,
) -> Any:
    """A client of a service, with botocore's standard retries; `settings` are those of botocore's `Config`.

    ``parsers`` read its answers; None: botocore's own. ``session`` is what clients of one process share: to make one
    costs as much as a client. None: the client has its own.
    """
    config = Config(retries={"mode": "standard", "total_max_attempts": 4}, **settings)
    session = session or make_session()
    with _one_at_a_time:  # a session makes one client at a time
        session.register_component("response_parser_factory", parsers or ResponseParserFactory())
        return session.create_client(service, region_name=region, config=config)


def regions() -> frozenset[str]:
    """The regions of all partitions, as botocore lists them. No call is made."""
    session = make_session()
    partitions = session.get_available_partitions()
    return frozenset(region for name in partitions for region in session.get_available_regions("ec2", name))


def make_session() -> Session:
    """A session with the credentials and settings that the environment has now."""
    session = get_session()
    session.register_component("data_loader", _descriptions())
    return session
