"""Services of tenants beside AWS, on ports of the loopback: projects in a Cudo, and a Vault for keys of their disks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from local.cudo.server import ACME_KEY, KEYS, CudoServer
from local.vault.server import VaultServer, app_role

if TYPE_CHECKING:
    from local.cudo.api import SimulatedCudo
    from local.fault_plan import CudoPlan

VAULT_ADDRESS = "https://vault.acme.example"
"""What an account names. Accounts take https alone, so functions and machines are told where the Vault really is."""


class ServedCudo:
    """``address`` gives each machine a public address. Both servers listen from the beginning until ``close``."""

    def __init__(self, home: Path, plan: CudoPlan, address: Callable[[], str] | None = None) -> None:
        self._server = CudoServer(KEYS, plan, home / "logs" / "cudo-outside.log", address)
        self.vault = VaultServer()
        role_id, secret_id = app_role(self.vault)
        self.of_functions: Mapping[str, str] = {
            "STOCKYARD_CUDO_URL": self._server.url,
            "STOCKYARD_VAULT_URL": self.vault.url,
        }
        """What functions are told of it."""
        self.of_people: Mapping[str, str] = {
            "CUDO_URL": self._server.url,
            "CUDO_PROJECT_ID": KEYS[ACME_KEY],
            "CUDO_API_KEY": ACME_KEY,
            "VAULT_ADDRESS": VAULT_ADDRESS,
            "VAULT_ROLE_ID": role_id,
            "VAULT_SECRET_ID": secret_id,
        }
        """What the tenant has, for ``env``."""

    @property
    def cudo(self) -> SimulatedCudo:
        """The vendor behind the port."""
        return self._server.cudo

    @property
    def started(self) -> SimulatedCudo | None:
        """The vendor, once somebody has called it."""
        return self._server.started

    def close(self) -> None:
        """Stop listening."""
        self._server.close()
        self.vault.close()
