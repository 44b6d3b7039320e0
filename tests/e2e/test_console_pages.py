"""Every page of the console in a real browser, on an API that answers with the examples of its contract: widths,
themes, rules of accessibility, keys, tabs of one person, ends of sessions, refusals, no network, and long lists. Each
page is looked at once; with ``STOCKYARD_CONSOLE=full``, as in ``.ci/run``, at three widths in light and dark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import browser
from tests.harness.console import axe
from tests.harness.console.contract_api import ContractApi
from tests.harness.console.person import ConsolePerson

pytestmark = pytest.mark.timeout(1200)
FULL = os.environ.get("STOCKYARD_CONSOLE") == "full"
SIZES = ((1440, 900), (360, 800), (3840, 2160))
LOOKS = [(*size, dark) for size in SIZES for dark in (False, True)] if FULL else [(1440, 900, False)]
LISTS = (
    "",
    "claims",
    "operations",
    "offers",
    "costs",
    "providers?row=lab",
    "accounts",
    "sites",
    "profiles",
    "quotas",
    "audit",
)
TABS = (
    "claims",
    "pools",
    "disruption",
    "tree",
    "network",
    "events",
    "changes",
    "settings",
    "change",
    "upgrade",
    "resume",
    "repave",
    "renew",
    "restore",
)
# The table by its name: rows of the page before are still there for a moment.
ROWS_OF_CLAIMS = "document.querySelector('main table[aria-label=Claims] [data-row]')"
PAGES = (
    *LISTS,
    "new",
    "claims/new",
    "plan",
    "plan/pool",
    "plan/history",
    "offers/lab.small",
    "operations/op_1",
    "nothing",
)
PAGES = (*PAGES, "clusters/demo", *(f"clusters/demo/{tab}" for tab in (*TABS, "delete")))
PAGES = (*PAGES, "claims/one", *(f"claims/one/{tab}" for tab in ("conditions", "events", "document")))
STILL = "document.querySelector('main h1') && !document.querySelector('.rows-sunken')"
HARM = "<img src=x onerror=alert(1)> ${alert(1)} \"twice\" 'quoted' " + "x" * 80
LOADS = "Failed to load resource"
"""How the browser's console tells of a refusal, which the page shows."""


def example(api: ContractApi, operation: str) -> Any:
    return api.example(operation)[1]


def quiet(api: ContractApi) -> None:
    """The list of events has its examples, and no news."""

    def events(query: dict[str, str]) -> Any:
        if "wait" in query:
            time.sleep(float(query["wait"]) / 4)
        return {**example(api, "ListEvents"), **({"items": []} if "after" in query else {}), "cursor": "evt_1~"}

    api.answers = {"ListEvents": events}


