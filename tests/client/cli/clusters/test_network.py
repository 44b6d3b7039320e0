"""``stockyard cluster network``."""

from __future__ import annotations

HUB = {
    "name": "demo", "claim": None, "node": "cp", "network": "ec2 us-east-1 of cloud account 1", "address": "100.64.0.1",
    "hub": True, "state": "up", "since": None, "home": None, "handshake_at": None, "direct": 2, "relayed": 0,
    "through_hub": [],
}  # fmt: skip
FAR = {
    **HUB, "name": "far-1", "claim": "ncl_1", "node": "far-1", "network": "cudo us-dallas-1 of cloud account 4",
    "address": "100.64.0.7", "hub": False, "since": "2026-01-01T00:00:00.000Z", "home": "cp", "direct": 1, "relayed": 1,
    "through_hub": ["far-2"],
}  # fmt: skip
LOST = {**FAR, "name": "far-2", "node": None, "state": "down", "home": None, "direct": None, "relayed": None,
        "through_hub": []}  # fmt: skip
VIEW = {"range": "100.64.0.0/16", "observed_at": "2026-01-01T00:00:00.000Z", "changed_at": None,
        "members": [LOST, HUB, FAR]}  # fmt: skip


def test_members_are_listed_with_paths_and_what_is_down(cli, api):
    for view in (VIEW, VIEW, VIEW, {**VIEW, "members": [], "observed_at": None}, {**VIEW, "range": None}):
        api.answer("GET", "/v1/clusters/demo/network", view)
    result = cli("cluster", "network", "demo")
    heading, lost, hub, far = result.stdout.splitlines()
    assert heading.split()[:4] == ["MEMBER", "ADDRESS", "NETWORK", "STATE"]
    assert lost.split()[0] == "far-2"
    assert " down " in lost
    assert " itself " in hub
    assert "cudo us-dallas-1 of cloud account 4" in far
    assert " cp " in far
    assert "3 members in 100.64.0.0/16, 1 down, as of" in result.stderr
    assert "far-1 reaches through its hub: far-2." in result.stderr
    assert cli("cluster", "network", "demo", "-o", "name").stdout.split() == ["far-2", "demo", "far-1"]
    assert '"range": "100.64.0.0/16"' in cli("cluster", "network", "demo", "-o", "json").stdout
    assert "nothing was told yet" in cli("cluster", "network", "demo").stderr
    assert "has no overlay" in cli("cluster", "network", "demo").stderr
