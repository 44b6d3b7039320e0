"""The agent's settings, from environment variables and mounted files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .transport import checked

CLIENT = "/var/run/stockyard"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Settings:
    """``client`` is the folder with the client's id and secret, ``account`` the folder of the service account."""

    api_url: str
    cluster_id: str
    token_url: str
    kubernetes_url: str
    client: Path
    account: Path
    own_pod: tuple[str, str]

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Read the environment. Raises ``ValueError`` that names a missing or malformed variable."""
        needed = ("STOCKYARD_API_URL", "STOCKYARD_CLUSTER_ID", "STOCKYARD_TOKEN_URL")
        missing = [name for name in needed if not environment.get(name)]
        if missing:
            raise ValueError(f"not set: {', '.join(missing)}")
        return cls(
            checked(environment["STOCKYARD_API_URL"]),
            environment["STOCKYARD_CLUSTER_ID"],
            checked(environment["STOCKYARD_TOKEN_URL"]),
            checked(environment.get("STOCKYARD_KUBERNETES_URL") or _in_cluster(environment)),
            Path(environment.get("STOCKYARD_CLIENT_DIR", CLIENT)),
            Path(environment.get("STOCKYARD_ACCOUNT_DIR", ACCOUNT)),
            (environment.get("POD_NAMESPACE", ""), environment.get("POD_NAME", "")),
        )

    def credentials(self) -> tuple[str, str]:
        """Id and secret of the cluster's client. Raises ``OSError``."""
        return _text(self.client / "client_id"), _text(self.client / "client_secret")

    def account_token(self) -> str:
        """The service account's current token. Raises ``OSError``."""
        return _text(self.account / "token")

    @property
    def kubernetes_host(self) -> str:
        """The name or address at which the Kubernetes API answers inside the cluster."""
        return urlsplit(self.kubernetes_url).hostname or ""

    def authority(self) -> str:
        """The cluster's certificate authority in PEM. Raises ``OSError``."""
        return _text(self.account / "ca.crt")


def _in_cluster(environment: Mapping[str, str]) -> str:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ValueError("not set: KUBERNETES_SERVICE_HOST; this is no pod of a cluster")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