@pytest.fixture(scope="module")
def api() -> Iterator[ContractApi]:
    served = ContractApi()
    yield served
    served.close()


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Tab]:
    path = browser.program()
    if path is None:
        pytest.skip(f"it needs a browser: {', '.join(browser.PROGRAMS)}")
    with browser.tab(path, tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def person(window: browser.Tab, api: ContractApi) -> Iterator[ConsolePerson]:
    """An administrator at the fleet, whose pages raised nothing and asked nobody but the API and the issuer."""
    quiet(api)
    someone = ConsolePerson(window.stranger(), api.url)
    someone.tab.emulate()
    someone.sign_in()
    yield someone
    assert [text for text in someone.tab.complaints if not text.startswith(LOADS)] == []
    assert someone.strangers() == {api.identity.issuer.split("/")[2]}
    someone.tab.close()


def test_pages_hold_at_every_width_and_break_no_rule_of_accessibility(person: ConsolePerson) -> None:
    try:
        axe.source()
    except axe.NoAxe as reason:
        pytest.skip(str(reason))
    faults: dict[str, Any] = {}
    for width, height, dark in LOOKS:
        person.tab.emulate(width=width, height=height, dark=dark)
        for path in PAGES:
            person.go(path)
            person.tab.wait_for(STILL)
            wide = person.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            broken = [*axe.violations(person.tab), *([f"{wide} px too wide"] if wide > 0 else [])]
            if broken:
                faults[f"{path} at {width}{' dark' if dark else ''}"] = broken
    assert faults == {}


def test_text_of_others_is_text_at_the_narrowest(person: ConsolePerson, api: ContractApi) -> None:
    cluster = {
        **example(api, "GetCluster"),
        "name": "x" * 128,
        "description": HARM,
        "message": HARM,
        "tags": {"a": HARM},
    }
    cluster |= {"status": "failed", "phase": HARM, "reason": HARM}
    event = {**example(api, "ListEvents")["items"][0], "message": HARM, "name": HARM, "subject": f"clu_{HARM}"}
    api.answers |= {"GetCluster": lambda _: cluster, "ListClusters": lambda _: {"items": [cluster]}}
    claim = {**example(api, "GetNodeClaim"), "name": "y" * 63, "message": HARM, "reason": HARM, "phase": "Failed"}
    api.answers |= {"GetNodeClaim": lambda _: claim, "ListNodeClaims": lambda _: {"items": [claim]}}
    api.answers["ListEvents"] = lambda _: {"items": [event], "cursor": "evt_1~"}
    person.tab.emulate(width=360, height=800)
    for path in ("", "claims", "claims/one", "clusters/demo", "clusters/demo/events", "clusters/demo/settings"):
        person.go(path)
        person.tab.wait_for(STILL)
        assert person.tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert person.tab.evaluate("document.querySelector('main img, main script')") is None
    assert HARM[:40] in person.reads()


def test_keys_alone_lead_to_a_cluster_and_back(person: ConsolePerson) -> None:
    person.tab.wait_for(STILL)
    person.tab.press("j")
    person.tab.wait_for("document.activeElement.dataset.to?.startsWith('/console/clusters/')")
    person.tab.press("Enter")
    person.tab.wait_for("document.querySelectorAll('.tabs a').length === 9")
    person.tab.press("4")
    person.tab.wait_for("location.pathname.endsWith('/disruption')")
    person.tab.press("g", "c")
    person.tab.wait_for("location.pathname === '/console/claims' && document.querySelector('[data-filter]')")
    person.tab.press("/")
    person.tab.wait_for("document.activeElement.dataset.filter !== undefined")
    person.tab.press("k", control=True)
    person.tab.wait_for("document.querySelector('dialog.go-to[open] input') === document.activeElement")
    person.tab.type("offers")
    person.tab.wait_for("document.querySelector('dialog [role=option]')?.innerText.startsWith('Offers')")
    person.tab.press("Enter")
    person.tab.wait_for("location.pathname === '/console/offers' && !document.querySelector('dialog[open]')")
    person.tab.evaluate("document.activeElement.blur()")
    person.tab.press("?")
    person.sees("Single keys are off in fields")
    person.tab.press("Escape")
    person.tab.wait_for("!document.querySelector('dialog[open]')")


def test_keys_show_details_units_and_verbs_of_a_row(person: ConsolePerson) -> None:
    person.go("claims")
    person.tab.wait_for(ROWS_OF_CLAIMS)
    person.tab.press("j")
    person.tab.press(" ")
    person.tab.wait_for("document.querySelector('aside.details h2') && location.search.includes('row=')")
    person.tab.press("]")
    person.tab.wait_for("!document.querySelector('aside.details') && !location.search.includes('row=')")
    person.tab.press("u")
    person.tab.wait_for("location.search.includes('unit=month') && document.body.innerText.includes('USD/month')")
    person.tab.press("g", "f")
    person.tab.wait_for("location.pathname === '/console/' && location.search.includes('unit=month')")
    person.go("claims")
    person.tab.wait_for(ROWS_OF_CLAIMS)
    person.tab.press("j")
    person.tab.press(".")
    person.tab.wait_for("document.querySelector('dialog.go-to [role=option]')?.innerText.startsWith('Open')")
    person.tab.press("Escape")
    person.tab.wait_for("!document.querySelector('dialog[open]')")


def test_verbs_of_a_claim_show_their_plan_before(person: ConsolePerson, api: ContractApi) -> None:
    claim = {**example(api, "GetNodeClaim"), "machine_id": "i-1", "deleting": False}
    plan: list[str] = []
    planned_claim = {"plan": {"price": {"hour": 0.1, "month": 73.0, "complete": True, "items": []}, "creates": []}}
    api.answers |= {"GetNodeClaim": lambda _: claim}
    for operation in ("PowerNodeClaim", "ChangeNodeClaim"):
        api.answers[operation] = lambda query: (
            plan.append(query.get("dry_run", "done")),
            planned_claim if "dry_run" in query else claim,
        )[1]
    person.go("claims/one?do=power")
    person.sees("Its machine shall be")
    person.tab.wait_for("document.querySelector('dialog .plan:not(.asking)')")
    assert plan == ["true"], "nothing is done before it is applied"
    person.press("Apply")
    person.tab.wait_for("!document.querySelector('dialog[open]')")
    assert plan == ["true", "done"]
    person.go("claims/one")
    person.press("Labels…")
    person.fill("Labels, one a line", "team=yard")
    person.tab.wait_for("document.querySelector('dialog .plan:not(.asking)')")
    person.press("Apply")
    person.tab.wait_for("!document.querySelector('dialog[open]')")
    assert plan[-1] == "done"


def test_offers_show_spot_prices_of_a_day_and_what_was_refused(person: ConsolePerson, api: ContractApi) -> None:
    type_ = example(api, "GetNodeType")
    now = time.time()
    points = [
        {"time": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - 3600 * ago)), "usd_hour": usd}
        for ago, usd in ((20, 0.03), (9, 0.042), (2, 0.035))
    ]
    spot = {**type_["offerings"][0], "capacity_type": "spot"}
    type_ = {
        **type_,
        "offerings": [*type_["offerings"], spot],
        "spot_history": {"use1-az1": points, "use1-az2": points},
    }
    api.answers |= {"GetNodeType": lambda _: type_, "ListNodeTypes": lambda _: {"items": [type_]}}
    person.go("offers/lab.small")
    person.tab.wait_for("document.querySelectorAll('.spot-chart path').length === 2")
    assert "0.0420" in person.reads()
    assert "InsufficientCapacity" in person.reads()
    person.go("offers?scarce=1")
    person.sees("refused")


