"""People of a real Keycloak log in to a real API server: with a token for this cluster, and with no other."""

from __future__ import annotations

import html
import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any

import pytest
import yaml

from local.authority import Authority, trusted
from local.identity.keycloak import KeycloakServer, Unavailable
from local.identity.keycloak_realm import add_person
from local.identity.keys import SigningKey
from local.kubernetes.real.build import missing
from local.kubernetes.real.control_plane import ControlPlane
from stockyard.adapters.keycloak import Keycloak
from tests.kubernetes.conftest import TENANT, Realm, machine_program, machine_values

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(600)]

CLIENT, NEIGHBOUR = "acme-demo-0123456789ab", "acme-other-0123456789ab"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True)
class Rig:
    """A realm as the product sets it up, and one of its two clusters."""

    plane: ControlPlane
    issuer: str
    audiences: dict[str, str]
    """Cluster's own client -> the audience that the cluster's API server takes."""
    passwords: dict[str, str]

    def id_token(self, person: str, cluster: str) -> str:
        """Token of a person who logs in to a cluster, by the device flow and Keycloak's own pages."""
        client = {"client_id": self.audiences[cluster]}
        device = posted(
            f"{self.issuer}/protocol/openid-connect/auth/device", {**client, "scope": "openid organization"}
        )
        confirm(device["verification_uri_complete"], person, self.passwords[person])
        form = {**client, "grant_type": DEVICE, "device_code": device["device_code"]}
        return str(posted(f"{self.issuer}/protocol/openid-connect/token", form)["id_token"])

    def name_of(self, token: str) -> str | None:
        """The name that the API server knows the token's person by; None when it takes no such token."""
        done = self.plane.kubectl("auth", "whoami", "-o", "yaml", token=token, check=False)
        if done.returncode:
            assert "Unauthorized" in done.stderr or "credentials" in done.stderr, done.stderr
            return None
        return str(yaml.safe_load(done.stdout)["status"]["userInfo"]["username"])


def posted(url: str, form: dict[str, str]) -> Any:
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode())  # noqa: S310 (loopback)
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def confirm(url: str, person: str, password: str) -> None:
    """Log in and confirm a device's code, as a browser does."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(url, timeout=30) as answer:
        page = answer.read().decode()
    answers = {"username": person, "password": password, "accept": "Yes"}
    while action := re.search(r'<form[^>]*action="([^"]+)"', page):
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
        # First who, on a page of its own, then the password, then whether the device may.
        asked_for = [name for name in answers if f'name="{name}"' in page]
        assert asked_for, page[:2000]
        fields |= {name: answers.pop(name) for name in asked_for}
        target = urllib.parse.urljoin(url, html.unescape(action[1]))
        with browser.open(target, urllib.parse.urlencode(fields).encode(), timeout=30) as answer:
            page = answer.read().decode()
    assert not answers, page[:2000]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    if reason := missing():
        pytest.skip(reason)
    authority = Authority(tmp_path_factory.mktemp("keycloak") / "pki", "realm")
    server = KeycloakServer()
    with trusted(authority) as trust:
        try:
            server.start(authority=authority)
        except Unavailable as reason:
            pytest.skip(f"Keycloak: {reason}")
        try:
            secret = {"client_id": server.admin_client_id, "client_secret": server.admin_client_secret}
            identity = Keycloak(
                server.issuer,
                "stockyard",
                installation="tests",
                read_secret=lambda _: json.dumps(secret),
                admin_secret="admin",
            )
            for client in (CLIENT, NEIGHBOUR):
                identity.create_client(client_id=client, owner=f"clu_{client}", tenant=TENANT, secret="s" * 32)
            people = {"ann": TENANT, "gil": "globex"}
            passwords = {name: add_person(server._admin, name, tenant, ()) for name, tenant in people.items()}
            state = tmp_path_factory.mktemp("state")
            program = machine_program(state)
            machine = {**machine_values(Realm(server.issuer, authority.path, SigningKey())), "client_id": CLIENT}
            audiences = {name: audience(program, {**machine, "client_id": name}) for name in (CLIENT, NEIGHBOUR)}
            program.api_server(machine)
            documents = program.kubeadm(
                machine, {"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1a/i-0123"
            )
            folder = tmp_path_factory.mktemp("plane")
            with ControlPlane(folder, documents, state / program.API_FOLDER, trust).running() as plane:
                yield Rig(plane, server.issuer, audiences, passwords)
        finally:
            server.stop()


def audience(program: Any, machine: dict[str, str]) -> str:
    """Audience that the machine's program tells the API server to take."""
    (configured,) = program.authentication(machine)["jwt"][0]["issuer"]["audiences"]
    return str(configured)


def test_a_person_of_the_tenant_logs_in_to_a_cluster_and_to_no_other(rig: Rig) -> None:
    assert rig.name_of(rig.id_token("ann", CLIENT)) == "oidc:ann"
    assert rig.audiences[CLIENT] != rig.audiences[NEIGHBOUR]
    assert rig.name_of(rig.id_token("ann", NEIGHBOUR)) is None


def test_a_person_of_another_tenant_is_refused(rig: Rig) -> None:
    assert rig.name_of(rig.id_token("gil", CLIENT)) is None
