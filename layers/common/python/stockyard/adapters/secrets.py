"""The stage's own secrets on Secrets Manager. Values are never logged and never part of an error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from stockyard.adapters.aws_errors import translated
from stockyard.errors import VendorNotFound

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

_SECONDS = 300.0
"""How long a value is kept."""


class OwnSecrets:
    """Reads secrets that the operator or the stack has made."""

    def __init__(self, client: SecretsManagerClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._kept: dict[str, tuple[float, str]] = {}

    def read(self, name: str) -> str:
        """The value of a secret by its full name or ARN, kept for five minutes. ``VendorNotFound``."""
        now = self._clock()
        cached = self._kept.get(name)
        if cached is not None and now < cached[0]:
            return cached[1]
        exceptions = self._client.exceptions
        with translated():
            try:
                value = self._client.get_secret_value(SecretId=name)["SecretString"]
            except (exceptions.ResourceNotFoundException, exceptions.InvalidRequestException):
                # InvalidRequest: marked for deletion, so nobody should get it any more.
                raise VendorNotFound(f"there is no secret {name}", code="ResourceNotFoundException") from None
        self._kept[name] = (now + _SECONDS, value)
        return value
