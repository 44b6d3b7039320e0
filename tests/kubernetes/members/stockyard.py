"""Stockyard as machines of a control plane meet it: answers are the API's models, and posts are read by them."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent import manifest
from stockyard.domain.clusters.join_tokens import certificate_key, join_token, machine_token
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.machines import (
    BootstrapAnswer,
    BootstrapProof,
    ControlPlaneBootReport,
    ReadyReport,
    SnapshotAnswer,
    SnapshotReport,
)
from stockyard.domain.models.clusters.observations import (
    JoinAnswer,
    JoinProof,
    MemberReport,
    MemberReportAnswer,
    NodeBootReport,
)
from stockyard.machines.control_plane import BACKUP_PROGRAMS, RESTORE_PROGRAMS, given_programs
from tests.kubernetes.members.town import GATEWAY, NAME

PORT = 8080
URL = f"http://{GATEWAY}:{PORT}"
CLUSTER = "clu_01KDVJXQ80000000000000000A"
KEY = b"the installation's key"
SNAPSHOT = "20260101T060000Z"
PLACE = {"bucket": "snapshots", "region": "us-east-1", "key": f"stockyard-etcd/{CLUSTER}/{SNAPSHOT}.tar.gz"}
METADATA = {
    "api/token": "t",
    "meta-data/placement/region": "us-east-1",
    "meta-data/iam/security-credentials/": "control-plane",
    "meta-data/iam/security-credentials/control-plane": json.dumps(
        {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "s3cret", "Token": "t0ken"}
    ),
}
"""What a cloud tells a machine."""


@dataclass
class Member:
    """A claim of the control plane, and what its machine has said."""

    name: str
    release: str
    remove_before: tuple[str, ...] = ()
    remove_after: tuple[str, ...] = ()
    begins: bool = False
    """Whether it begins the control plane anew from the snapshot."""
    done: bool = False
    questions: int = 0
    kubeconfig: str = ""
    steps: list[str] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, report: MemberReport) -> dict[str, Any]:
        """As ``member_reports.report_member`` answers."""
        self.reports.append({"state": report.state, "removed": report.removed})
        if report.kubeconfig is not None:
            self.kubeconfig = report.kubeconfig.get_secret_value()
        names = [name for name in (*self.remove_before, *self.remove_after) if name not in report.removed]
        return {"remove": names, "done": self.done and not names, "retry_after": 1}


@dataclass
class Stockyard:
    """``authority`` is the hash of the cluster's, once that is known; ``addresses`` are those of its members."""

    sockets: socket.socket
    authority: str = ""
    addresses: list[str] = field(default_factory=list)
    claims: dict[str, Member] = field(default_factory=dict)
    ready: list[dict[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        stockyard = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.do_POST()

            def do_PUT(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    document = stockyard.answer(self.path, body)
                except Exception as error:
                    stockyard.faults.append(f"{self.path}: {error}")
                    document = None
                self.send_response(200 if document is not None else 500)
                self.end_headers()
                self.wfile.write((document if isinstance(document, str) else json.dumps(document)).encode())

        server = ThreadingHTTPServer((GATEWAY, PORT), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = self.sockets
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def claim(self, number: int, member: Member) -> str:
        """A new claim for a member; its id."""
        claim_id = f"ncl_{number:026d}"
        self.claims[claim_id] = member
        return claim_id

    def machine_token(self, subject: str) -> str:
        """Token by which the machine proves itself."""
        return machine_token(KEY, subject, 1)

    def join_token(self, claim_id: str) -> str:
        """Token from which the cluster's agent makes a bootstrap token."""
        return join_token(KEY, claim_id, 1)

    def answer(self, path: str, body: bytes) -> dict[str, Any] | str:
        """The answer to a request. Raises for one that Stockyard would refuse. It also tells machines what their cloud
        would."""
        if path.startswith("/latest/"):
            return METADATA[path.removeprefix("/latest/")]
        if path == "/token":
            return {"access_token": "t"}
        _, _, kind, identity, action = path.split("/")
        if action == "agent":
            items = manifest.documents(manifest.Settings(URL, CLUSTER, f"{URL}/token"))
            return {"apiVersion": "v1", "kind": "List", "items": items}
        document = json.loads(body)
        if kind == "clusters":
            return self._first(action, document)
        return self._member(identity, action, document)

    def _first(self, action: str, document: dict[str, Any]) -> dict[str, Any]:
        if action == "ready":
            self.ready.append(read(ReadyReport, document).model_dump())
            return {"status": "accepted"}
        if action == "snapshot-reports":
            report = read(SnapshotReport, document).report
            if report is not None:
                self.snapshots.append(report.model_dump())
            due = {"id": SNAPSHOT, **PLACE, "programs": given_programs(BACKUP_PROGRAMS)}
            return SnapshotAnswer(due=None if report is not None else due).model_dump()
        if action == "boot-reports":
            self.steps.append(read(ControlPlaneBootReport, document).step)
            return {"status": "accepted"}
        assert action == "bootstrap"
        assert read(BootstrapProof, document).proof() == {"token": self.machine_token(CLUSTER)}
        return BootstrapAnswer(
            client_id="members-0123456789ab",
            client_secret="s3cret",
            token_url=f"{URL}/token",
            endpoint=f"https://{NAME}:6443",
            machine_endpoint="",
            certificate_names=[],
            renewal_token="",
            certificate_key=certificate_key(KEY, CLUSTER),
        ).model_dump()

    def _member(self, claim_id: str, action: str, document: dict[str, Any]) -> dict[str, Any]:
        member, token = self.claims[claim_id], {"token": self.machine_token(claim_id)}
        if action == "boot-reports":
            member.steps.append(read(NodeBootReport, document).step)
            return {"status": "accepted"}
        if action == "member-reports":
            report = read(MemberReport, document)
            assert report.proof() == token
            return MemberReportAnswer(**member.answer(report)).model_dump()
        assert action == "join"
        assert read(JoinProof, document).proof() == token
        assert not member.reports, "it has joined"
        member.questions += 1
        return JoinAnswer(
            endpoint=f"https://{NAME}:6443",
            internal_endpoint=False,
            addresses=self.addresses,
            token=self.join_token(claim_id),
            ca_hash=self.authority,
            node_name=member.name,
            labels={"stockyard.dev/claim": claim_id},
            taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
            kubelet_args={},
            control_plane={
                "certificate_key": certificate_key(KEY, CLUSTER),
                "kubernetes_version": member.release,
                "remove_before": list(member.remove_before),
                "workloads": False,
                "restore": {**PLACE, "programs": given_programs(RESTORE_PROGRAMS)} if member.begins else None,
            },
        ).model_dump()
