"""Typed properties of a CloudAccount, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict


class CloudAccountProperties(TypedDict, total=False):
    """Properties of a CloudAccount."""

    provider: Required[Literal["aws", "cudo", "kubernetes", "bcm"]]
    """The cloud that the account is in."""
    name: str
    """The name of the account, unique in the tenant."""
    description: str
    """Free text for people."""
    attributes: Required[AwsAttributes | CudoAttributes | KubernetesAttributes | BcmAttributes]
    """How Stockyard gets into the account; which fields there are depends on `provider`."""
    tags: Mapping[str, str]
    """Tags by key, at most 30. What is made in the cloud carries them too."""


class AwsAttributes(TypedDict, total=False):
    """The way into an AWS account: a role with an external id that Stockyard makes, or where the stage allows it an
    access key."""

    role_arn: str | None
    """The role that Stockyard assumes."""
    region: str
    """The region of clusters and nodes that name none."""
    volume_key_arn: str | None
    """The key of AWS KMS that encrypts all disks in its region, of this account or of another one; without it the
    account's default key does."""
    user_arn: str | None
    """The user of the access key, where the stage allows one in place of a role."""
    access_key_id: str | None
    """The id of the access key."""


class CudoAttributes(TypedDict, total=False):
    """A project of Cudo Compute and the API key for it."""

    project_id: Required[str]
    """The project that everything is made in."""
    data_center_id: Required[str]
    """The data center where things stand that name none."""
    vault_address: str | None
    """The address of a Vault, by which data disks of control planes are encrypted."""
    vault_role_id: str | None
    """The role id of the AppRole by which Stockyard logs in to the Vault."""


class KubernetesAttributes(TypedDict, total=False):
    """The API of a cluster, and the credentials of a service account or a user there; or a site whose connector has
    both."""

    server: str | None
    """The address of the API server."""
    certificate_authority: str | None
    """The certificate of the authority that the API server is known by, PEM in base64."""
    namespaces: Required[Sequence[str]]
    """The namespaces in which machines may be made; Stockyard asks for rights in no other."""
    client_certificate: str | None
    """The certificate of a user, instead of a token: PEM in base64."""
    via: str | None
    """The name of a site, instead of a server: its connector knows the host and adds the credentials."""
    features: Sequence[Literal["base", "metal3", "kubevirt", "capacity"]]
    """Kinds of machines that the account is for: each needs rights of its own."""


class BcmAttributes(TypedDict, total=False):
    """A head node and a client certificate that it knows; or a site whose connector has both."""

    endpoint: str | None
    """The address of the head node, with its port: `https://head:8081`."""
    certificate_authority: str | None
    """The certificate of the authority that the head node is known by, PEM in base64; its certificate has to name the
    host of the endpoint."""
    fingerprint: str | None
    """Instead of an authority the SHA-256 of the head node's own certificate, in hex: head nodes sign theirs
    themselves."""
    client_certificate: str | None
    """The client certificate that the head node knows (`admin.pem`), PEM in base64."""
    via: str | None
    """The name of a site, instead of all others: its connector knows the head node and has the certificate."""
