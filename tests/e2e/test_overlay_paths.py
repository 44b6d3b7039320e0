"""Paths of the overlay between machines that run their own program, in network namespaces with real WireGuard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stockyard.domain.clusters.overlay_paths import DOWN, UP, MachinePaths, paths_of, read
from stockyard.domain.values import times
from tests.harness.networks import PROGRAM, ROOT, Networks, lacking, run, until

pytestmark = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
SIZE = 50_000_000
TRIES = 4
THEN = "2026-01-01T00:00:00.000Z"
THOUSAND = """
import base64, json, os, resource, subprocess, sys, time
import stockyard_overlay as program
keys = [base64.b64encode(n.to_bytes(32, "big")).decode() for n in range(1, 1002)]
rows = [{"address": f"100.64.{n // 250 + 1}.{n % 250 + 1}", "key": key} for n, key in enumerate(keys)]
rows[500]["key"] = sys.argv[1]
own = {"address": "100.64.0.200", "range": "100.64.0.0/16", "hub": True, "port": 51999, "peers": rows[:1000]}
overlay = program.Overlay(own)
overlay.begin()
daemon = int(subprocess.run(["pgrep", "-fx", f"wireguard-go {program.INTERFACE}"], capture_output=True).stdout or 0)
def used():
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    if not daemon:
        return own, 0
    with open(f"/proc/{daemon}/stat") as file:
        return own, sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
for _ in range(60):
    if not subprocess.run(["ping", "-c", "1", "-W", "1", rows[500]["address"]], capture_output=True).returncode:
        break
ping = subprocess.Popen(
    ["ping", "-n", "-q", "-i", "0.01", "-c", "400", "-W", "1", rows[500]["address"]], stdout=subprocess.PIPE, text=True
)
time.sleep(1)
changes = []
for last in (rows[1:], rows[:1000]):
    before = used()
    overlay.take(last)
    overlay.apply()
    after = used()
    changes.append([now - then for now, then in zip(after, before)])
    time.sleep(0.5)
output, _ = ping.communicate()
peers = program.peers.run("wg", "show", program.INTERFACE, "peers").split()
print(json.dumps([changes, len(peers), output.split(" received")[0].rpartition(" ")[2]]), flush=True)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, soaking: bool) -> Iterator[Networks]:
    """Two hubs; public machines c and d; a and b behind NATs with the same private range; s behind a symmetric NAT."""
    networks = Networks(tmp_path_factory.mktemp("overlay"), tick=5.0 if soaking else 1.0)
    try:
        for hub in ("p", "q"):
            networks.machine(hub, hub=True)
        for nat in ("na", "nb"):
            networks.nat(nat)
        networks.nat("ns", symmetric=True)
        for name, behind in (("a", "na"), ("b", "nb"), ("s", "ns"), ("c", None), ("d", None)):
            networks.machine(name, behind=behind)
        networks.publish()
        for name in networks.machines:
            networks.boot(name)
        yield networks
    finally:
        networks.end()


def is_direct(world: Networks, a: str, b: str) -> bool:
    return world.path(a, b) == world.path(b, a) == "direct"


def carried(world: Networks) -> int:
    return world.carried("p") + world.carried("q")


def transfer(world: Networks, a: str, b: str) -> dict[str, float]:
    """Send 50 MB and 20 pings: seconds, and bytes of the hubs. Hubs carry nothing of it where the pair is direct, while
    probes are some hundred bytes a second. Done again when a machine that got no CPU for seconds has lost a path."""
    is_relayed = (a, b) == ("s", "b")
    for _ in range(TRIES):
        until(lambda: is_relayed or is_direct(world, a, b), 60 * world.tick, f"{a} and {b} are direct")
        before = carried(world)
        seconds = world.send(a, b, SIZE)
        received, through_hubs = world.pings(a, b, 20), carried(world) - before
        if received == 20 and (through_hubs < 100_000) is not is_relayed:
            return {"seconds for 50 MB": round(seconds, 2), "bytes of hubs": through_hubs}
    raise AssertionError(f"{a} to {b}: {received} of 20 pings, {through_hubs} bytes of hubs")


def test_each_pair_is_reached_through_a_hub_first_and_directly_where_that_is_possible(
    world: Networks, record_property: Callable[[str, object], None]
) -> None:
    until(lambda: world.pings("a", "b"), 30 * world.tick, "a reaches b")
    for pair in ("cd", "ac", "ab", "sc"):
        until(lambda pair=pair: is_direct(world, *pair), 60 * world.tick, f"{pair} is direct")
    figures = {}
    for a, b in ("cd", "ac", "ab", "sb"):
        figures[f"{a} to {b}"] = transfer(world, a, b)
    assert world.path("s", "b") == "relayed"
    record_property("figure:overlay paths", figures)


def judged(world: Networks) -> dict[str, MachinePaths]:
    """State of each machine by what all have written on their Nodes, as Stockyard reads it; by name."""
    reports = {machine.address: read(world.annotation(name)) for name, machine in world.machines.items()}
    hubs = [machine.address for machine in world.machines.values() if machine.hub]
    states = paths_of(hubs, reports, list(reports))
    return {name: states[machine.address] for name, machine in world.machines.items()}


