"""Key pairs of one region are in all of an account's regions: who tries a plan in another region has one there too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.key_pairs import KeyPairBackend

HOME = "us-east-1"


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
