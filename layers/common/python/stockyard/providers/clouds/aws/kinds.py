"""What can be made in EC2, load balancing and IAM: how each kind is found, what state it is in, how it is deleted.

Making is written where it is decided (``network``, ``security``, ...), because only there the parameters are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from stockyard.providers.clouds.aws.calls import Calls


class State(Enum):
    """``PENDING`` is made but not usable yet, ``LEAVING`` is being deleted, ``FAILED`` needs deleting."""

    PRESENT = "present"
    PENDING = "pending"
    FAILED = "failed"
    LEAVING = "leaving"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class TaggedThing:
    """Something that lives in the cloud."""

    vendor_id: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing.

    ``search(calls, tags, name)`` gives the living things that carry all the tags; kinds whose name is their identity
    are looked up by ``name`` when it is given, whatever their tags. ``repeatable`` says that its
    name or range is unique, so that making it again cannot make a second one. ``delete`` of an absent thing is no
    error.
    """

    name: str
    search: Callable[[Calls, Mapping[str, str], str | None], Sequence[TaggedThing]]
    state: Callable[[Calls, str], State]
    delete: Callable[[Calls, str], None]
    repeatable: bool = False
    borrowed: bool = False
    """It is the tenant's own; forgetting it is all that deletion means."""


def _nothing(_calls: Calls, _tags: Mapping[str, str], _name: str | None) -> Sequence[TaggedThing]:
    return ()


GIVEN_NETWORK = Kind(
    "given_network",
    _nothing,
    lambda _calls, _id: State.PRESENT,
    lambda _calls, _id: None,
    repeatable=True,
    borrowed=True,
)
"""The VPC and subnets that the tenant gave us, as chosen once; never deleted."""
