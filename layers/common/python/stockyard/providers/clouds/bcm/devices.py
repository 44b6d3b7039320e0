"""One device of a head node, as an entity that is kept whole, and what Stockyard may do to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.bcm import scripts
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL, Marks, has_line, marks_of, may_install, texts

FULL, NOSYNC = "FULL", "NOSYNC"
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)
_MODES = ("nextInstallMode", "nextBootInstallMode")
"""Names of the install mode of the next boot, by release."""
_DECISIVE = ("baseType", "childType", "hostname", "roles", "notes", "finalize")
_NOT_SET = frozenset({"", "NONE", "UNDEFINED"})
_HEAD = re.compile(r"head|master|failover", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Device:
    """``entity`` is the whole device as it was read; unknown fields go back as they came."""

    entity: Mapping[str, Any]

    @property
    def uuid(self) -> str:
        """The uuid in lower case; empty where it is none."""
        text = texts(self.entity, "uuid")
        return text.lower() if UUID.fullmatch(text) else ""

    @property
    def hostname(self) -> str:
        """The host name; empty where it is none."""
        text = texts(self.entity, "hostname")
        return text if _HOST.fullmatch(text) else ""

    @property
    def notes(self) -> str:
        """The text in which the owner's word and our line stand."""
        return texts(self.entity, "notes")

    @property
    def is_node(self) -> bool:
        """Whether its own type is that of a compute node of metal, and no role says head node."""
        kinds = (self.entity.get("baseType"), self.entity.get("childType"))
        return kinds == ("Device", "PhysicalNode") and bool(self.uuid and self.hostname) and not self._is_head

    @property
    def _is_head(self) -> bool:
        """Whether a role is that of a head node. Roles that cannot be read count as one."""
        roles = self.entity.get("roles", [])
        if not isinstance(roles, list):
            return True
        names = [role.get("childType", "") if isinstance(role, Mapping) else role for role in roles]
        return any(not isinstance(name, str) or _HEAD.search(name) for name in names)

    @property
    def may_install(self) -> bool:
        """Whether it is a node that its owner lets Stockyard install."""
        return self.is_node and may_install(self.notes)

    @property
    def marks(self) -> Marks | None:
        """Our marks on it; None where there are none, or where they are another device's."""
        return marks_of(self.notes, self.uuid)

    @property
    def mode_field(self) -> str:
        """The field of the install mode of the next boot. Raises ``VendorRefused`` where there is none that we know."""
        field = next((name for name in _MODES if name in self.entity), None)
        if field is None:
            text = f"The head node's devices have none of the fields {' and '.join(_MODES)}."
            raise VendorRefused(text, code="NoInstallMode", hint="This release of BCM is not known.")
        return field

    @property
    def next_mode(self) -> str | None:
        """The install mode of the next boot; None where nobody has set one."""
        value = self.entity[self.mode_field]
        if value is None or (isinstance(value, str) and value.upper() in _NOT_SET):
            return None
        return value if isinstance(value, str) else "unreadable"

    @property
    def revision(self) -> object:
        """Mark that changes with each change of the device: its revision, and all of it where there is none."""
        return self.entity.get("revision") or dict(self.entity)

    def is_like(self, other: Device) -> bool:
        """Whether all that decisions are made by is the same, whatever a revision says."""
        return all(self.entity.get(name) == other.entity.get(name) for name in (*_DECISIVE, *_MODES))

    def why_not_free(self) -> str | None:
        """Reason why it cannot become a claim's machine, in words; None when it can."""
        if not self.is_node:
            return "it is no compute node"
        if not self.may_install:
            return f"its notes have no {MAY_INSTALL}"
        if has_line(self.notes) or scripts.is_own(self.entity.get("finalize")):
            return "it is in use, or copied from a device that was"
        if self.next_mode is not None:
            return f"somebody has set {self.next_mode} for its next boot"
        if not isinstance(self.entity.get("finalize", ""), str | None):
            return "its finalize script cannot be read"
        return None

    def why_not_ours(self, marks: Marks) -> str | None:
        """Reason why it must not be switched for the claim of those marks, in words; None when it may."""
        if not self.is_node:
            return "it is no compute node"
        if not self.may_install:
            return f"its notes have no {MAY_INSTALL}"
        own = self.marks
        if own is None or not own.is_of(marks.installation, marks.tenant, marks.resource):
            return "it does not carry the marks of this claim"
        return None
