"""Named secrets (``ports.Secrets``) on Secrets Manager. Values are never logged and never part of an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from stockyard.adapters.aws_errors import translated
from stockyard.errors import VendorConflict, VendorNotFound

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

_OWN_SECONDS = 300.0


class SecretsManagerSecrets:
    """The secrets of clusters below ``{prefix}/clusters/``, and with :meth:`own` the stage's own."""

    def __init__(
        self,
        client: SecretsManagerClient,
        prefix: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._root = f"{prefix}/clusters/"
        self._clock = clock
        self._own: dict[str, tuple[float, str]] = {}

    def put(self, name: str, value: str) -> None:
        """Create or overwrite. ``VendorConflict`` while a deletion of that name still settles."""
        exceptions = self._client.exceptions
        full = self._root + name
        with translated():
            try:
                self._client.create_secret(Name=full, SecretString=value, Tags=self._labels(name))  # type: ignore[arg-type]
            except exceptions.ResourceExistsException:
                pass
            except exceptions.InvalidRequestException as error:
                raise VendorConflict("the secret is being deleted", code="InvalidRequestException") from error
            else:
                return
            try:
                self._client.put_secret_value(SecretId=full, SecretString=value)
            except (exceptions.InvalidRequestException, exceptions.ResourceNotFoundException) as error:
                raise VendorConflict("the secret is being deleted", code="InvalidRequestException") from error

    def get(self, name: str) -> str | None:
        """The value, or None."""
        return self._read(self._root + name)

    def delete(self, name: str) -> None:
        """Delete at once, without a recovery window; a missing one is no error."""
        with translated(), suppress(self._client.exceptions.ResourceNotFoundException):
            self._client.delete_secret(SecretId=self._root + name, ForceDeleteWithoutRecovery=True)

    def names(self, prefix: str) -> Sequence[str]:
        """Names that start with ``prefix``, sorted. A very recent change may not show yet."""
        names: list[str] = []
        with translated():
            pages = self._client.get_paginator("list_secrets").paginate(
                Filters=[{"Key": "name", "Values": [self._root + prefix]}]
            )
            for page in pages:
                names.extend(secret["Name"] for secret in page["SecretList"])
        # The filter of the service ignores case, so the prefix is compared again.
        full_prefix = self._root + prefix
        return sorted(name.removeprefix(self._root) for name in names if name.startswith(full_prefix))

    def own(self, name: str) -> str:
        """One of the stage's own secrets by its full name or ARN, kept for five minutes. ``VendorNotFound``."""
        now = self._clock()
        cached = self._own.get(name)
        if cached is not None and now < cached[0]:
            return cached[1]
        value = self._read(name)
        if value is None:
            raise VendorNotFound(f"there is no secret {name}", code="ResourceNotFoundException")
        self._own[name] = (now + _OWN_SECONDS, value)
        return value

    def _read(self, full: str) -> str | None:
        exceptions = self._client.exceptions
        with translated():
            try:
                return self._client.get_secret_value(SecretId=full)["SecretString"]
            except (exceptions.ResourceNotFoundException, exceptions.InvalidRequestException):
                # InvalidRequest: marked for deletion, so nobody should get it any more.
                return None

    def _labels(self, name: str) -> list[dict[str, str]]:
        tenant, _, path = name.partition("/")
        labels = {"stockyard:tenant": tenant, "stockyard:resource": path.partition("/")[0]}
        return [{"Key": key, "Value": value} for key, value in labels.items()]
