"""Objects that are too large for a record (``ports.ObjectStorage``), in the stage's bucket of S3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stockyard.adapters.aws_errors import translated
from stockyard.adapters.dynamodb.keys import checked_tenant
from stockyard.domain.platform import PLATFORM


class S3ObjectStorage:
    """One tenant's objects: each key begins with the kind of object, by which the bucket's life cycle goes, and then
    with the tenant. ``client`` is made when an object is written or read."""

    def __init__(self, client: Callable[[], Any], bucket: str, tenant: str) -> None:
        self._client, self._bucket = client, bucket
        self._tenant = tenant if tenant == PLATFORM else checked_tenant(tenant)

    def put(self, name: str, data: bytes) -> None:
        """See ``ports.ObjectStorage.put``."""
        with translated():
            self._client().put_object(Bucket=self._bucket, Key=self._key(name), Body=data)

    def get(self, name: str) -> bytes | None:
        """See ``ports.ObjectStorage.get``."""
        client = self._client()
        with translated():
            try:
                answer = client.get_object(Bucket=self._bucket, Key=self._key(name))
            except client.exceptions.NoSuchKey:
                return None
            data: bytes = answer["Body"].read()
            return data

    def delete(self, name: str) -> None:
        """See ``ports.ObjectStorage.delete``."""
        with translated():
            self._client().delete_object(Bucket=self._bucket, Key=self._key(name))

    def _key(self, name: str) -> str:
        kind, _, path = name.partition("/")
        return f"{kind}/{self._tenant}/{path}"
