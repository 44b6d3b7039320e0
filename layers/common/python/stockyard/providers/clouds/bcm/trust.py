"""TLS with a head node: known by its authority or by its certificate's fingerprint, and shown a client certificate."""

from __future__ import annotations

import base64
import binascii
import hashlib
import socket
import ssl
from dataclasses import dataclass, field
from tempfile import NamedTemporaryFile
from typing import Any

from stockyard.errors import VendorRefused


@dataclass(frozen=True, slots=True)
class Trust:
    """Proof of a head node, and what it is shown: PEM in base64, and hex digits."""

    authority_b64: str | None
    fingerprint: str | None
    certificate_b64: str
    key_b64: str = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """The context of a connection. ``VendorRefused`` for certificates and keys that cannot be read."""
        if self.fingerprint is not None:
            pinned = _Pinned(ssl.PROTOCOL_TLS_CLIENT)
            pinned.fingerprint = self.fingerprint
            pinned.check_hostname, pinned.verify_mode = False, ssl.CERT_NONE
            context: ssl.SSLContext = pinned
        else:
            try:
                pem = base64.b64decode(self.authority_b64 or "", validate=True).decode("ascii")
                context = ssl.create_default_context(cadata=pem or None)
            except (binascii.Error, UnicodeDecodeError, ssl.SSLError):
                raise VendorRefused("the head node's authority is no certificate in base64", code="Authority") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        """Load the client's key from a file that only we may read: Python reads it from no other place."""
        try:
            with NamedTemporaryFile(suffix=".pem") as file:
                file.write(base64.b64decode(self.certificate_b64) + b"\n" + base64.b64decode(self.key_b64))
                file.flush()
                context.load_cert_chain(file.name)
        except (binascii.Error, ssl.SSLError):
            raise VendorRefused("the client certificate does not fit its key", code="ClientCertificate") from None


class _Pinned(ssl.SSLContext):
    """A context whose connections are to one certificate: any other ends them before a request is sent."""

    fingerprint: str

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        connection = super().wrap_socket(sock, *args, **options)
        certificate = connection.getpeercert(binary_form=True) or b""
        if hashlib.sha256(certificate).hexdigest() != self.fingerprint:
            connection.close()
            raise ssl.SSLCertVerificationError("the certificate is another one than the pinned one")
        return connection