def test_each_machine_says_how_it_is_reached(world: Networks) -> None:
    between = {world.machines[name].address for name in "ab"}

    def as_it_is() -> bool:
        states = judged(world)
        counts = (states["s"].direct, states["s"].relayed, states["a"].direct, states["a"].relayed)
        return counts == (4, 2, 5, 1) and set(states["s"].through_hub) == between

    until(as_it_is, 200 * world.tick, "a and s say whom they reach through their hub, and nobody else")
    states = judged(world)
    assert {state.state for state in states.values()} == {UP}
    assert states["a"].home in {world.machines[name].address for name in "pq"}
    assert states["a"].since
    assert states["a"].handshake_at
    assert all(len(world.annotation(name) or "") < 2_000 for name in world.machines)


def test_cut_path_falls_back_to_the_hub_and_comes_back_when_it_mends(
    world: Networks, record_property: Callable[[str, object], None]
) -> None:
    address = world.inside("nb", "ip", "-4", "-o", "address", "show", "wan").split()[3].partition("/")[0]
    for _ in range(TRIES):
        until(lambda: is_direct(world, "a", "b"), 60 * world.tick, "a and b are direct")
        world.cut("na", address)
        silent = until(lambda: world.pings("a", "b"), 200, "there is traffic again")
        assert world.path("a", "b") == "relayed"
        world.mend("na")
        mended, lost = healed(world)
        # Both ends change within one message; what was under way between may be lost.
        if lost <= 5:
            break
    seconds = {"relayed": round(silent, 1), "direct again": round(mended, 1)}
    record_property("figure:overlay cut", {"seconds until": seconds, "pings lost": lost})
    assert lost <= 5


def healed(world: Networks) -> tuple[float, int]:
    """Seconds until a and b are direct again, and pings that were lost meanwhile."""
    count = int(400 * world.tick)
    with subprocess.Popen(
        f"ip netns exec {world.mark}-a ping -n -q -i 0.05 -c {count} -W 1 {world.machines['b'].address}".split(),
        stdout=subprocess.PIPE,
        text=True,
    ) as ping:
        mended = until(lambda: is_direct(world, "a", "b"), 60 * world.tick, "a and b are direct again")
        output, _ = ping.communicate(timeout=60 * world.tick)
    return mended, count - int(output.split(" received")[0].rpartition(" ")[2])


def test_pods_of_two_networks_reach_each_other_over_it(world: Networks) -> None:
    """As flannel does it: VXLAN from the addresses of the overlay, whose MTU leaves 1370 bytes."""
    pairs = (("a", "b", 1), ("s", "b", 2))
    for first, second, number in pairs:
        for near, far, last in ((first, second, 1), (second, first, 2)):
            local, remote = (world.machines[name] for name in (near, far))
            pods = f"pods{number}"
            add = f"ip link add {pods} mtu 1370 type vxlan id {number} dev {local.interface} local {local.address}"
            world.inside(near, *add.split(), "remote", remote.address, "dstport", str(8472 + number))
            world.inside(near, "ip", "address", "add", f"10.244.{number}.{last}/24", "dev", pods)
            world.inside(near, "ip", "link", "set", pods, "up")
    for first, _, number in pairs:
        ping = f"ping -n -q -c 10 -i 0.1 -W 1 -s 1342 -M do 10.244.{number}.2".split()
        until(
            lambda first=first, ping=ping: " 10 received" in world.inside(first, *ping, check=False),
            60 * world.tick,
            "pods reach each other with whole packets",
        )


def test_machine_that_is_listed_no_more_is_nobodys_peer(
    world: Networks, record_property: Callable[[str, object], None]
) -> None:
    start = time.monotonic()
    world.publish(without="d")
    key = world.machines["d"].key
    # The agent hears of it within ten seconds: what is left of the minute are ten ticks of five seconds. With shorter
    # ones a machine that has no CPU for seconds counts.
    limit = start + (10 if world.tick >= 5 else 40) * world.tick
    for name in ("p", "q", "a", "b", "c", "s"):
        machine = world.machines[name]
        until(
            lambda m=machine: key not in world.inside(m.name, "wg", "show", m.interface, "peers"),
            max(0.2, limit - time.monotonic()),
            "d is gone",
        )
    record_property("figure:overlay without a machine", {"seconds until no peer": round(time.monotonic() - start, 1)})
    assert not world.pings("c", "d", 3)
    world.publish()
    until(lambda: world.pings("c", "d"), 60 * world.tick, "d is back")