def test_tabs_of_one_person_share_one_waiting_request(person: ConsolePerson, api: ContractApi) -> None:
    open_now, most = [0], [0]

    def events(query: dict[str, str]) -> Any:
        if "wait" in query:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
            time.sleep(0.5)
            open_now[0] -= 1
        return {"items": [], "next_page_token": None, "cursor": "evt_1~"}

    api.answers["ListEvents"] = events
    tabs = [person.tab.sibling() for _ in range(9)]
    for tab in tabs:
        tab.open(f"{api.url}/console/quotas")
    for tab in tabs:
        tab.wait_for("document.querySelector('.frame main h1')")
    most[0] = 0
    time.sleep(2)
    assert most[0] == 1, "ten tabs of one person"
    for tab in tabs:
        tab.close()


def test_refusals_stand_in_their_part_and_the_page_goes_on(person: ConsolePerson, api: ContractApi) -> None:
    problem = {"detail": "The table is busy.", "status": 503, "request_id": "req-1", "retryable": True}
    api.answers["GetCosts"] = lambda _: (503, problem)
    person.go("costs")
    person.sees("The table is busy.")
    assert "req-1" in person.reads()
    del api.answers["GetCosts"]
    person.press("Try again")
    person.sees("At this rate")
    api.answers["ListQuotas"] = lambda _: (500, None)
    person.go("quotas")
    person.sees("The API answered 500.")
    api.answers["ListClusters"] = lambda _: {"items": []}
    person.go("")
    person.sees("No clusters yet")


