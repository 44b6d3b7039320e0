"""Tokens of a cluster whose cloud admits people: made when somebody asks, kept nowhere."""

from __future__ import annotations

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import IllegalTransition, UnexpectedBehavior, VendorError
from stockyard.operations.clusters.kept_secrets import minter
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.services import Services
from stockyard.ports import CloudWork
from stockyard.ports.clusters import ClusterToken, MintsTokens

PHASE = "access"


def mint(services: Services, cluster: Cluster, role: str, actor: str) -> ClusterToken:
    """A token of that role, made now. The session behind it is called after ``actor``, as the cloud's trail shows it.

    Nothing is written. ``IllegalTransition`` for a cluster without such tokens, for one that is not ready, and when the
    account is gone; ``UnexpectedBehavior`` when the cloud makes none.
    """
    driver = require_minter(services, cluster)
    require_endpoint(cluster)
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None:
        raise IllegalTransition(f"Cloud account {cluster.cloud_account_id} is not registered any more.")
    # no operation is of that name, so this ledger takes no line
    ledger = StoreLedger(services, Owner.of_cluster(cluster, "token", 0), PHASE)
    now = services.clock.now()
    work = CloudWork(services.tenant, services.installation, cluster, account, ledger, now, actor)
    try:
        return driver.mint(work, role)
    except VendorError as error:
        text = f"The cloud has made no token ({error.error_type}). {error.hint}"
        raise UnexpectedBehavior(text.strip()) from error


def require_minter(services: Services, cluster: Cluster) -> MintsTokens:
    """The driver of a cluster that the cloud admits people to. ``IllegalTransition`` for any other cluster."""
    driver = minter(services, cluster)
    if driver is None:
        raise IllegalTransition("People log in to this cluster (stockyard login --cluster); no token is made for it.")
    return driver


def require_endpoint(cluster: Cluster) -> tuple[str, str]:
    """Address of the cluster's API, and its authority's certificate in base64. ``IllegalTransition`` before that."""
    if cluster.status != "ready" or cluster.endpoint is None or cluster.certificate_authority is None:
        raise IllegalTransition(f"The cluster is {cluster.status}; it has a kubeconfig while it is ready.")
    return cluster.endpoint, cluster.certificate_authority
