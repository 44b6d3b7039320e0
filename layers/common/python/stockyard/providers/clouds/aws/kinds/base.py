"""Kinds of things that can be made in EC2, load balancing and IAM: how each kind is found, what state it is in, how it
is deleted.

Making is written where it is decided (``network``, ``security``, ...), because only there the parameters are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from stockyard.errors import PermissionDenied, VendorNotFound
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
    are looked up by ``name`` when it is given, whatever their tags. ``describe`` and ``remove`` may say of an absent
    thing that it is not found. ``repeatable`` says that its name or range is unique, so that making it again cannot
    make a second one.
    """

    name: str
    search: Callable[[Calls, Mapping[str, str], str | None], Sequence[TaggedThing]]
    describe: Callable[[Calls, str], Mapping[str, Any] | None]
    remove: Callable[[Calls, str], None]
    state_of: Callable[[Mapping[str, Any]], State] = lambda _: State.PRESENT
    repeatable: bool = False
    borrowed: bool = False
    """It is the tenant's own; forgetting it is all that deletion means."""
    named: bool = False
    """Its name is its identity: also a deletion looks it up by that."""
    later: bool = False
    """Our role's permission to look came with a later version of the tenant's template. Who has an older one has none
    of it."""

    def tagged(self, calls: Calls, required_tags: Mapping[str, str]) -> Sequence[TaggedThing]:
        """The living things that carry all the tags; none of a ``later`` kind that our role may not look at."""
        try:
            return self.search(calls, required_tags, None)
        except PermissionDenied:
            if not self.later:
                raise
            return ()

    def state(self, calls: Calls, vendor_id: str) -> State:
        """The thing's state now."""
        try:
            item = self.describe(calls, vendor_id)
        except VendorNotFound:
            return State.ABSENT
        return self.state_of(item) if item else State.ABSENT

    def delete(self, calls: Calls, vendor_id: str) -> None:
        """Delete the thing; an absent one is no error."""
        with suppress(VendorNotFound):
            self.remove(calls, vendor_id)


def borrowed(name: str) -> Kind:
    """A line that stands for nothing that we made; forgetting it is all that deletion means."""
    return Kind(name, lambda *_: (), lambda *_: {"borrowed": True}, lambda *_: None, repeatable=True, borrowed=True)


REFUSED_CAPACITY = borrowed("refused_capacity")
"""A type in a zone that EC2 had none of for the control plane, so that the next one is tried."""
GIVEN_NETWORK = borrowed("given_network")
"""The VPC and subnets that the tenant gave us, as chosen once; never deleted."""
