"""The API of a cluster on EC2, by the kubeconfig that its control plane has sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from stockyard.errors import VendorRefused
from stockyard.ports.cloud_work import CloudWork
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config
from stockyard.providers.kubernetes.client import ClientCertificate
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

ENDPOINT = "https://10.0.0.9:6443"


def kubeconfig(authority: str = "Q0E=", **user: str) -> str:
    api = {"server": "https://elsewhere.test", "certificate-authority-data": authority}
    return json.dumps({"clusters": [{"name": "k", "cluster": api}], "users": [{"name": "k", "user": user}]})


@pytest.fixture
def api() -> MemoryKubernetes:
    return MemoryKubernetes()


@pytest.fixture
def driver(api: MemoryKubernetes) -> Ec2ClusterDriver:
    config = Ec2Config("vantage", "https://api.example.test", "https://id.example.test/realms/s")
    return Ec2ClusterDriver(config, boto3.Session, make_api=api.client)


@pytest.fixture
def work(yard: Any) -> CloudWork:
    cluster = replace(yard.cluster, endpoint=ENDPOINT)
    assert cluster.certificate_authority is None, "of machines of ours the record has none"
    return replace(yard.work("profile"), cluster=cluster, kubeconfig=kubeconfig(token="admin"))


def test_packs_are_applied_by_the_account_and_not_by_the_admin(
    driver: Ec2ClusterDriver, api: MemoryKubernetes, work: CloudWork
) -> None:
    assert driver.packs_admin is driver
    driver.packs_api(work)
    assert api.users == ["admin", "token-1"]
    assert ("ClusterRoleBinding", "", "stockyard-packs-account") in api.objects
    driver.forget_packs(work)
    assert api.users[2:] == ["admin"]
    assert ("ClusterRoleBinding", "", "stockyard-packs-account") not in api.objects


def test_the_address_is_the_records_and_the_authority_that_of_the_report(
    driver: Ec2ClusterDriver, api: MemoryKubernetes, work: CloudWork
) -> None:
    driver.packs_api(work)
    assert api.asked == [(ENDPOINT, "Q0E="), (ENDPOINT, "Q0E=")]


def test_an_admin_may_be_known_by_a_certificate(
    driver: Ec2ClusterDriver, api: MemoryKubernetes, work: CloudWork
) -> None:
    user = {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    driver.packs_api(replace(work, kubeconfig=kubeconfig(**user)))
    assert api.users == [ClientCertificate("Y2VydA==", "a2V5"), "token-1"]
    assert api.token() == "token-1", "the account has no certificate"


@pytest.mark.parametrize("sent", ["", "users: [", kubeconfig(exec="sh")])
def test_a_kubeconfig_that_is_missing_or_no_kubeconfig_is_refused_without_its_words(
    driver: Ec2ClusterDriver, api: MemoryKubernetes, work: CloudWork, sent: str
) -> None:
    with pytest.raises(VendorRefused, match="kubeconfig") as refusal:
        driver.packs_api(replace(work, kubeconfig=sent))
    assert refusal.value.__cause__ is None
    assert api.asked == []
    assert sent not in repr(replace(work, kubeconfig=sent)) or not sent


def test_a_cluster_whose_address_is_not_known_is_refused(
    driver: Ec2ClusterDriver, api: MemoryKubernetes, work: CloudWork
) -> None:
    with pytest.raises(VendorRefused, match="has not sent"):
        driver.forget_packs(replace(work, cluster=replace(work.cluster, endpoint=None)))
    with pytest.raises(VendorRefused, match="names no authority"):
        driver.forget_packs(replace(work, kubeconfig=kubeconfig("", token="admin")))
    assert api.asked == []
