"""vdeployer of a cluster (``ports.Deployer``) over HTTPS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stockyard.errors import VendorRefused, VendorThrottled, VendorTimeout, VendorUnavailable

if TYPE_CHECKING:
    import httpx

_ATTEMPTS = 3
_SECONDS = 10.0
_TRANSIENT = (VendorTimeout, VendorUnavailable, VendorThrottled)


class VDeployer:
    """Posts to ``url_template`` with ``{client_id}`` filled in; with an empty template it is not configured.

    ``transport`` replaces the network in tests.
    """

    def __init__(self, url_template: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._template = url_template.rstrip("/")
        self._transport = transport

    @property
    def configured(self) -> bool:
        """Whether the stage names a vdeployer at all."""
        return bool(self._template)

    def deploy(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        """POST /deploy. 200, and 409 (a task is already running), are done.

        5xx, 429, lost connections and time-outs are tried three times, then raised as retryable; any other answer is
        ``VendorRefused``. Redirects are refused: they would carry the token elsewhere.
        """
        import stamina  # kept out of cold starts

        for attempt in stamina.retry_context(on=_TRANSIENT, attempts=_ATTEMPTS, wait_initial=0.2, wait_max=2.0):
            with attempt:
                self._post(client_id, settings, token)

    def _post(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        import httpx  # kept out of cold starts

        url = self._template.replace("{client_id}", client_id) + "/deploy"
        try:
            with httpx.Client(transport=self._transport, timeout=_SECONDS, follow_redirects=False) as client:
                answer = client.post(
                    url, json={"settings": dict(settings)}, headers={"Authorization": f"Bearer {token}"}
                )
        except httpx.TimeoutException as error:
            raise VendorTimeout("vdeployer did not answer in time", code=type(error).__name__) from error
        except httpx.HTTPError as error:
            raise VendorUnavailable("vdeployer cannot be reached", code=type(error).__name__) from error
        _judge(answer.status_code)


def _judge(status: int) -> None:
    if status in {200, 409}:
        return
    code = str(status)
    if status == 429:
        raise VendorThrottled("vdeployer asks to slow down", code=code)
    if status >= 500:
        raise VendorUnavailable(f"vdeployer answered {status}", code=code)
    raise VendorRefused(f"vdeployer answered {status}", code=code, hint="resume once vdeployer accepts the deployment")
