"""Each file of the examples folder is run by a test that is named here: made, applied or played, and not only read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN_BY: Mapping[str, str] = {
    "api/answers.json": "e2e/test_console_pages.py::test_pages_hold_at_every_width",
    "api/bodies.json": "api/test_schemathesis.py::test_generated_requests_get_documented_answers",
    "aws-cluster.json": "e2e/test_readme.py::test_the_commands_work_after_make_serve",
    "bare-metal.yaml": "examples/test_own_nodes.py::test_hosts_of_bare_metal",
    "cdk/app.py": "constructs/test_app.py::test_the_app_is_deployed_changed_rolled_back_and_deleted",
    "cdk/cdk.json": "constructs/test_app.py::test_the_app_starts_as_its_settings_say",
    "cdk/requirements.txt": "constructs/test_app.py::test_the_app_starts_as_its_settings_say",
    "cluster.yaml": "examples/test_cluster_documents.py::test_the_examples_of_the_repository",
    "cudo-cluster.json": "e2e/test_cudo_life.py::test_a_deletion_leaves_nothing",
    "cudo-nodes.yaml": "examples/test_own_nodes.py::test_machines_with_a_gpu_of_cudo",
    "ec2-nodes.yaml": "e2e/test_readme.py::test_the_commands_work_after_make_serve",
    "eks-inference.yaml": "examples/test_cluster_documents.py::test_the_examples_of_the_repository",
    "faults.json": "local/test_fault_plan.py::test_the_cluster_of_the_example_plan_fails_for_want_of_capacity",
    "gitops/deploy.yaml": "examples/test_gitops.py::test_who_calls_the_workflow_gives_it_what_it_asks_for",
    "gitops/production/batch.yaml": "examples/test_gitops.py::test_the_workflows_commands_plan_apply_and_prune",
    "gitops/production/nodes.yaml": "examples/test_gitops.py::test_the_workflows_commands_plan_apply_and_prune",
    "gitops/stockyard.yaml": "examples/test_gitops.py::test_the_workflows_commands_plan_apply_and_prune",
    "grafana/stockyard.json": "e2e/test_prometheus.py::test_each_query_of_the_dashboard_is_answered",
    "karpenter.yaml": "conformance/test_bugs.py::test_types_fit_the_pool_of_the_example_for_karpenter",
    "lab.yaml": "e2e/test_readme.py::test_the_commands_work_after_make_serve",
    "notifications/alerts.yaml": "examples/test_notifications.py::test_failures_are_told_by_mail_and_in_a_chat",
    "pipes/nodes.yaml": "e2e/test_event_story.py::test_a_pipe_carries_wishes_from_a_queue_to_pools",
    "pods.yaml": "e2e/test_readme.py::test_the_commands_work_after_make_serve",
    "profile.yaml": "examples/test_profile.py::test_the_profile_is_applied_and_a_cluster_gets_its_packs",
    "prometheus/prometheus.yaml": "e2e/test_prometheus.py::test_numbers_are_those_of_the_costs",
    "prometheus/stockyard-rules.yaml": "e2e/test_prometheus.py::test_alerts_are_evaluated",
    "site-allowed": "local/test_sites.py::test_an_object_is_applied_and_deleted_there",
    "site-nodes.yaml": "examples/test_own_nodes.py::test_machines_of_a_site",
    "spectro-cluster.yaml": "examples/test_cluster_documents.py::test_the_examples_of_the_repository",
    "step-functions/cluster.yaml": "e2e/test_event_story.py::test_a_state_machine_makes_a_cluster",
    "trace.yaml": "e2e/test_readme.py::test_the_commands_work_after_make_serve",
    "virtual-machines.yaml": "examples/test_own_nodes.py::test_virtual_machines",
}
"""File below ``examples`` -> file below ``tests``, and how the name of its test begins."""


def test_each_example_has_a_test_that_there_is() -> None:
    folder = ROOT / "examples"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} - {"README.md"} == RUN_BY.keys()
    for example, test in RUN_BY.items():
        file, _, name = test.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"\ndef {name}" in text, example
