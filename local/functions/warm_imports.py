"""The imports of the functions, and botocore's files for their clients, read before the start.

Nothing here makes a call or reads a variable of a function: modules of ours read none when they are imported, except
the programs of machines, which no function imports.
"""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from functools import cache
from importlib import import_module
from unittest.mock import patch

import botocore.session
from botocore.loaders import JSONFileLoader

import stockyard

PACKAGES = ("aws_lambda_powertools", "boto3", "cryptography.x509", "keycloak", "pydantic", "yaml")
SERVICES = ("dynamodb", "ec2", "elbv2", "events", "iam", "lambda", "secretsmanager", "stepfunctions", "sts")
"""Those of which most functions or phases make clients."""
PROGRAMS = ".on_machine"


def read_files_once() -> None:
    """From now on a file of botocore is read and parsed once, whoever wants it: clients only read what is in it."""
    load = JSONFileLoader.load_file
    read = cache(lambda path: load(JSONFileLoader(), path))
    patch.object(JSONFileLoader, "load_file", lambda _loader, path: read(path)).start()
    session = botocore.session.Session()
    for service in SERVICES:
        session.create_client(service, region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")  # noqa: S106 - no key


def import_all() -> None:
    """All modules of ours that functions may want."""
    for name in PACKAGES:
        import_module(name)
    for module in pkgutil.walk_packages(stockyard.__path__, "stockyard."):
        if PROGRAMS not in module.name:
            with suppress(ImportError):
                import_module(module.name)


import_all()
read_files_once()
