"""A real Keycloak 26 on loopback: fetched once by Maven into ``.cache/``, run in memory, stopped with its process.

The same attributes as :class:`local.identity.server.IdentityServer`, so that one stands in for the other.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from local.authority import Authority
from local.children import start
from local.identity.keycloak_realm import add_console, add_person, add_program, realm, set_up, trust
from local.identity.realm import ADMIN_CLIENT, CLI_CLIENT, REALM

VERSION = "26.4.5"
FEATURES = "client-auth-federated"
"""A preview in this release: programs log in by a token of another issuer, such as GitHub's."""
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "keycloak"

_START_SECONDS = 180.0
_DOWNLOAD_SECONDS = 300.0
_MASTER_SECONDS = 30.0
"""How long a token of the bootstrap administrator is used; it lives a minute, and each costs a password's hash."""


class Unavailable(Exception):
    """Keycloak cannot be run on this machine; the text says why."""


class KeycloakServer:
    """One server with a realm ``stockyard`` and an admin client that may manage clients, no more."""

    admin_client_id = ADMIN_CLIENT
    cli_client_id = CLI_CLIENT

    def __init__(self, *, audience: str = "stockyard") -> None:
        self._audience = audience
        self.admin_client_secret = secrets.token_urlsafe(24)
        self.issuer = ""
        self.base_url = ""
        self._password = secrets.token_urlsafe(24)
        self.password = ""
        """Of the first person, for who logs in by hand."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._master = "", -_MASTER_SECONDS

    def start(self, port: int = 0, authority: Authority | None = None) -> str:
        """Start and return the base URL; with an ``authority`` it speaks TLS.

        ``Unavailable`` when Java, Maven or the download is missing. Who calls it by TLS must trust the authority.
        """
        home = installed()
        port = port or _free_port()
        self.base_url = f"http{'s' if authority else ''}://127.0.0.1:{port}"
        self.issuer = f"{self.base_url}/realms/{REALM}"
        self._log = CACHE / f"keycloak-{port}.log"
        options = ["start-dev", "--db=dev-mem", "--cache=local", "--http-host=127.0.0.1", *_listener(port, authority)]
        options.append(f"--features={FEATURES}")
        environment = {
            **os.environ,
            "KC_BOOTSTRAP_ADMIN_USERNAME": "bootstrap",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": self._password,
            "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
            # for a server that lives for minutes: half the work, most of which was compiling
            "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC",
        }
        with self._log.open("wb") as log:
            self._process = start(
                [str(home / "bin" / "kc.sh"), *options],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait()
            self._make_realm()
        except BaseException:
            self.stop()
            raise
        return self.base_url

    def stop(self) -> None:
        """Stop the server and everything it started; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                # The start script and the JVM are one process group of their own.
                os.killpg(process.pid, number)
                process.wait(15)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        if self._log is not None:
            self._log.unlink(missing_ok=True)

    def console_at(self, url: str) -> None:
        """Make the public client of the console that is served below ``url``."""
        add_console(self._admin, url=url, audience=self._audience)

    def trust(self, alias: str, issuer: str, keys_url: str) -> None:
        """Take tokens of another issuer, whose keys stand at ``keys_url``, as proofs of clients."""
        trust(self._admin, alias, issuer, keys_url)

    def add_program(self, name: str, tenant: str, roles: Sequence[str], proof: tuple[str, str]) -> None:
        """Make a client of ``tenant`` that proves itself by a token of a trusted issuer: its alias, and the subject."""
        add_program(self._admin, name, tenant, roles, proof=proof, audience=self._audience)

    def _wait(self) -> None:
        ends = time.monotonic() + _START_SECONDS
        while time.monotonic() < ends:
            if self._process is None or self._process.poll() is not None:
                raise Unavailable(f"Keycloak ended at once: {self._last_words()}")
            try:
                _call("GET", f"{self.base_url}/realms/master")
            except (URLError, OSError, Unavailable):
                time.sleep(0.25)
            else:
                return
        raise Unavailable(f"Keycloak did not start in {_START_SECONDS:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-500:] if self._log is not None else ""

    def token(self, tenant: str, roles: Sequence[str] = (), *, subject: str = "local-user") -> str:
        """An access token of a person of ``tenant``, valid a day; a new person with every call of a new ``subject``."""
        return str(self.sign_in(tenant, roles, subject=subject)["access_token"])

    def sign_in(self, tenant: str, roles: Sequence[str] = (), *, subject: str = "local-user") -> dict[str, Any]:
        """All tokens that the command line gets of a person: access, refresh and ID token."""
        password = add_person(self._admin, subject, tenant, roles)
        self.password = self.password or password
        form = {"grant_type": "password", "client_id": CLI_CLIENT, "username": subject, "password": password}
        form["scope"] = "openid organization"
        tokens: dict[str, Any] = _call("POST", f"{self.issuer}/protocol/openid-connect/token", form=form)
        return tokens

    def _admin(self, method: str, path: str, body: Any = None) -> Any:
        return _call(method, f"{self.base_url}/admin/realms/{REALM}{path}", body, self._master_token())

    def _master_token(self) -> str:
        token, fetched_at = self._master
        if time.monotonic() - fetched_at < _MASTER_SECONDS:
            return token
        form = {"grant_type": "password", "client_id": "admin-cli", "username": "bootstrap", "password": self._password}
        answer = _call("POST", f"{self.base_url}/realms/master/protocol/openid-connect/token", form=form)
        self._master = str(answer["access_token"]), time.monotonic()
        return self._master[0]

    def _make_realm(self) -> None:
        _call("POST", f"{self.base_url}/admin/realms", realm(), self._master_token())
        set_up(self._admin, admin_secret=self.admin_client_secret, audience=self._audience)


def installed() -> Path:
    """The unpacked distribution, fetched by Maven when it is not in the cache yet. Raises ``Unavailable``."""
    if shutil.which("java") is None:
        raise Unavailable("java is not installed")
    home = CACHE / f"keycloak-{VERSION}"
    if (home / "bin" / "kc.sh").exists():
        return home
    archive = CACHE / f"keycloak-quarkus-dist-{VERSION}.zip"
    if not archive.exists():
        _download(archive)
    partial = CACHE / f".unpacking-{os.getpid()}"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(partial)
    script = partial / home.name / "bin" / "kc.sh"
    script.chmod(0o755)
    if not home.exists():
        (partial / home.name).rename(home)
    shutil.rmtree(partial)
    return home


def _download(archive: Path) -> None:
    if shutil.which("mvn") is None:
        raise Unavailable("mvn is not installed")
    archive.parent.mkdir(parents=True, exist_ok=True)
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy",
        f"-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:zip",
        f"-DoutputDirectory={archive.parent}",
    ]
    try:
        done = subprocess.run(command, cwd=archive.parent, capture_output=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable("the download of Keycloak took too long") from None
    if done.returncode or not archive.exists():
        raise Unavailable(f"Maven could not fetch Keycloak {VERSION}")


def _listener(port: int, authority: Authority | None) -> list[str]:
    """The options of the one port that it listens on."""
    if authority is None:
        return [f"--http-port={port}"]
    certificate, key = authority.issue("keycloak")
    files = [f"--https-certificate-file={certificate}", f"--https-certificate-key-file={key}"]
    return ["--http-enabled=false", f"--https-port={port}", *files]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _call(method: str, url: str, body: Any = None, token: str = "", *, form: dict[str, str] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None
    if form is not None:
        data = urlencode(form).encode()
    elif body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    request = Request(url, data=data, headers=headers, method=method)  # noqa: S310  (our own loopback server)
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310
            raw = answer.read()
    except HTTPError as error:
        error.close()
        raise Unavailable(f"Keycloak answered {error.code} to {method} {url}") from None
    return json.loads(raw) if raw else None
