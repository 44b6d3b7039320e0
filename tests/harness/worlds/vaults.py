"""Vaults for tests: the simulated one, and a real one where it was built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.vault.real.build import VAULT
from local.vault.real.process import RealVault
from local.vault.server import Vault, VaultServer

KINDS = ("simulated", "real")


@contextmanager
def running(kind: str) -> Iterator[Vault]:
    """One of ``KINDS``; the test is skipped where the real one was not built."""
    if kind == "real" and VAULT.missing():
        pytest.skip(VAULT.missing())
    vault = VaultServer() if kind == "simulated" else RealVault()
    try:
        yield vault
    finally:
        vault.close()
