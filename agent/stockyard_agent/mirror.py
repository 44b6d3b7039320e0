"""The mirror of Stockyard's pools and claims as read-only NodePools and NodeClaims, in a thread of its own.

Whatever goes wrong with it is tried again here, and holds up nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from .api_calls import StockyardRefused
from .kubernetes import Kubernetes, Object, Refused
from .mirror_objects import DEFINITIONS, DIGEST, LABEL, PLURALS, definitions, digest, object_of, path_of, status_of
from .pacing import BACK_OFF, BACK_OFF_MOST
from .stockyard_api import StockyardApi
from .transport import Unreachable

LOOK_SECONDS = 1.0
"""How often it is looked whether Stockyard has told of something new."""
STEP_OBJECTS = 100
"""Objects that one step looks at."""
_PAGE = 100
_QUIET = 2
"""So often may new definitions not be served yet before it is said."""
Key = tuple[str, str]


class NotServed(Exception):
    """The cluster does not serve NodePools and NodeClaims, or not yet."""


@dataclass(slots=True)
class Mirrored:
    """An object of the mirror as it was written last: uid, version, digests of the object and of its status."""

    uid: str
    version: str
    written: str
    status: str


@dataclass(slots=True)
class _Round:
    """Work that a round has still to do: documents to look at, where Stockyard's next part begins, and what there shall
    be."""

    version: str
    after: str = ""
    read_all: bool = False
    documents: deque[Mapping[str, Any]] = field(default_factory=deque)
    names: set[Key] = field(default_factory=set)


class Mirror:
    """``jitter`` returns numbers from 0 to 1. ``hear`` may be called by another thread."""

    def __init__(
        self, kube: Kubernetes, stockyard_api: StockyardApi, *, jitter: Callable[[], float], log: Callable[[str], None]
    ) -> None:
        self._kube, self._stockyard, self._jitter, self._log = kube, stockyard_api, jitter, log
        self._desired: str | None = None
        self._nodes: Sequence[Mapping[str, Any]] = ()
        self._done: str | None = None
        self._round: _Round | None = None
        self._live: dict[Key, Mirrored] | None = None
        """What the cluster has of the mirror; None while that is not known."""
        self._refused: dict[Key, str] = {}
        """What the cluster does not take as it is: digest by name. It is tried again when it has changed."""
        self._failures = 0
        self._trouble = ""

    def hear(self, version: str | None, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Take what an answer said is to be mirrored, with the nodes of the observation; None: nothing was said."""
        self._nodes, self._desired = nodes, version

    @property
    def settled(self) -> bool:
        """Whether the cluster has what Stockyard last told of."""
        return self._round is None and self._desired in (None, self._done)

    def run(self, pause: Callable[[float], bool]) -> None:
        """Go on until ``pause(seconds)`` returns True."""
        while not pause(self.step()):
            pass

    def step(self) -> float:
        """Bring the mirror a step nearer to what Stockyard has. Returns the seconds to wait before the next step."""
        if self.settled:
            return LOOK_SECONDS
        try:
            self._round = self._round or _Round(self._desired or "")
            if not self._advance(self._round):
                return 0.0
        except NotServed as error:
            return self._back_off(str(error), quiet=self._failures < _QUIET)
        except (Refused, StockyardRefused, Unreachable, OSError, ValueError) as error:
            return self._back_off(str(error))
        except Exception as error:  # a later round may succeed; the error's text is not logged, it may hold a secret
            return self._back_off(type(error).__name__)
        if self._trouble:
            self._log("The mirror is well again")
        self._done, self._round, self._failures, self._trouble = self._round.version, None, 0, ""
        return LOOK_SECONDS

    def _advance(self, current: _Round) -> bool:
        """Do the next part of a round; whether it was the last."""
        if self._live is None:
            self._live = self._listed()
        if self._live is None:
            if not current.version:
                return True
            self._define()
            raise NotServed("NodePools and NodeClaims of karpenter.sh/v1 are not served by their definitions")
        if not current.documents and not current.read_all:
            self._read(current)
        for _ in range(min(STEP_OBJECTS, len(current.documents))):
            document = current.documents.popleft()
            current.names.add((document["kind"], document["name"]))
            self._settle(self._live, document)
        if current.documents or not current.read_all:
            return False
        return self._remove(self._live, current.names)

    def _read(self, current: _Round) -> None:
        """The next part of what there shall be; nothing of a mirror that is turned off."""
        if not current.version:
            current.read_all = True
            return
        objects, current.after = self._stockyard.mirror(current.after)
        current.documents.extend(each for each in objects if each["kind"] in PLURALS)
        current.read_all = not current.after

    def _listed(self) -> dict[Key, Mirrored] | None:
        """The mirror as the cluster has it; None when it serves none."""
        live: dict[Key, Mirrored] = {}
        try:
            for kind in PLURALS:
                query = {"labelSelector": f"{LABEL}=true"}
                live.update(self._kube.collect(path_of(kind), query, partial(_entry, kind), _PAGE))
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        return live

    def _define(self) -> None:
        """Make the definitions. Those that somebody else has brought stay as they are."""
        for definition in definitions():
            try:
                self._kube.call("POST", DEFINITIONS, definition)
                self._log(f"The definition {definition['metadata']['name']} is made")
            except Refused as refused:
                if refused.status != 409:
                    raise

    def _settle(self, live: dict[Key, Mirrored], document: Mapping[str, Any]) -> None:
        """Write what is new of one object."""
        key = (document["kind"], document["name"])
        owner = live.get(("NodePool", document.get("pool") or ""))
        if key[0] == "NodeClaim" and owner is None:
            return  # Somebody else's NodePool has the name: claims under it would be taken for that one's.
        written = object_of(document, (document["pool"], owner.uid) if key[0] == "NodeClaim" and owner else None)
        status = status_of(document, self._nodes)
        content, state = digest(written), digest(status)
        if self._refused.get(key) == content + state:
            return
        try:
            current = live.get(key) or self._created(live, key, written)
            if current.written != written["metadata"]["annotations"][DIGEST]:
                self._replace(current, path_of(key[0], quote(key[1])), written)
                current.written = written["metadata"]["annotations"][DIGEST]
            if current.status != state:
                about = {"apiVersion": written["apiVersion"], "kind": key[0], "metadata": {"name": key[1]}}
                self._replace(current, path_of(key[0], quote(key[1]), "status"), {**about, "status": status})
                current.status = state
            self._refused.pop(key, None)
        except Refused as refused:
            # A conflict with an object that is already known means that the list is out of date: begin anew.
            if refused.transient and not (refused.reason == "AlreadyExists" and key not in live):
                raise
            if refused.status in (403, 404):
                raise
            self._refused[key] = content + state
            self._log(f"{key[0]} {key[1]} is not mirrored: {refused}")

    def _created(self, live: dict[Key, Mirrored], key: Key, written: Object) -> Mirrored:
        meta = self._kube.call("POST", path_of(key[0]), written)["metadata"]
        live[key] = Mirrored(meta["uid"], meta["resourceVersion"], meta["annotations"][DIGEST], "")
        return live[key]

    def _replace(self, current: Mirrored, path: str, content: Object) -> None:
        meta = {**content["metadata"], "uid": current.uid, "resourceVersion": current.version}
        answer = self._kube.call("PUT", path, {**content, "metadata": meta})
        current.version = answer["metadata"]["resourceVersion"]

    def _remove(self, live: dict[Key, Mirrored], names: set[Key]) -> bool:
        """Delete what there shall not be, claims before their pools; whether that was all."""
        surplus = sorted(live.keys() - names)
        for key in surplus[:STEP_OBJECTS]:
            current = live[key]
            options = {"preconditions": {"uid": current.uid, "resourceVersion": current.version}}
            try:
                self._kube.call("DELETE", path_of(key[0], quote(key[1])), options)
            except Refused as refused:
                if refused.status != 404:
                    raise
            del live[key]
        for key in self._refused.keys() - names:
            del self._refused[key]
        return len(surplus) <= STEP_OBJECTS

    def _back_off(self, text: str, *, quiet: bool = False) -> float:
        # What was written is not known for certain: the next round begins with a list.
        self._round = self._live = None
        self._failures += 1
        if text != self._trouble and not quiet:
            self._trouble = text
            self._log(f"The mirror waits: {text}")
        return min(BACK_OFF * 2.0 ** min(self._failures - 1, 16), BACK_OFF_MOST) * (0.5 + 0.5 * self._jitter())


def _entry(kind: str, item: Object) -> tuple[Key, Mirrored]:
    meta = item["metadata"]
    written = str((meta.get("annotations") or {}).get(DIGEST, ""))
    return (kind, meta["name"]), Mirrored(meta["uid"], meta["resourceVersion"], written, _state(item.get("status")))


def _state(status: Any) -> str:
    return digest(status) if status else ""
