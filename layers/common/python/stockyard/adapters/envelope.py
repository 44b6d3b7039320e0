"""Secrets of clusters (``ports.Secrets``) in the table, each sealed with a data key of its own from one key of KMS.

KMS opens a data key only together with the tenant and cluster that it was made for (the encryption context), and a
value only opens under its own name: an item that was copied to another tenant or name is of no use there.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from typing import Any

from stockyard.adapters.aws_errors import translated
from stockyard.domain.records import SealedSecret
from stockyard.errors import VendorRefused
from stockyard.ports import Put, Remove, Store

_NONCE = 12
"""Bytes; what AES-GCM takes. Each data key seals one value, so no nonce comes twice with a key."""


class EnvelopeSecrets:
    """``client`` is made when a value is written or read; ``key`` is the alias of the key."""

    def __init__(self, client: Callable[[], Any], key: str, store_of: Callable[[str], Store]) -> None:
        self._client, self._key, self._store_of = client, key, store_of

    def put(self, name: str, value: str) -> None:
        """Create or overwrite."""
        tenant, path = _parts(name)
        key, sealed = self._sealed(name, value.encode())
        self._store_of(tenant).commit(Put(SealedSecret(path, key, sealed)))

    def get(self, name: str) -> str | None:
        """The value, or None. ``VendorRefused`` for one that was changed in the table."""
        tenant, path = _parts(name)
        record = self._store_of(tenant).get(SealedSecret, path)
        return self._opened(name, record.key, record.sealed).decode() if record is not None else None

    def seal(self, name: str, value: bytes) -> str:
        """See ``ports.sites.Seals.seal``: the sealed data key and the sealed value, with a dot between."""
        return ".".join(self._sealed(name, value))

    def unseal(self, name: str, sealed: str) -> bytes:
        """See ``ports.sites.Seals.unseal``."""
        key, _, value = sealed.partition(".")
        return self._opened(name, key, value)

    def _sealed(self, name: str, value: bytes) -> tuple[str, str]:
        """The sealed data key and the sealed value, in base 64."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # kept out of cold starts

        tenant, path = _parts(name)
        with translated():
            data_key = self._client().generate_data_key(
                KeyId=self._key, KeySpec="AES_256", EncryptionContext=_context(tenant, path)
            )
        nonce = os.urandom(_NONCE)
        sealed = nonce + AESGCM(data_key["Plaintext"]).encrypt(nonce, value, name.encode())
        return base64.b64encode(data_key["CiphertextBlob"]).decode(), base64.b64encode(sealed).decode()

    def _opened(self, name: str, key: str, value: str) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        tenant, path = _parts(name)
        with translated():
            opened = self._client().decrypt(
                KeyId=self._key, CiphertextBlob=base64.b64decode(key), EncryptionContext=_context(tenant, path)
            )
        sealed = base64.b64decode(value)
        try:
            return AESGCM(opened["Plaintext"]).decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode())
        except InvalidTag:
            raise VendorRefused("the secret was changed in the table") from None

    def delete(self, name: str) -> None:
        """Delete at once; a missing one is no error."""
        tenant, path = _parts(name)
        self._store_of(tenant).commit(Remove(SealedSecret, path))

    def names(self, prefix: str) -> Sequence[str]:
        """Names that start with ``prefix``, which begins with a whole tenant; sorted."""
        tenant, _, path = prefix.partition("/")
        store, names, after = self._store_of(tenant), list[str](), None
        while True:
            page = store.list(SealedSecret, prefix=path, after=after, limit=200)
            names += [f"{tenant}/{record.id}" for record in page.items]
            after = page.next_id
            if after is None:
                return names


def _parts(name: str) -> tuple[str, str]:
    tenant, _, path = name.partition("/")
    return tenant, path


def _context(tenant: str, path: str) -> dict[str, str]:
    return {"stockyard:tenant": tenant, "stockyard:resource": path.partition("/")[0]}
