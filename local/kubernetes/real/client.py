"""A caller of a real API server: JSON over one connection a call."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

JSON, MERGE = "application/json", "application/merge-patch+json"
_SECONDS = 10


class Refused(Exception):
    """The API server answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class Client:
    """``url`` is the API server's. The caller is who the TLS context's certificate or the ``token`` names."""

    def __init__(self, url: str, context: ssl.SSLContext, token: str = "") -> None:
        self.address = urlsplit(url).netloc
        self._context, self._token = context, token

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Client:
        """The caller that a kubeconfig names by a token, or by a certificate as kubeadm does, which goes with its key
        into a file beside the kubeconfig."""
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        if "token" in user:
            return cls(cluster["server"], ssl.create_default_context(cadata=authority), user["token"])
        pair = [base64.b64decode(user[f"client-{name}-data"]) for name in ("certificate", "key")]
        return cls(cluster["server"], certified(path.with_suffix(".pem"), authority, *pair))

    def call(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """The object of the answer. Raises ``Refused`` for anything but 2xx, ``OSError`` when nobody answers."""
        connection = http.client.HTTPSConnection(self.address, timeout=_SECONDS, context=self._context)
        headers = {"Accept": JSON, "Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.address}: {error}") from None
        finally:
            connection.close()
        try:
            document = json.loads(text)
        except ValueError:
            document = {"message": text}
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, str(document.get("message", "")))
        return document


def certified(path: Path, authority: str, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """A context that trusts ``authority`` and shows the certificate; OpenSSL reads both from the file ``path``."""
    path.touch(mode=0o600)
    path.write_bytes(certificate + key)
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(path)
    return context
