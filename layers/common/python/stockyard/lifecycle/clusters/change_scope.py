"""Faults of a standing cluster's settings that speak against a change: those of what the change touches.

What stands goes on standing when something that it was made with is gone. A change of labels needs no key pair, and the
replacement of a lost member is never refused for a setting.
"""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.pools.node_groups import GROUP_SETTINGS
from stockyard.lifecycle.clusters.cluster_changes import SIZE, TYPE, TYPES, VERSION, Difference
from stockyard.lifecycle.clusters.repave import RENEWAL, REPAVE

_SETTINGS = "/settings"
_MAKES_MEMBERS = frozenset({VERSION, REPAVE, RENEWAL, *(f"{_SETTINGS}/{name}" for name in (SIZE, TYPE, TYPES))})
"""Changes that make machines of the control plane anew, with all that the settings say of these."""


_OF_THE_SAME_MACHINES = frozenset({"labels", "taints", "min_size", "max_size", "count"})
"""Fields of a node group that ask nothing of the account that its machines did not ask before."""


def speaks_against(path: str, changes: Sequence[Difference], *, dispensable: bool = False) -> bool:
    """Whether a fault at the JSON pointer ``path`` refuses these changes.

    ``dispensable``: machines are made without what is missing there. A fault of the account, which is at no setting,
    refuses what asks something new of it: not packs, what goes, nor how many nodes a group has and how they are marked.
    """
    changed = [str(change["pointer"]) for change in changes]
    if any(_meet(path, pointer) for pointer in changed):
        return True
    if dispensable:
        return False
    if not _is_below(path, _SETTINGS):
        return any(change["after"] is not None and _asks_the_account(str(change["pointer"])) for change in changes)
    return not _is_of_group(path) and bool(_MAKES_MEMBERS.intersection(changed))


def _asks_the_account(pointer: str) -> bool:
    if not _is_below(pointer, _SETTINGS):
        return pointer in _MAKES_MEMBERS
    return not _is_of_group(pointer) or pointer.rpartition("/")[2] not in _OF_THE_SAME_MACHINES


def _meet(first: str, second: str) -> bool:
    return _is_below(first, second) or _is_below(second, first)


def _is_below(path: str, other: str) -> bool:
    """Whether the first pointer is the other, or leads to something in it."""
    return path == other or path.startswith(f"{other}/")


def _is_of_group(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 2 and parts[1] == _SETTINGS[1:] and parts[2] in GROUP_SETTINGS
