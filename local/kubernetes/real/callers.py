"""Callers of an API server, simulated or real: the way of programs that play controllers."""

from __future__ import annotations

import json
from typing import Any, Protocol

from local.kubernetes.api import KubeApi
from local.kubernetes.real.client import Refused


class Caller(Protocol):
    """Speaks to an API server as its administrator: ``real.client.Client``, or ``InProcess``."""

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The object of the answer. Raises ``Refused``."""
        ...


class InProcess:
    """Calls to a simulated API in this process."""

    def __init__(self, api: KubeApi) -> None:
        self._api, self._token = api, api.administrator()

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """See ``Caller``."""
        headers = {"authorization": f"Bearer {self._token}", "content-type": content_type}
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = self._api.request(method, path, headers, content)
        if not 200 <= status < 300:
            raise Refused(status, str(answer.get("message", "") if isinstance(answer, dict) else answer))
        return answer
