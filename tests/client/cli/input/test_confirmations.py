"""Deletions are asked about on a terminal, with what is lost; scripts are not asked."""

from __future__ import annotations

import pytest

CLAIM = {"id": "ncl_1", "name": "c1", "cluster": "demo", "phase": "Available", "node_name": "node-7"}
POOL = {"name": "base", "kind": "static", "nodes": {"claims": 2}}
PLAN = {"deletes": [{"kind": "subnet", "name": "a"}, {"kind": "subnet", "name": "b"}, {"kind": "nat_gateway"},
                    {"kind": "address"}, {"kind": "address"}, {"kind": "policy"}, {"kind": "policy"}]}  # fmt: skip


@pytest.fixture
def deletable(api, cluster_document, operation_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(status="ready"))
    api.answer("GET", "/v1/node-claims/c1", CLAIM)
    api.answer("GET", "/v1/clusters/demo/pools/base", POOL)
    api.answer("GET", "/v1/node-providers/lab", {"id": "n", "name": "lab", "kind": "ec2", "node_types": ["a", "b"]})
    api.answer("GET", "/v1/cloud-accounts/1", {"id": 1, "provider": "aws", "name": "main"})
    api.answer("GET", "/v1/cluster-profiles/base", {"id": "p", "name": "base", "version": "1", "versions": [{}, {}]})
    api.answer("DELETE", "/v1/clusters/demo", {"plan": PLAN})
    for path in ("/v1/clusters/demo", "/v1/node-claims/c1", "/v1/node-providers/lab", "/v1/cluster-profiles/base"):
        api.answer("DELETE", path, operation_document(), status=202)
    api.answer("DELETE", "/v1/clusters/demo/pools/base", POOL, status=202)
    api.answer("DELETE", "/v1/cloud-accounts/1", None, status=204)
    return api


def deleted(api) -> list[str]:
    return [r.url.path for r in api.requests if r.method == "DELETE" and not r.url.params.get("dry_run")]


@pytest.mark.parametrize(
    ("arguments", "loss"),
    [
        (("cluster", "delete", "demo"), "2 subnets, 2 addresses, 2 policies, 1 nat gateway."),
        (("claim", "delete", "c1"), "Claim c1 of cluster demo is given back. Node node-7 is drained"),
        (("pool", "delete", "base", "--cluster", "demo"), "its 2 nodes are drained and given back"),
        (("provider", "delete", "lab"), "Node provider lab (ec2) is removed with its 2 node types."),
        (("account", "delete", "1"), "Cloud account 1 (main) is forgotten"),
        (("profile", "delete", "base"), "Profile base is removed with its 2 versions."),
    ],
)
def test_what_is_lost_is_said_and_nothing_goes_without_a_yes(cli, deletable, arguments, loss):
    cli.terminal = True
    for answer in ("n\n", "\n", ""):
        result = cli(*arguments, stdin=answer)
        assert (result.exit_code, deleted(deletable)) == (1, [])
        assert "Delete it? [y/N] " in result.stderr
        assert result.stderr.endswith("Nothing was changed.\n")
        if answer == "n\n":
            assert loss in result.stderr
    assert cli(*arguments, stdin="y\n").exit_code == 0
    assert len(deleted(deletable)) == 1


def test_yes_and_scripts_are_not_asked(cli, deletable):
    assert "[y/N]" not in cli("claim", "delete", "c1").stderr
    cli.terminal = True
    assert "[y/N]" not in cli("claim", "delete", "c1", "-y").stderr
    assert len(deleted(deletable)) == 2
    # a question costs nobody a request who is not asked
    assert [request.method for request in deletable.requests] == ["DELETE", "DELETE"]


def test_a_forced_deletion_says_what_it_leaves(cli, deletable):
    cli.terminal = True
    result = cli("cluster", "delete", "demo", "--force", stdin="n\n")
    assert "what is left of it in your cloud stays and is billed." in result.stderr
    assert deleted(deletable) == []


def test_the_question_is_put_when_the_api_does_not_say_what_is_lost(cli, api):
    cli.terminal = True
    result = cli("claim", "delete", "gone", stdin="n\n")
    assert "Claim gone is given back." in result.stderr
    assert result.exit_code == 1


def test_a_deletion_by_files_lists_them(cli, deletable):
    cli.terminal = True
    text = "apiVersion: v1\nkind: NodeClaim\nmetadata: {name: c1}\n"
    result = cli("delete", "-f", "-", stdin=text)  # the answer is not there: the input was the document
    assert (result.exit_code, deleted(deletable)) == (1, [])
    assert "- claim c1\nDelete this one? [y/N] " in result.stderr


def test_ctrl_c_at_the_question_changes_nothing_and_says_so(cli, deletable, monkeypatch):
    class Keys:
        def readline(self):
            raise KeyboardInterrupt

    cli.terminal = True
    monkeypatch.setattr("stockyard_client.cli.input.confirmations.sys", type("System", (), {"stdin": Keys()}))
    result = cli("claim", "delete", "c1")
    assert (result.exit_code, deleted(deletable)) == (130, [])
    assert result.stderr.endswith("Nothing was changed.\n")
    assert "goes on by itself" not in result.stderr


def test_pruning_names_the_pools_and_asks(cli, api, tmp_path):
    file = tmp_path / "vcluster.yaml"
    file.write_text("privateNodes: {enabled: true}\n")
    plan = {"deletes": [{"kind": "pool", "name": "old"}]}
    api.answer("POST", "/v1/apply", {"plan": plan}).answer("POST", "/v1/apply", {"plan": plan})
    api.answer("POST", "/v1/apply", {"results": []}).answer("POST", "/v1/apply", {"plan": {}})
    api.answer("POST", "/v1/apply", {"results": []})
    cli.terminal = True
    prune = ("apply", "-f", str(file), "--prune")
    result = cli(*prune, stdin="n\n")
    assert "Pool old is deleted, and its nodes are drained and given back.\nDelete it? [y/N] " in result.stderr
    assert (result.exit_code, len(api.requests)) == (1, 1)
    assert cli(*prune, stdin="y\n").exit_code == 0
    # nothing is asked where no pool would go, nor with --yes
    assert "[y/N]" not in cli(*prune).stderr
    assert "[y/N]" not in cli(*prune, "--yes").stderr


def test_a_restore_says_what_is_forgotten_and_asks(cli, api, operation_document):
    plan = {
        "warnings": [{"pointer": "/snapshot", "detail": "Everything since then is forgotten."}],
        "steps": ["Make a member"],
    }
    api.answer("POST", "/v1/clusters/demo/restore", {"plan": plan})
    api.answer("POST", "/v1/clusters/demo/restore", {"plan": plan})
    api.answer("POST", "/v1/clusters/demo/restore", operation_document(id="op_06"), status=202)
    cli.terminal = True
    restore = ("cluster", "restore", "demo", "--snapshot", "latest")
    result = cli(*restore, stdin="n\n")
    assert (
        result.stderr == "Everything since then is forgotten.\nMake a member\nRestore it? [y/N] Nothing was changed.\n"
    )
    assert result.exit_code == 1
    assert [request.url.params.get("dry_run") for request in api.requests] == ["true"]
    assert "op_06" in cli(*restore, stdin="y\n").stderr
    count = len(api.requests)
    assert "op_06" in cli(*restore, "--yes").stderr
    assert len(api.requests) == count + 1
