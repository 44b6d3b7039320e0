"""The attributes of a cloud account in Cudo Compute."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from stockyard.domain.models.base import Fault, Input, Irremovable, check
from stockyard.domain.models.patterns import LOWER_NAME, worded

_KEY = re.compile(r"[!-~]{8,512}")
_ADDRESS = worded(r"^https://[!-~]{1,500}$", "the address of a Vault, https://<host>")
_ROLE = worded(r"^[!-~]{1,200}$", "the role id of an AppRole")


def _key(value: SecretStr) -> SecretStr:
    if not _KEY.fullmatch(value.get_secret_value()):
        raise ValueError("must have 8 to 512 printable ASCII characters without spaces")
    return value


def _vault(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or set(text) & set("@?#\\"):
        raise ValueError("must be https://, a host and perhaps a path")
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    if not is_port:
        raise ValueError("must have a port of 1 to 65535, or none")
    return text.rstrip("/")


CudoId = Annotated[str, StringConstraints(max_length=63, pattern=LOWER_NAME)]
Key = Annotated[
    SecretStr,
    AfterValidator(_key),
    Field(json_schema_extra={"minLength": 8, "maxLength": 512, "pattern": "^[!-~]{8,512}$"}),
]
VaultAddress = Annotated[str, StringConstraints(pattern=_ADDRESS), AfterValidator(_vault)]
RoleId = Annotated[str, StringConstraints(pattern=_ROLE)]


class CudoAttributes(Input):
    """A project of Cudo Compute and the API key for it."""

    project_id: CudoId
    """The project that everything is made in."""
    api_key: Key
    """An API key that may change the project; it is kept sealed and never shown."""
    data_center_id: CudoId
    """The data center where things stand that name none."""
    vault_address: VaultAddress | None = None
    """The address of a Vault, by which data disks of control planes are encrypted."""
    vault_role_id: RoleId | None = None
    """The role id of the AppRole by which Stockyard logs in to the Vault."""
    vault_secret_id: Key | None = None
    """The secret id of that AppRole; it is kept sealed and never shown."""

    @model_validator(mode="after")
    def _whole_vault(self) -> CudoAttributes:
        names = ("vault_address", "vault_role_id", "vault_secret_id")
        missing = [name for name in names if getattr(self, name) is None]
        if len(missing) not in (0, len(names)):
            faults: list[Fault] = [((name,), "a Vault needs its address, role id and secret id") for name in missing]
            check(faults)
        return self


class CudoAttributesPatch(Input):
    """Changed attributes; one that is absent stays. A Vault is taken away by null in all of its three."""

    project_id: Irremovable[CudoId] = None
    """The project that everything is made in."""
    api_key: Irremovable[Key] = None
    """An API key that may change the project; it is kept sealed and never shown."""
    data_center_id: Irremovable[CudoId] = None
    """The data center where things stand that name none."""
    vault_address: VaultAddress | None = None
    """The address of the Vault; null in all three fields takes it away."""
    vault_role_id: RoleId | None = None
    """The role id of the AppRole; null in all three fields takes the Vault away."""
    vault_secret_id: Key | None = None
    """The secret id of the AppRole; null in all three fields takes the Vault away."""
