"""Commits of repositories over git's smart HTTP: what a branch or a tag is at now, without a program of git.

The host is named by a tenant, so it is called through a guard, like every such address.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from stockyard.errors import VendorNotFound, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.providers.addresses import Guard, bracketed

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 8 * 1024 * 1024
"""Of a list of references; it is read to the wanted one, and branches come before the thousands of pull requests."""
CALL_SECONDS, ALL_SECONDS = 8.0, 20.0
"""For each step of a call, and for the whole answer."""
MOST_MOVES = 2
"""Redirects that are followed, on the same host."""
_SERVICE = "git-upload-pack"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PEELED = "^{}"


class Repositories:
    """Repositories that anybody may read. ``transport`` replaces the network in tests."""

    def __init__(self, guard: Guard, transport: httpx.BaseTransport | None = None) -> None:
        self._guard, self._transport = guard, transport

    def commit_at(self, repository: str, reference: str) -> str:
        """The commit of a reference, such as ``refs/heads/main`` or ``HEAD``.

        Raises ``VendorNotFound`` where there is no such reference, ``VendorRefused`` for what nobody may call, who has
        to log in or what is no repository, ``VendorUnavailable`` and ``VendorTimeout`` where nothing answers.
        """
        import httpx  # kept out of cold starts

        ends = time.monotonic() + ALL_SECONDS
        url = f"{repository.rstrip('/')}/info/refs?service={_SERVICE}"
        try:
            with httpx.Client(
                transport=self._transport_of(url), timeout=CALL_SECONDS, follow_redirects=False, trust_env=False
            ) as client:
                for _ in range(MOST_MOVES + 1):
                    with client.stream("GET", url) as answer:
                        if answer.is_redirect:
                            url = _moved(url, answer.headers.get("location", ""))
                            continue
                        return _commit_of(_lines(_bounded(answer, ends)), reference)
        except httpx.TimeoutException as error:
            raise VendorTimeout("The host did not answer in time.", code=type(error).__name__) from None
        except httpx.HTTPError as error:
            raise VendorUnavailable("The host cannot be reached.", code=type(error).__name__) from None
        raise VendorRefused("The repository is moved too often.", code="Redirects")

    def _transport_of(self, url: str) -> httpx.BaseTransport:
        import httpx

        from stockyard.providers.guarded_transport import GuardedTransport

        parts = urlsplit(url)
        inner = self._transport or httpx.HTTPTransport(trust_env=False)
        if parts.scheme == "https":
            return GuardedTransport(self._guard, inner)
        if f"{bracketed(parts.hostname or '')}:{parts.port}" not in self._guard.stand_ins:
            raise VendorRefused("The address does not begin with https.", code="Address")
        return inner


def _moved(url: str, location: str) -> str:
    """The URL that a repository is moved to, on the same host: another one would be called without a guard of its
    own."""
    target = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(target)
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        raise VendorRefused("The repository is moved to another host: name it there.", code="Moved")
    return target


def _bounded(answer: httpx.Response, ends: float) -> Iterator[bytes]:
    """The body in pieces, as far as it is a list of references and neither too long nor too slow."""
    if answer.status_code in (401, 403, 404):
        text = "There is no such repository, or it is not for everybody."
        raise VendorRefused(text, code=str(answer.status_code))
    if answer.status_code != 200:
        raise VendorUnavailable(f"The host answers {answer.status_code}.", code=str(answer.status_code))
    if answer.headers.get("content-type", "").partition(";")[0] != f"application/x-{_SERVICE}-advertisement":
        raise VendorRefused("The address is not that of a repository.", code="ContentType")
    size = 0
    for piece in answer.iter_bytes():
        size += len(piece)
        if size > MAX_BYTES:
            raise VendorRefused(f"The repository lists more than {MAX_BYTES} bytes of references.", code="Size")
        if time.monotonic() > ends:
            raise VendorTimeout("The list of references comes too slowly.", code="Slow")
        yield piece


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines of git's packets; the marks between their parts are left out."""
    buffer = b""
    for piece in pieces:
        buffer += piece
        while len(buffer) >= 4:
            try:
                length = int(buffer[:4], 16)
            except ValueError:
                raise VendorRefused("The answer is not that of a repository.", code="Packet") from None
            if length < 4:
                buffer = buffer[4:]
                continue
            if len(buffer) < length:
                break
            yield buffer[4:length].decode(errors="replace").rstrip("\n")
            buffer = buffer[length:]


def _commit_of(lines: Iterable[str], reference: str) -> str:
    """The commit of the reference; of a tag with a text of its own the commit that it stands for."""
    commit: str | None = None
    for line in lines:
        if line.startswith("ERR "):
            raise VendorRefused("The host refuses to list the repository.", code="ERR")
        name = line.partition(" ")[2].partition("\0")[0]
        if commit is not None and name != f"{reference}{_PEELED}":
            return commit
        if name in (reference, f"{reference}{_PEELED}"):
            match = _COMMIT.match(line)
            commit = match[0] if match else commit
    if commit is None:
        raise VendorNotFound(f"The repository has no {reference}.", code="Reference")
    return commit
