"""Eight stories of people at the console, in a real browser on the served local cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import browser
from tests.harness.blocks import SCARCE
from tests.harness.console.person import ConsolePerson

if TYPE_CHECKING:
    from local.testing.serving import Served

CONTRACT = json.loads((Path(__file__).resolve().parents[2] / "openapi.json").read_text(encoding="utf-8"))
SHOP = "console-shop"
pytestmark = pytest.mark.timeout(1200)


def settings(type_: str = "t3.xlarge") -> dict[str, Any]:
    control = {"name": "control-plane", "role": "control", "min_size": 1, "max_size": 1, "instance_types": [type_]}
    workers = {"name": "workers", "role": "worker", "min_size": 1, "max_size": 3, "instance_types": ["t3.large"]}
    return {"region_name": "us-east-1", "key_pair": "my-key", "autoscaler_node_groups": [control, workers]}


def make(served: Served, name: str, **changes: Any) -> dict[str, Any]:
    body = {"name": name, "description": "Of the console", "cloud_account_id": 1, "cluster_type": "k8s"}
    answer = served.call("POST", "/v1/clusters", {**body, "settings": settings(), **changes})
    assert answer.status == 202, answer.text
    cluster: dict[str, Any] = answer.body
    return cluster


@pytest.fixture(scope="module")
def program() -> str:
    """The browser. Nothing is served where there is none."""
    path = browser.program()
    if path is None:
        pytest.skip(f"it needs a browser: {', '.join(browser.PROGRAMS)}")
    return path


@pytest.fixture(scope="module")
def first_tab(program: str, served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Tab]:
    with browser.tab(program, tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="module")
def clusters(program: str, served: Served, remove: Callable[[str], Any]) -> Iterator[dict[str, dict[str, Any]]]:
    """A cluster that is ready, and one whose creation fails for want of a type; both go afterwards."""
    both = {SHOP: make(served, SHOP), "console-fails": make(served, "console-fails", settings=settings(SCARCE))}
    ends = {name: served.operation(cluster["operation_id"])["status"] for name, cluster in both.items()}
    assert ends == {SHOP: "succeeded", "console-fails": "failed"}
    yield both
    for cluster in both.values():
        remove(cluster["id"])


@pytest.fixture
def somebody(first_tab: browser.Tab, served: Served) -> Iterator[Callable[..., ConsolePerson]]:
    """Logs in people, each in a browser context of their own. Nothing may have failed in their pages, and nobody but
    the API and the issuer was asked."""
    people: list[ConsolePerson] = []

    def log_in(name: str = "local-user", path: str = "") -> ConsolePerson:
        tab = first_tab.stranger()
        tab.emulate()
        people.append(ConsolePerson(tab, served.environment["STOCKYARD_URL"]))
        people[-1].sign_in(name, path)
        return people[-1]

    yield log_in
    for person in people:
        loads = "Failed to load resource"  # a refusal of the API, which the page shows
        assert [text for text in person.tab.complaints if not text.startswith(loads)] == []
        assert [(url, status) for url, status in person.tab.answers if status >= 500] == []
        assert person.strangers() == {served.issuer.split("/")[2]}
        person.tab.close()


def test_first_login_to_a_cluster_whose_price_was_seen(somebody: Any, served: Served, remove: Any) -> None:
    person = somebody(path="new")
    person.choose("Control plane", "eks")
    person.fill("Name", "console-first")
    person.sees("USD/month")
    person.choose("Control plane", "ec2")
    person.fill("Key pair", "my-key")
    person.sees("USD/month")
    person.press("Create, +")
    person.sees("Creation")
    assert person.tab.evaluate("location.pathname") == "/console/clusters/console-first"
    person.sees("Last change: creation")
    cluster = served.call("GET", "/v1/clusters/console-first").body
    assert cluster["status"] == "ready"
    person.go("")
    person.sees("console-first")
    remove(cluster["id"])


def test_failed_creation_says_why_and_its_cure_leaves_the_error_readable(
    somebody: Any, served: Served, clusters: Any
) -> None:
    person = somebody(path="clusters/console-fails")
    person.sees("Creation failed in step control_plane")
    cause = served.call("GET", f"/v1/operations/{clusters['console-fails']['operation_id']}").body["error"]["cause"]
    assert cause in person.reads()
    person.press("Edit…")
    person.fill("Other settings", json.dumps({"settings": {"control_plane_instance_types": ["t3.large"]}}))
    person.press("Resume, ")
    person.sees("done with attempt 2")
    person.press("Attempt 1 failed")
    assert cause in person.reads()
    assert "Cured by" in person.reads()
    person.go("operations/" + clusters["console-fails"]["operation_id"])
    person.sees("Attempt 1 failed")


def test_claim_that_waits_says_why_and_what_would_cure_it(somebody: Any, served: Served, clusters: Any) -> None:
    body = {"name": "console-waits", "cluster": SHOP, "resources": {"cpu": "2000"}}
    assert served.call("POST", "/v1/node-claims", body).status == 202
    person = somebody(path="claims/console-waits")
    person.sees("Why it waits")
    person.sees("Enough cpu")
    person.sees("What would get a machine")
    person.sees("of cpu")
    assert "would wait" not in person.reads()
    person.go(f"clusters/{SHOP}")
    person.sees("claim waits")
    person.go("claims/console-waits")
    person.press("Give back…")
    person.fill("Type", "console-waits")
    person.press("Give back")
    person.go("claims")
    person.tab.wait_for("!document.querySelector('main').innerText.includes('console-waits')")


def test_change_shows_its_plan_before_it_is_made(somebody: Any, served: Served, clusters: Any) -> None:
    person = somebody(path=f"clusters/{SHOP}/repave")
    person.tab.wait_for("document.querySelector('.plan:not(.asking) .numbered li')")
    person.go(f"clusters/{SHOP}/change")
    person.fill("At least", "0")
    person.fill("Description", "Changed at the console")
    person.sees("was Of the console")
    person.sees("description")
    person.tab.wait_for("document.querySelector('.plan:not(.asking)')")
    assert served.call("GET", f"/v1/clusters/{SHOP}").body["description"] == "Of the console"
    person.press("Apply, ")
    person.tab.wait_for(f"location.pathname === '/console/clusters/{SHOP}'")
    assert served.call("GET", f"/v1/clusters/{SHOP}").body["description"] == "Changed at the console"


def test_viewer_sees_no_verb_that_would_be_refused(somebody: Any, served: Served, clusters: Any) -> None:
    person = somebody("local-viewer")
    pages = ["", f"clusters/{SHOP}", f"clusters/{SHOP}/disruption", f"clusters/{SHOP}/settings", "claims", "operations"]
    pages += ["plan", "offers", "costs", "providers", "accounts", "sites", "profiles", "quotas"]
    refused = ("Create cluster", "Claim", "Change…", "Upgrade…", "Delete…", "Resume…", "Give back", "Pause", "Stop")
    for path in pages:
        person.go(path)
        person.tab.wait_for("document.querySelector('main h1') && !document.querySelector('[aria-busy=true]')")
        verbs = [verb for verb in person.verbs() if verb != "Claims"]
        assert [verb for verb in verbs if verb.startswith(refused)] == [], path
    places = person.tab.evaluate("document.querySelector('.side').innerText")
    assert "Audit" not in places
    assert "Quotas" in places
    assert [(url, status) for url, status in person.tab.answers if status in {401, 403}] == []
    for path in ("new", "audit", f"clusters/{SHOP}/change", f"clusters/{SHOP}/delete", "claims/new", "plan/pool"):
        person.go(path)
        person.sees("You need the role")


def test_another_tenant_sees_nothing(somebody: Any, clusters: Any) -> None:
    person = somebody("local-other")
    person.sees("No clusters yet")
    for name in clusters:
        assert name not in person.tab.evaluate("document.body.innerText")
        person.go(f"clusters/{name}")
        person.sees(f"No cluster {name}")


def test_budgets_of_a_pool_stand_in_a_calendar(somebody: Any, served: Served, clusters: Any) -> None:
    path = f"/v1/clusters/{SHOP}/pools/workers"
    closed = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h", "time_zone": "Europe/Berlin"}
    body = {"disruption": {"budgets": [{"nodes": "20%"}, closed]}}
    answer = served.change("PATCH", path, body)
    assert answer.status in {200, 202}, answer.text
    person = somebody(path=f"clusters/{SHOP}/disruption?zone=Europe%2FBerlin")
    person.tab.wait_for("document.querySelectorAll('.calendar .closed').length === 5")
    rows = person.tab.evaluate(
        "[...document.querySelectorAll('.calendar .day')].map((day) => day.querySelector('.closed')?.style.left ?? '')"
    )
    assert rows == ["37.5%"] * 5 + ["", ""], "nine o'clock, from Monday to Friday"
    assert "0 9 * * mon-fri" in person.reads()
    person.press("UTC")
    hours = "parseFloat(document.querySelector('.calendar .closed').style.left) * 24 / 100"
    person.tab.wait_for(f"[7, 8].some((hour) => Math.abs({hours} - hour) < 0.01)")
    switch = "[...document.querySelectorAll('td .button')].find((each) => each.textContent.startsWith(%s))"
    # The pool may have changed since the page read it; then the page reads it again, and a person presses once more.
    note = "document.body.innerText.includes('Disruption is paused for workers.')"
    for verb, goal in (("Pause", note), ("Lift", f"!{note}")):
        person.tab.wait_for(f"(() => {{ if (!({goal})) {switch % repr(verb)}?.click(); return {goal}; }})()")
    person.press("Pause disruption")
    person.sees("Disruption is paused by")
    person.press("Lift the pause")


def test_plan_of_pods_says_nodes_price_bound_and_what_is_left_out(somebody: Any, clusters: Any) -> None:
    person = somebody("local-viewer", "plan")
    person.press("Plan")
    person.tab.evaluate("document.querySelector('.card footer .primary').click()")
    person.sees("Gap to the bound")
    assert "every pod has a place" in person.reads()
    person.tab.evaluate(
        "(() => { const area = document.querySelector('.editor textarea'); area.value = area.value.replace('500m',"
        " '\"4000\"'); area.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    person.tab.evaluate("document.querySelector('.card footer .primary').click()")
    person.sees("have no place")
    assert "6 \u00d7 web" in person.reads()
