"""The secrets of machines: by its machine token a machine proves which one it is, by its join token, a bootstrap token
of kubeadm, a node joins its cluster; a control plane has a renewal token and a certificate key besides. All are derived
and never stored.

The same claim and attempt always give the same token: the agent and the machine get the same one without a record, and
a launch that is repeated has the same user data. Without the installation's key nobody can compute a token.
"""

from __future__ import annotations

import hashlib
import hmac

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID, _SECRET = 6, 16
"""Characters of kubeadm's format: the token's id has 31 bits, its secret 82."""


def join_token(key: bytes, claim_id: str, attempt: int) -> str:
    """``abcdef.0123456789abcdef`` of one attempt of a claim. Raises ``ValueError`` for an empty key."""
    number = int.from_bytes(_derived(key, "join", claim_id, attempt), "big")
    text = ""
    for _ in range(_ID + _SECRET):
        number, index = divmod(number, len(_ALPHABET))
        text += _ALPHABET[index]
    return f"{text[:_ID]}.{text[_ID:]}"


def machine_token(key: bytes, subject_id: str, attempt: int) -> str:
    """Secret in the user data of a claim's or a cluster's machine in an attempt: 256 bits. Raises ``ValueError`` for an
    empty key."""
    return _derived(key, "machine", subject_id, attempt).hex()


def renewal_token(key: bytes, cluster_id: str) -> str:
    """The proof of identity of a control plane that is up and has no keys of its cloud: 256 bits, in no user data.
    Raises ``ValueError`` for an empty key."""
    return _derived(key, "renewal", cluster_id, 0).hex()


def certificate_key(key: bytes, cluster_id: str) -> str:
    """The key with which kubeadm seals a cluster's authorities, so that more members of the control plane can have
    them: 256 bits as hexadecimal text. Raises ``ValueError`` for an empty key."""
    return _derived(key, "certificates", cluster_id, 0).hex()


def run_secret(key: bytes, tenant: str, run_id: str) -> str:
    """The secret of a run of a provider's program: 256 bits. Raises ``ValueError`` for an empty key."""
    return _derived(key, "run", f"{tenant}/{run_id}", 0).hex()


def state_passphrase(key: bytes, tenant: str, workspace: str) -> str:
    """The passphrase by which such programs seal a state: 256 bits, the same for all runs on it. Raises ``ValueError``
    for an empty key."""
    return _derived(key, "state", f"{tenant}/{workspace}", 0).hex()


def _derived(key: bytes, purpose: str, subject_id: str, attempt: int) -> bytes:
    if not key:
        raise ValueError("a token needs the installation's key")
    return hmac.new(key, f"{purpose}\x00{subject_id}\x00{attempt}".encode(), hashlib.sha256).digest()
