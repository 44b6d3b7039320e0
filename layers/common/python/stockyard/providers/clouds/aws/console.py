"""Output of a machine's console, as EC2 shows it."""

from __future__ import annotations

from stockyard.errors import VendorError, VendorNotFound
from stockyard.providers.clouds.aws.calls import Calls

_NOT_NITRO = "UnsupportedOperation"
"""The code by which EC2 says that it has no newest output of this type of machine, only what it buffered at boot."""


def read(calls: Calls, instance: str) -> str:
    """The output that there is, at most 64 KiB; empty when there is none yet, or no such machine any more. A machine
    that has ended shows it for about an hour."""
    try:
        answer = calls.call("ec2", "get_console_output", InstanceId=instance, Latest=True)
    except VendorNotFound:
        return ""
    except VendorError as error:
        if error.code != _NOT_NITRO:
            raise
        answer = calls.call("ec2", "get_console_output", InstanceId=instance)
    return str(answer.get("Output") or "")
