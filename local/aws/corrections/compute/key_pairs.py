"""Key pairs of one region are in all of an account's regions: who tries a plan in another region has one there too. A
launch with a key pair that is not there is refused, as EC2 does; moto takes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import InvalidKeyPairNameError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.key_pairs import KeyPairBackend

HOME = "us-east-1"


class UnknownKeyPair(ServiceException):  # type: ignore[misc]
    """A launch names a key pair that the region has not."""

    code = "InvalidKeyPair.NotFound"


@contextmanager
def known_key_pairs() -> Iterator[None]:
    """A launch names a key pair that is there, or none."""
    original = EC2Backend.run_instances

    def run_instances(backend: Any, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.get("key_name")
        if name:
            try:
                backend.describe_key_pairs([name], None)
            except InvalidKeyPairNameError as error:
                raise UnknownKeyPair(f"The key pair '{name}' does not exist") from error
        return original(backend, *args, **kwargs)

    with patch.object(EC2Backend, "run_instances", run_instances):
        yield


@contextmanager
def key_pairs_everywhere() -> Iterator[None]:
    """A region that is asked for its key pairs has those of ``HOME`` from then on. One that is deleted stays away."""
    describe = KeyPairBackend.describe_key_pairs
    copies: set[tuple[str, str, str]] = set()

    def describe_key_pairs(backend: EC2Backend, key_names: list[str], filters: Any = None) -> Any:
        account, region = backend.account_id, backend.region_name
        for name, pair in ec2_backends[account][HOME].key_pairs.items() if region != HOME else ():
            if (account, region, name) not in copies:
                copies.add((account, region, name))
                backend.key_pairs.setdefault(name, pair)
        return describe(backend, key_names, filters)

    with patch.object(KeyPairBackend, "describe_key_pairs", describe_key_pairs):
        yield
