"""``make run`` shows the pools of its cluster until they have their nodes."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from local import show


class Api:
    """Answers of the API in turn: a cluster's conditions, the last of which stay."""

    def __init__(self, pools: Sequence[str], *conditions: tuple[str, str]) -> None:
        self._pools = [{"name": name} for name in pools]
        self._conditions = [[{"type": "PoolsReady", "status": status, "message": text}] for status, text in conditions]
        self.paths: list[str] = []

    def __call__(self, method: str, path: str) -> dict[str, Any]:
        assert method == "GET"
        self.paths.append(path)
        if path.endswith("/pools"):
            return {"items": self._pools}
        conditions = self._conditions.pop(0) if len(self._conditions) > 1 else self._conditions[0]
        return {"conditions": conditions}


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    moments = iter(range(1000))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    return Console(file=io.StringIO(), width=200)


def lines(console: Console) -> Sequence[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_total_without_any_known_price_is_unknown(console: Console) -> None:
    item = {"name": "NAT gateway", "hour": None, "month": None}
    console.print(show.price({"currency": "USD", "hour": 0.0, "month": 0.0, "complete": False, "items": [item]}))
    (total,) = [line for line in lines(console) if "total" in line]
    assert total.count("unknown") == 2


def test_counts_are_shown_until_all_nodes_are_there(console: Console) -> None:
    waiting = ("False", "workers: 1 of 2 nodes are available.")
    api = Api(["workers"], waiting, waiting, ("True", "1 pools have their nodes."))
    assert show.await_pools(api, "clu_1", console)
    assert lines(console) == ["pools: workers: 1 of 2 nodes are available.", "pools: 1 pools have their nodes."]


def test_a_cluster_without_pools_is_not_waited_for(console: Console) -> None:
    api = Api([], ("False", "never"))
    assert not show.await_pools(api, "clu_1", console)
    assert (api.paths, lines(console)) == (["/v1/clusters/clu_1/pools"], [])


def test_pools_that_lack_nodes_for_too_long_are_an_error(console: Console) -> None:
    with pytest.raises(TimeoutError, match="0 of 1 nodes"):
        show.await_pools(Api(["workers"], ("False", "workers: 0 of 1 nodes are available.")), "clu_1", console)


@pytest.mark.parametrize(
    ("cluster", "visible", "hidden"),
    [
        ("demo", "stockyard claim create --name one --cluster demo", "cluster create"),
        ("", "stockyard cluster create -f examples/aws-cluster.json --wait", "claim create"),
    ],
)
def test_a_start_ends_with_what_to_type_next(cluster: str, visible: str, hidden: str) -> None:
    text = show.next_commands("/some/home", cluster)
    assert "set -a; . /some/home/env; set +a" in text
    assert visible in text
    assert hidden not in text


def test_the_name_of_a_body_and_of_a_manifest() -> None:
    assert [show.name_of({"name": "a"}), show.name_of({"kind": "EKSCluster", "metadata": {"name": "b"}})] == ["a", "b"]