def test_without_a_network_the_page_says_so_and_goes_on_by_itself(person: ConsolePerson) -> None:
    condition = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    person.tab.call("Network.emulateNetworkConditions", offline=True, **condition)
    person.go("quotas")
    person.sees("Offline since")
    person.tab.call("Network.emulateNetworkConditions", offline=False, **condition)
    person.tab.wait_for("!document.body.innerText.includes('Offline since') && document.querySelector('main table')")


def test_what_was_typed_outlives_the_end_of_a_session(person: ConsolePerson, api: ContractApi) -> None:
    person.go("clusters/demo/change")
    person.fill("Description", "Typed before the end")
    person.sees("undo")
    for session in tuple(api.identity.realm.codes._sessions):
        api.identity.realm.end_session(session)
    person.tab.evaluate("(() => { const now = Date.now; Date.now = () => now() + 600000; })()")
    person.fill("Description", "Typed after the end")
    person.sees("Your session has ended")
    person.press("Sign in again")
    person.tab.wait_for("document.querySelector('#kc-form-login')")
    person.tab.evaluate("document.querySelector('#kc-form-login button').click()")
    person.tab.wait_for("document.getElementById('field description')?.value === 'Typed after the end'")
    assert person.tab.evaluate("location.pathname") == "/console/clusters/demo/change"
    stored = person.tab.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert "eyJ" not in stored, "no token is stored"


def test_long_lists_hold_one_page(person: ConsolePerson, api: ContractApi) -> None:
    claim = example(api, "GetNodeClaim")
    claims = [{**claim, "id": f"ncl_{n:05}", "name": f"claim-{n:05}"} for n in range(20_000)]

    def page(query: dict[str, str]) -> Any:
        first = int(query.get("page_token", "0"))
        return {"items": claims[first : first + 200], "next_page_token": str(first + 200)}

    api.answers["ListNodeClaims"] = page
    person.go("claims")
    person.sees("claim-00199")
    for _ in range(3):
        person.press("Next")
    person.sees("claim-00799")
    assert "claim-00199" not in person.reads()
    assert person.tab.evaluate("document.querySelectorAll('main tbody tr[data-row]').length") <= 260


def test_pages_that_a_filter_left_empty_are_gone_past(person: ConsolePerson, api: ContractApi) -> None:
    """A filtered list ends a page when it has looked at enough, full or not."""
    claim = example(api, "GetNodeClaim")
    failed_claims = {str(n): [{**claim, "id": f"ncl_{n}", "name": f"failed-{n}"}] for n in (3, 7)}

    def page(query: dict[str, str]) -> Any:
        token = query.get("page_token", "0")
        return {"items": failed_claims.get(token, []), "next_page_token": str(int(token) + 1) if token != "7" else None}

    api.answers["ListNodeClaims"] = page
    person.go("claims?phase=Failed")
    person.sees("failed-3")
    assert "1\N{EN DASH}1" in person.reads()
    person.press("Next")
    person.sees("failed-7")
    assert "2\N{EN DASH}2" in person.reads()
    person.press("Previous")
    person.sees("failed-3")
    assert "This is the first page" in person.tab.evaluate("document.querySelector('main').innerHTML")


def test_claims_that_wait_are_found_behind_many_others(person: ConsolePerson, api: ContractApi) -> None:
    """The fleet asks for the claims that wait among all, of which an answer looks at a part."""
    claim, cluster = example(api, "GetNodeClaim"), example(api, "ListClusters")["items"][0]
    waiting = {
        **claim,
        "cluster_id": cluster["id"],
        "phase": "Pending",
        "reason": "NoCapacity",
        "placement": None,
        "deleting": False,
    }

    def page(query: dict[str, str]) -> Any:
        token = int(query.get("page_token", "0"))
        items = [{**waiting, "id": f"ncl_{token}"}] if query.get("phase") == "Pending" and token else []
        return {"items": items, "next_page_token": str(token + 1) if token < 3 else None}

    person.go("quotas")  # the fleet has been there since the login, perhaps with claims of before
    person.tab.wait_for("document.querySelector('main h1')?.innerText === 'Quotas'")
    api.answers["ListNodeClaims"] = page
    person.go("")
    person.sees("3 claims wait")
