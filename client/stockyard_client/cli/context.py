"""Context of every command: the environment, the two consoles, the client. Built once per run."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

import typer

from stockyard_client.errors import LoginFailed, StockyardClientError

if TYPE_CHECKING:
    import httpx
    from rich.console import Console, ConsoleOptions, RenderableType

    from stockyard_client.cli.documents.field_sources import FieldSource
    from stockyard_client.client import Client
    from stockyard_client.sessions import Session, SessionStore


class NotConfigured(StockyardClientError):
    """The command line does not know which API to call, or for whom."""


@dataclass(frozen=True, slots=True)
class HeldToken:
    """A token, and where it comes from, as a sentence names it."""

    text: str = field(repr=False)
    source: str


@dataclass
class Context:
    """The outside of one run; tests give their own."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    url: str | None = None
    tenant: str | None = None
    call_timeout: float = 30.0
    verbose: bool = False
    terminal: bool | None = None
    """Whether somebody sits at the standard input; None: look."""
    field_sources: list[FieldSource] = field(default_factory=list)
    """Where the fields of the request that is sent come from."""
    interrupted: str = "Interrupted. What was started goes on by itself; to see it: stockyard operation list"
    """What is said when somebody interrupts: what goes on, and how to look at it again."""

    # The streams are looked up at first use, because a test runner replaces them.
    @cached_property
    def out(self) -> Console:
        """Data goes here."""
        return console(sys.stdout, self.environment)

    @cached_property
    def err(self) -> Console:
        """Talk and progress go here."""
        return console(sys.stderr, self.environment)

    @property
    def room(self) -> int | None:
        """Number of columns that a line of data may have; None where it goes to no terminal, and nothing is
        shortened."""
        return self.out.width if self.out.is_terminal or self.out.file.isatty() else None

    @cached_property
    def store(self) -> SessionStore:
        """The kept logins."""
        from stockyard_client.sessions import SessionStore

        return SessionStore(self.environment)

    def say(self, text: str, style: str | None = None) -> None:
        """Talk, for people: goes to stderr."""
        self.err.print(text, style=style, soft_wrap=True)

    def location_of(self, pointer: str) -> str:
        """Name, for a person, of the field at ``pointer`` of the request: an option, a line of a file, else its
        path."""
        from stockyard_client.cli.documents.field_sources import location_of

        return location_of(pointer, self.field_sources)

    @property
    def asks(self) -> bool:
        """Whether a question can be asked: somebody sits at the standard input."""
        return sys.stdin.isatty() if self.terminal is None else self.terminal

    def api_url(self) -> str:
        """URL of the API: the option, the environment, the last login."""
        url = self.url or self.environment.get("STOCKYARD_URL") or self.store.current_url()
        if not url:
            text = "no API is known: set STOCKYARD_URL, give --url, or log in; of a local cloud: set -a; . .local/env"
            raise NotConfigured(text)
        if not url.startswith(("https://", "http://")):
            raise NotConfigured("the API's URL must start with https:// or http://")
        # as the paths in the API's document are written, and some copy them
        return url.rstrip("/").removesuffix("/v1").rstrip("/")

    @property
    def means_tenant(self) -> str:
        """Tenant that somebody of the platform means: the option, the environment; empty for the token's own tenant."""
        if self.tenant == "":
            raise NotConfigured("--tenant names no tenant")
        name = self.tenant or self.environment.get("STOCKYARD_TENANT") or ""
        if not name.isascii() or not name.isprintable():
            raise NotConfigured("--tenant or STOCKYARD_TENANT has a character that no tenant has")
        return name

    def client(self) -> Client:
        """A client of that API with the environment's token, else the one kept by ``login``."""
        from stockyard_client.client import Client

        self._tell_of_repetitions()
        url = self.api_url()
        return Client(
            url,
            lambda: self.token(url),
            tenant=self.means_tenant or None,
            timeout=self.call_timeout,
            transport=self.transport,
            sleep=self.sleep,
            clock=self.clock,
        )

    def _tell_of_repetitions(self) -> None:
        import stamina.instrumentation

        def repeated(details: stamina.instrumentation.RetryDetails) -> None:
            if self.verbose:
                self.say(f"Trying again in {details.wait_for:.1f} s: {details.caused_by}", "dim")

        # in place of stamina's own hook, which would log to stderr
        stamina.instrumentation.set_on_retry_hooks([repeated])

    def token(self, url: str) -> str | None:
        """The token for the API at ``url``: the environment's, else that of the last login, refreshed."""
        if token := self.environment.get("STOCKYARD_TOKEN"):
            return token
        session = self._session(url)
        return session.access_token if session else None

    def held_token(self) -> HeldToken | None:
        """The token that calls of the API carry, as it is kept; nothing is refreshed for it. None: there is none."""
        if token := self.environment.get("STOCKYARD_TOKEN"):
            return HeldToken(token, "STOCKYARD_TOKEN")
        session = self.store.load(self.api_url())
        return HeldToken(session.access_token, "the token of the last login") if session else None

    @property
    def is_local_api(self) -> bool:
        """Whether the API is on this machine."""
        from urllib.parse import urlsplit

        return urlsplit(self.api_url()).hostname in ("127.0.0.1", "localhost", "::1")

    def cluster_token(self, issuer: str, client_id: str) -> str:
        """The token for the cluster whose people log in with ``client_id``: the environment's, else the ID token of the
        login to that cluster, refreshed. Who sits there is asked to log in when there is none.

        Raises ``LoginFailed``. No token that the API or another cluster takes is ever shown to a cluster.
        """
        if token := self.environment.get("STOCKYARD_CLUSTER_TOKEN"):
            return token
        from stockyard_client.sessions import cluster_session

        try:
            session = self._session(cluster_session(issuer, client_id))
        except LoginFailed:
            session = None  # it has ended
        if session is None:
            if not self.interactive:
                hint = "run `stockyard login --cluster NAME`, or set STOCKYARD_CLUSTER_TOKEN"
                raise LoginFailed(f"nobody is logged in to this cluster: {hint}")
            session = self.log_in(cluster_session(issuer, client_id), issuer, client_id)
            self.store.renew(session)
        if not session.id_token:
            raise LoginFailed("the login has no ID token, which clusters take: the realm's scope openid is missing")
        return session.id_token

    @property
    def interactive(self) -> bool:
        """Whether somebody sits there: as kubectl says, else whether the standard input is a terminal."""
        try:
            about = json.loads(self.environment["KUBERNETES_EXEC_INFO"])
            return bool(about["spec"]["interactive"])
        except (KeyError, TypeError, ValueError):
            return sys.stdin.isatty()

    def log_in(self, url: str, issuer: str, client_id: str, scope: str | None = None) -> Session:
        """A new session, kept for ``url`` by whoever keeps it: a person confirms it in a browser."""
        from stockyard_client.sessions import DEFAULT_SCOPE, DeviceLogin

        scope = scope or DEFAULT_SCOPE
        flow = DeviceLogin(
            issuer, client_id=client_id, scope=scope, transport=self.transport, sleep=self.sleep, now=self.now
        )
        return flow.run(
            url, lambda login: self.say(f"Open {login.uri} and confirm the code {login.user_code}.", "bold")
        )

    def log_in_program(
        self, url: str, issuer: str, by: str, client_id: str | None, scope: str | None = None
    ) -> Session:
        """A new session of a program, kept for ``url`` by whoever keeps it. Raises ``LoginFailed``."""
        from stockyard_client.program_logins import program_session
        from stockyard_client.sessions import DEFAULT_SCOPE

        return program_session(
            url,
            issuer,
            by=by,
            client_id=client_id,
            scope=scope or DEFAULT_SCOPE,
            environment=self.environment,
            now=self.now(),
            transport=self.transport,
        )

    def _session(self, url: str) -> Session | None:
        from stockyard_client.sessions import EARLY_SECONDS, refreshed

        session = self.store.load(url)
        if session is None:
            return None
        if session.program is not None and session.expires_at - self.now() <= EARLY_SECONDS:
            fresh = self.log_in_program(url, session.issuer, session.program, session.client_id or None)
        else:
            fresh = refreshed(session, self.now(), self.transport)
        if fresh is not session:
            self.store.renew(fresh)
        return fresh


def console(stream: TextIO, environment: Mapping[str, str]) -> Console:
    """A console that writes no control sequence unless ``stream`` is a terminal that wants colour."""
    from rich.console import Console
    from rich.segment import Segment

    from stockyard_client.cli.visible import visible

    plain = not stream.isatty() or bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"

    class Plain(Console):
        """A console that leaves a pipe that nobody reads to the command, and shows what would steer the terminal."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(
        file=stream,
        force_terminal=False if plain else None,
        color_system=None if plain else "auto",
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
    )


def of(typer_context: typer.Context) -> Context:
    """The run's context."""
    context = typer_context.find_object(Context)
    if context is None:
        raise RuntimeError("the root command made no context")
    return context
