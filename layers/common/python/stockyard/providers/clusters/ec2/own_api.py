"""The API of a cluster of ours, by the kubeconfig that its control plane has sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stockyard.domain.clusters.kubeconfigs import check
from stockyard.errors import VendorRefused
from stockyard.ports import CloudWork
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi

MakeApi = Callable[..., KubernetesApi]
"""Makes a client of the API at an address, with an authority's certificate, what gives tokens, and ``certificate``."""


def packs_api(work: CloudWork, make_api: MakeApi) -> packs.Account:
    """The cluster's API as the account that applies packs."""
    endpoint, fields = _credentials(work)
    authority = fields["certificate-authority-data"]
    return packs.account_api(_admin(endpoint, fields, make_api), lambda token: make_api(endpoint, authority, token))


def forget_packs(work: CloudWork, make_api: MakeApi) -> None:
    """Remove the account that applies packs."""
    packs.forget(_admin(*_credentials(work), make_api))


def _credentials(work: CloudWork) -> tuple[str, Mapping[str, str]]:
    """The address on the record, and what the kubeconfig says. Its authority is the one that was reported first: a
    report with another one is refused, and so is one of another address."""
    endpoint = work.cluster.endpoint
    if not endpoint or not work.kubeconfig:
        raise VendorRefused("the control plane has not sent a kubeconfig", hint="Resume from the phase report.")
    try:
        fields = check(work.kubeconfig)
    except ValueError:
        raise VendorRefused("the kubeconfig that the control plane has sent cannot be read") from None
    if not fields.get("certificate-authority-data"):
        raise VendorRefused("the kubeconfig that the control plane has sent names no authority")
    return endpoint, fields


def _admin(endpoint: str, fields: Mapping[str, str], make_api: MakeApi) -> KubernetesApi:
    key, token = fields.get("client-key-data", ""), fields.get("token", "")
    certificate = ClientCertificate(fields.get("client-certificate-data", ""), key) if key else None
    return make_api(endpoint, fields["certificate-authority-data"], lambda: token, certificate=certificate)
