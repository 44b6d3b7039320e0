"""Secrets with kubeconfigs of clusters that their cloud admits people to, kept fresh in a thread of their own.

Stockyard gives them only where somebody asks for them. Their tokens live for minutes, so each is written anew long
before its token ends. The agent cannot read Secrets: it makes one, or replaces one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .api_calls import StockyardRefused
from .kubernetes import Kubernetes, Refused, path_of
from .pacing import BACK_OFF
from .stockyard_api import SecretsAnswer, StockyardApi
from .transport import Unreachable

LABEL, MANAGER = "stockyard.dev/kubeconfig", "app.kubernetes.io/managed-by"
"""Labels of such a Secret. The policy of ``agent/roles.py`` lets the agent write no others."""
TYPE, KEY = "Opaque", "kubeconfig"
LOOK_SECONDS = 1.0
"""How often it is looked whether Stockyard has asked for something."""
LONGEST_SECONDS = 300.0
"""Seconds between two writes at most, whatever Stockyard answers."""
MOST_BACK_OFF = 60.0
"""Seconds between two tries at most: with them nothing is ten minutes old once it can be written again."""
_ALREADY = "AlreadyExists"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TEXT = 300
Result = dict[str, Any]


class KubeconfigSecrets:
    """``hear`` may be called by another thread."""

    def __init__(
        self,
        kube: Kubernetes,
        stockyard_api: StockyardApi,
        *,
        monotonic: Callable[[], float],
        jitter: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._kube, self._stockyard = kube, stockyard_api
        self._monotonic, self._jitter, self._log = monotonic, jitter, log
        self._is_asked = False
        self._due_at = 0.0
        self._reported: dict[tuple[str, str], tuple[str, str]] = {}
        """What Stockyard knows of each Secret: status and message by namespace and name."""
        self._failures = 0

    def hear(self, is_asked: bool) -> None:
        """Take whether the last answer said that there are Secrets to keep."""
        self._is_asked = is_asked

    def run(self, pause: Callable[[float], bool]) -> None:
        """Go on until ``pause(seconds)`` returns True."""
        while not pause(self.step()):
            pass

    def step(self) -> float:
        """Write what is due. Returns the seconds to wait before the next step."""
        if not self._is_asked:
            self._due_at, self._reported = 0.0, {}
            return LOOK_SECONDS
        if self._monotonic() < self._due_at:
            return LOOK_SECONDS
        try:
            answer = self._stockyard.kubeconfig_secrets([], refresh=True)
            results = self._carried_out(answer)
            news = [result for result in results if self._reported.get(_key(result)) != _state(result)]
            if news:
                self._stockyard.kubeconfig_secrets(news, refresh=False)
                self._reported |= {_key(result): _state(result) for result in news}
        except (StockyardRefused, Unreachable, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # a later step may succeed; the error's text is not logged, it may hold a secret
            return self._back_off(type(error).__name__)
        if any(result["status"] == "failed" for result in results):
            return self._back_off(next(result["message"] for result in results if result["status"] == "failed"))
        self._failures = 0
        self._due_at = self._monotonic() + min(max(answer.interval, LOOK_SECONDS), LONGEST_SECONDS)
        return LOOK_SECONDS

    def _carried_out(self, answer: SecretsAnswer) -> list[Result]:
        results = [self._outcome(secret, self._write, "written") for secret in answer.secrets]
        return [*results, *(self._outcome(secret, self._remove, "removed") for secret in answer.removed)]

    def _outcome(
        self, secret: Mapping[str, Any], act: Callable[[str, str, Mapping[str, Any]], None], done: str
    ) -> Result:
        namespace, name = _namespace_and_name(secret)
        result = {"namespace": namespace, "name": name, "status": done, "message": ""}
        try:
            act(namespace, name, secret)
        except Refused as refused:
            result |= {
                "status": "failed",
                "message": f"{namespace}/{name}: {refused.message or refused.status}"[:_TEXT],
            }
        return result

    def _write(self, namespace: str, name: str, secret: Mapping[str, Any]) -> None:
        path, document = path_of("namespaces", namespace, "secrets"), secret_of(namespace, name, secret)
        try:
            self._kube.call("POST", path, document)
        except Refused as refused:
            if refused.reason != _ALREADY:
                raise
            self._kube.call("PUT", f"{path}/{name}", document)

    def _remove(self, namespace: str, name: str, _: Mapping[str, Any]) -> None:
        try:
            self._kube.call("DELETE", path_of("namespaces", namespace, "secrets", name))
        except Refused as refused:
            if refused.status != 404:
                raise

    def _back_off(self, text: str) -> float:
        self._failures += 1
        self._log(f"Secrets with kubeconfigs: {text} (failure {self._failures})")
        longest = min(BACK_OFF * 2.0 ** min(self._failures - 1, 16), MOST_BACK_OFF)
        return longest * (0.5 + 0.5 * self._jitter())


def secret_of(namespace: str, name: str, secret: Mapping[str, Any]) -> dict[str, Any]:
    """The Secret that is written: of what Stockyard sent its kubeconfig and annotations. ``ValueError`` without one."""
    data, annotations = secret.get("data"), secret.get("metadata", {}).get("annotations") or {}
    if not isinstance(data, Mapping) or not isinstance(data.get(KEY), str) or not isinstance(annotations, Mapping):
        raise ValueError("Stockyard's answer has a Secret without a kubeconfig")
    labels = {MANAGER: "stockyard-agent", LABEL: "true"}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPE, "data": {KEY: data[KEY]}}


def _namespace_and_name(secret: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of the Secret. ``ValueError`` for what are none."""
    metadata = secret.get("metadata") or secret
    namespace, name = str(metadata.get("namespace")), str(metadata.get("name"))
    if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
        raise ValueError("Stockyard's answer has a Secret without a namespace or a name")
    return namespace, name


def _key(result: Result) -> tuple[str, str]:
    return result["namespace"], result["name"]


def _state(result: Result) -> tuple[str, str]:
    return result["status"], result["message"]
