"""``--output github``: annotations at the lines of files, and the summary of a job."""

from __future__ import annotations

import json

WEB = {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "web"}, "spec": {"cluster": "shop"}}
PRICE = {"currency": "USD", "hour": 0.1, "month": 73.0, "complete": True, "items": [{"name": "node", "hour": 0.1}]}
OLD = {"set": "shop", "kind": "pool", "id": "clu_1/old", "name": "old", "cluster": "shop", "labels": {}}


def test_warnings_and_what_is_kept_are_annotated_and_the_plan_is_summarized(cli, api, tmp_path):
    file = tmp_path / "a,b:100%.json"
    file.write_text(json.dumps(WEB, indent=1), encoding="utf-8")
    summary = tmp_path / "summary.md"
    cli.environment["GITHUB_STEP_SUMMARY"] = str(summary)
    change = {
        "kind": "pool",
        "name": "web",
        "pointer": "/0/spec/weight",
        "field": "weight",
        "before": 1,
        "after": "|<b>",
    }
    warnings = [
        {"pointer": "/0/spec/cluster", "detail": "50% is\nmuch"},
        {"pointer": "", "detail": "So.", "note": True},
    ]
    plan = {"changes": [change], "warnings": warnings, "unnamed": [OLD], "price": PRICE, "price_before": PRICE}
    api.answer("POST", "/v1/apply", {"plan": plan})
    result = cli("diff", "-f", str(file), "--set", "shop", "-o", "github")
    assert result.exit_code == 1
    escaped_path = str(file).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    assert f"::warning file={escaped_path},line=8::50%25 is%0Amuch" in result.stdout.splitlines()
    assert "::notice::So." in result.stdout.splitlines()
    assert "::warning::Kept: pool old of cluster shop" in result.stdout
    text = summary.read_text()
    assert "| ~ | pool web | weight: 1 → &#124;&#60;b&#62; |" in text
    assert "Price now: 0.1000 USD/hour, 73.00 USD/month" in text
    assert "- Kept: pool old of cluster shop" in text


def test_without_a_summary_file_annotations_alone_are_written(cli, api, tmp_path):
    api.problem("POST", "/v1/apply", 409, "InUse", errors=[{"pointer": "/0/metadata/name", "detail": "It is of b."}])
    file = tmp_path / "web.json"
    file.write_text(json.dumps(WEB, indent=1), encoding="utf-8")
    result = cli("apply", "-f", str(file), "--set", "shop", "-o", "github")
    assert (result.exit_code, f"::error file={file},line=5::It is of b." in result.stdout) == (5, True)
