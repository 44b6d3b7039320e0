"""The connector's settings, from environment variables and the files of the site's owner."""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..stockyard_agent.transport import checked
from . import allowed

CLIENT = "/var/run/stockyard-site"
ETC = "/etc/stockyard-site"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Settings:
    """``client`` is the folder with id and secret of the site's client at Stockyard. The host is ``server``, known by
    ``authority``; the credential there is a file with a token, or a certificate with its key."""

    api_url: str
    site_id: str
    token_url: str
    client: Path
    allowed_file: Path
    server: str
    authority: Path | None
    token_file: Path | None
    certificate: Path | None
    key: Path | None
    fingerprint: str | None = None
    """SHA-256 of the host's own certificate, in hex, where it is known by that and by no authority."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Read the environment. Raises ``ValueError`` that names a missing or malformed variable."""
        needed = ("STOCKYARD_API_URL", "STOCKYARD_SITE_ID", "STOCKYARD_TOKEN_URL")
        missing = [name for name in needed if not environment.get(name)]
        if missing:
            raise ValueError(f"not set: {', '.join(missing)}")
        named = {name: _path(environment, f"SITE_{name}") for name in ("AUTHORITY", "TOKEN", "CERTIFICATE", "KEY")}
        server = environment.get("SITE_SERVER")
        if not server:
            server, account = _in_cluster(environment), Path(environment.get("STOCKYARD_ACCOUNT_DIR", ACCOUNT))
            named["AUTHORITY"] = named["AUTHORITY"] or account / "ca.crt"
            if named["CERTIFICATE"] is None:
                named["TOKEN"] = named["TOKEN"] or account / "token"
        if (named["CERTIFICATE"] is None) != (named["KEY"] is None):
            raise ValueError("SITE_CERTIFICATE and SITE_KEY belong together")
        if (named["TOKEN"] is None) == (named["CERTIFICATE"] is None):
            raise ValueError("set SITE_TOKEN, or SITE_CERTIFICATE and SITE_KEY")
        return cls(
            checked(environment["STOCKYARD_API_URL"]),
            environment["STOCKYARD_SITE_ID"],
            checked(environment["STOCKYARD_TOKEN_URL"]),
            Path(environment.get("STOCKYARD_CLIENT_DIR", CLIENT)),
            Path(environment.get("SITE_ALLOWED_DIR", ETC), "allowed"),
            _origin(server),
            named["AUTHORITY"],
            named["TOKEN"],
            named["CERTIFICATE"],
            named["KEY"],
            _fingerprint(environment.get("SITE_FINGERPRINT")),
        )

    def credentials(self) -> tuple[str, str]:
        """Id and secret of the site's client at Stockyard. Raises ``OSError``."""
        return _text(self.client / "client_id"), _text(self.client / "client_secret")

    def token(self) -> str | None:
        """The token for the host, read anew each time. Raises ``OSError``."""
        return _text(self.token_file) if self.token_file is not None else None

    def allow_list(self) -> allowed.AllowList:
        """The allow-list, read anew each time. Raises ``OSError``, ``BadList``."""
        return allowed.read(self.allowed_file.read_text(encoding="utf-8"))

    def context(self) -> ssl.SSLContext:
        """TLS with the host. Raises ``OSError`` for files that are missing or no certificates."""
        if self.fingerprint is not None:
            pinned = _Pinned(ssl.PROTOCOL_TLS_CLIENT)
            pinned.fingerprint, pinned.check_hostname, pinned.verify_mode = self.fingerprint, False, ssl.CERT_NONE
            context: ssl.SSLContext = pinned
        else:
            context = ssl.create_default_context(cafile=str(self.authority) if self.authority is not None else None)
        if self.certificate is not None and self.key is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


class _Pinned(ssl.SSLContext):
    """A context whose connections are to one certificate: any other ends them before a request is sent."""

    fingerprint: str

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        connection = super().wrap_socket(sock, *args, **options)
        if hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest() != self.fingerprint:
            connection.close()
            raise ssl.SSLCertVerificationError("the host's certificate is another one than SITE_FINGERPRINT says")
        return connection


def _fingerprint(text: str | None) -> str | None:
    digits = text.replace(":", "").lower() if text else None
    if digits is not None and re.fullmatch(r"[0-9a-f]{64}", digits) is None:
        raise ValueError("SITE_FINGERPRINT is SHA-256 in hex")
    return digits


def _origin(server: str) -> str:
    """The server without its last slash. Raises ``ValueError`` for one with a path."""
    text = checked(server)
    if text.count("/") != 2 or "@" in text or "?" in text or "#" in text:
        raise ValueError("SITE_SERVER is https://, a host and a port, without a path")
    return text


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return Path(text) if text else None


def _in_cluster(environment: Mapping[str, str]) -> str:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ValueError("not set: SITE_SERVER; this is no pod of a cluster either")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
