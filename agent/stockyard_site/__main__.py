"""``python -m agent.stockyard_site``: the connector with the clock, the network and the signals of a process."""

from __future__ import annotations

import os
import random
import ssl
import sys
import time
from datetime import datetime, timezone

from ..stockyard_agent.process import run_until_signal
from ..stockyard_agent.transport import https
from .connector import Connector
from .settings import Settings
from .site_api import SiteApi
from .target import Target

_TIMEOUT = 30.0
"""Seconds for one network wait with Stockyard, which may keep an exchange for 15."""
_TARGET_TIMEOUT = 4.5
"""Seconds for one network wait with the host; a whole answer may take four times as long."""


def log(text: str) -> None:
    """One line to standard error."""
    moment = datetime.now(timezone.utc)  # noqa: UP017 - Python 3.11 is not everywhere
    sys.stderr.write(f"{moment:%Y-%m-%dT%H:%M:%SZ} {text}\n")
    sys.stderr.flush()


def assembled(settings: Settings) -> Connector:
    """The connector with real connections. Raises ``OSError``, ``ValueError`` for files that cannot be used."""
    settings.allow_list()
    site_api = SiteApi(
        api_url=settings.api_url,
        site_id=settings.site_id,
        token_url=settings.token_url,
        exchange=https(ssl.create_default_context(), timeout=_TIMEOUT),
        credentials=settings.credentials,
        monotonic=time.monotonic,
    )
    # No proxy: the host is in the site's own network.
    host = https(settings.context(), timeout=_TARGET_TIMEOUT, proxies={})
    target = Target(settings.server, host, settings.token, settings.allow_list)
    return Connector(site_api, target, settings.allow_list, monotonic=time.monotonic, jitter=random.random, log=log)


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns 0 after a signal, 1 when it could not start or its loop ended."""
    try:
        connector = assembled(Settings.read(os.environ))
    except (OSError, ValueError) as error:
        log(f"cannot start: {error}")
        return 1
    return run_until_signal({"rounds": connector.run}, log)


if __name__ == "__main__":
    sys.exit(main())
