"""The API of a cluster of ours, by the kubeconfig that its control plane has sent."""

from __future__ import annotations

from collections.abc import Callable

from stockyard.domain.kubeconfigs import check
from stockyard.errors import VendorRefused
from stockyard.ports import CloudWork
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi

MakeApi = Callable[..., KubernetesApi]
"""Makes a client of the API at an address, with an authority's certificate, what gives tokens, and ``certificate``."""


def admin(work: CloudWork, make_api: MakeApi) -> KubernetesApi:
    """The cluster's API as its admin. The address and its authority are those of the record."""
    cluster = work.cluster
    if not cluster.endpoint or not cluster.certificate_authority or not work.kubeconfig:
        raise VendorRefused("the control plane has not sent a kubeconfig", hint="Resume from the phase report.")
    try:
        user = check(work.kubeconfig)
    except ValueError:
        raise VendorRefused("the kubeconfig that the control plane has sent cannot be read") from None
    key = user.get("client-key-data", "")
    certificate = ClientCertificate(user.get("client-certificate-data", ""), key) if key else None
    token = user.get("token", "")
    return make_api(cluster.endpoint, cluster.certificate_authority, lambda: token, certificate=certificate)


def packs_api(work: CloudWork, make_api: MakeApi) -> KubernetesApi:
    """The cluster's API as the account that applies packs."""
    endpoint, authority = str(work.cluster.endpoint), str(work.cluster.certificate_authority)
    return packs.account_api(admin(work, make_api), lambda token: make_api(endpoint, authority, token))