def test_forged_annotation_and_address_get_no_packets_of_others(world: Networks) -> None:
    """Whoever says that he is another machine, and takes its address, is sent nothing and heard by nobody."""
    thief, owner = world.machines["s"], world.machines["b"]
    until(lambda: world.pings("c", "b"), 30 * world.tick, "c reaches b")
    forged = {"address": owner.address, "key": thief.key, "hub": True, "direct": 1, "down": {owner.address: THEN}}
    program = (
        f"import sys\nsys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        f"import stockyard_overlay_report as report\nreport.write({json.dumps(forged)!r})"
    )
    settings = [f"{name}={value}" for name, value in world.settings(thief).items()]
    world.inside("s", "env", *settings, sys.executable, "-c", program)
    assert judged(world)["b"].state == UP, "hubs alone say that others are down"
    chain = f"type filter hook prerouting priority -300; ip daddr {owner.address} counter;"
    world.inside("s", "nft", "-f", "-", text=f"table ip theft {{ chain arriving {{ {chain} }}; }}")
    world.inside("s", "ip", "address", "add", f"{owner.address}/32", "dev", thief.interface)
    try:
        assert not int(
            world.inside("s", "ping", "-n", "-q", "-c", "5", "-i", "0.2", "-W", "1", "-I", owner.address,
                         world.machines["c"].address, check=False).split(" received")[0].rpartition(" ")[2]
        )  # fmt: skip
        until(lambda: world.pings("c", "b", 50, 0.02) == 50, 60 * world.tick, "b has what is for b")
        assert "packets 0 bytes 0" in world.inside("s", "nft", "list", "table", "ip", "theft")
    finally:
        world.inside("s", "ip", "address", "delete", f"{owner.address}/32", "dev", thief.interface)


def test_configuration_is_accepted_by_wg_quick_and_keys_stay_in_their_file(world: Networks, tmp_path: Path) -> None:
    for machine in world.machines.values():
        text = world.inside(machine.name, "wg", "showconf", machine.interface)
        path = tmp_path / f"{machine.interface}.conf"
        path.write_text(text)
        subprocess.run(["wg-quick", "strip", str(path)], check=True, capture_output=True)
        secret = (machine.folder / "overlay.key").read_text().strip()
        files = [file for file in machine.folder.iterdir() if secret in file.read_text()]
        assert [file.name for file in files] == ["overlay.key"]
        assert secret not in (world.folder / f"{machine.name}.log").read_text()


def test_change_among_a_thousand_machines_costs_little_and_loses_nothing(
    world: Networks, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """One machine of a thousand leaves, and another comes, while packets go to a third one."""
    script = tmp_path / "thousand.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(PROGRAM.parent)!r})\n{THOUSAND}")
    secrets = {name: run("wg", "genkey") for name in ("m", "n")}
    publics = {name: run("wg", "pubkey", text=secret).strip() for name, secret in secrets.items()}
    addresses = {}
    for name, secret in secrets.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "overlay.key").write_text(secret)
        world.space(name)
        addresses[name] = world.public_address()
        world.wire(name, "net", addresses[name], None)
    device = f"{world.mark}-n"
    world.inside("n", "wireguard-go", device)
    peer = f"peer {publics['m']} allowed-ips 100.64.0.0/17 endpoint {addresses['m']}:51999 persistent-keepalive 1"
    world.inside("n", "wg", "set", device, "private-key", str(tmp_path / "n/overlay.key"), *peer.split())
    world.inside("n", "ip", "address", "add", "100.64.3.1/16", "dev", device)
    world.inside("n", "ip", "link", "set", device, "mtu", "1420", "up")
    settings = {"STOCKYARD_STATE": str(tmp_path / "m"), "STOCKYARD_OVERLAY_INTERFACE": f"{world.mark}-m"}
    for _ in range(TRIES):
        process = subprocess.run(
            ["ip", "netns", "exec", f"{world.mark}-m", sys.executable, str(script), publics["n"]],
            env={**os.environ, **settings}, cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        changes, peers, received = json.loads(process.stdout)
        if received == "400":
            break
    record_property("figure:overlay of 1,000", {"CPU seconds of a change": changes, "pings of 400": received})
    assert peers == 1000
    assert max(own for own, _ in changes) < 0.3
    assert received == "400"


def test_other_hub_takes_over_when_a_hub_dies(world: Networks, record_property: Callable[[str, object], None]) -> None:
    until(lambda: world.pings("s", "b"), 30 * world.tick, "s reaches b")
    home = next(name for name in "pq" if world.machines[name].address == world.status("s")["home"])
    other = "q" if home == "p" else "p"
    until(lambda: world.pings("s", other), 30 * world.tick, "s reaches the other hub")
    world.stop(home)
    stopped = datetime.now(UTC)
    seconds = until(lambda: world.pings("s", "b"), 180, "the other hub has taken over")
    figures = {
        "seconds until the other took over": round(seconds, 1),
        "CPU seconds of all": round(world.cpu_seconds(), 1),
    }
    record_property("figure:overlay without a hub", figures)
    assert world.status("s")["home"] == world.machines[other].address or until(
        lambda: world.status("s")["home"] == world.machines[other].address, 30 * world.tick, "its program says so"
    )
    until(lambda: judged(world)[home].state == DOWN, 60 * world.tick, "the other hub says that this one is down")
    until(lambda: judged(world)["s"].home == world.machines[other].address, 60 * world.tick, "s says its new home")
    lost = times.from_text(judged(world)[home].since or "")
    assert abs((lost - stopped).total_seconds()) < 10 * world.tick
    until(
        lambda: [name for name, state in judged(world).items() if state.state != UP] == [home],
        200 * world.tick,
        "nobody else is called down",
    )
