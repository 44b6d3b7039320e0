"""Vendor to ours: the one table that says what an answer of AWS means to us."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from stockyard import errors

DUPLICATE = re.compile(
    r"EntityAlreadyExists|.*\.Duplicate$|Duplicate(LoadBalancer|TargetGroup)Name|InvalidSubnet\.Conflict|"
    r".*\.AlreadyExists(Exception)?|FileSystemAlreadyExists|MountTargetConflict"
)
"""Codes that say that something of this name or range exists already."""

REPEATED = "IdempotentParameterMismatch"
"""The code that says that a call with this client token, but other values, has made its thing already."""

IN_USE = "ResourceInUseException"
"""EKS's code for what is busy, and for a name that is taken."""
_FULL_SUBNET = r"InsufficientFreeAddressesInSubnet|NoFreeAddressesInSubnet"
_MACHINE_QUOTAS = (
    r"(Vcpu|Instance|Volume|NetworkInterface|Resource)LimitExceeded|MaxIOPSLimitExceeded|"
    r"Max(Spot)?(Instance|Fleet|FleetRequest)CountExceeded"
)
"""Quotas that a machine counts in. Of others, as that for tags, a machine in another place has no more."""

Scarcity = Literal["capacity", "quota", "addresses"]
"""What a launch lacks: machines of EC2, of which everybody has none; room in a quota of the account; an address of the
subnet."""

_BY_TEXT: tuple[tuple[str, str, type[errors.VendorError], str], ...] = (
    # code, text, our error, what a person can do. These codes stand for all that is wrong, and the text says what.
    (
        r"InvalidParameter(Value|Combination)",
        r"invalid iam instance profile",
        errors.NotYetVisible,
        "The instance profile is new; IAM needs a moment.",
    ),
    (
        r"Invalid(Parameter|Request|ParameterValue)Exception",
        r"role with |the role |invalid principal",  # those that we name exist
        errors.NotYetVisible,
        "The role is new; IAM needs a moment.",
    ),
    (
        r"ValidationError",
        r"not found|no managed instance",
        errors.VendorNotFound,
        "The auto scaling group, or the machine in it, is gone.",
    ),
    (
        r"ValidationError",
        r"desiredsize equals minsize",
        errors.VendorConflict,
        "Another machine of the group has just left; it is tried again.",
    ),
    (
        r"(Client\.)?UnauthorizedOperation|AccessDenied(Exception)?|403",
        r"explicit deny in an? (service|resource) control policy",
        errors.PermissionDenied,
        "A policy of the account's organization denies it, whatever the account's template allows; give what it asks"
        " for, as a tag of the cluster's, or have it changed.",
    ),
)

TABLE: tuple[tuple[str, type[errors.VendorError], str], ...] = (
    # code, our error, what a person can do. The first row that matches decides.
    (
        r"RequestLimitExceeded|Throttling.*|TooManyRequests.*|.*RequestThrottled.*|SlowDown|BandwidthLimitExceeded",
        errors.VendorThrottled,
        "AWS limits the rate of calls of this account; it is tried again.",
    ),
    (
        r"InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientReservedInstanceCapacity|"
        r"InsufficientVolumeCapacity|InsufficientAddressCapacity|ReservationCapacityExceeded|UnfulfillableCapacity",
        errors.InsufficientCapacity,
        "The zone has none of this instance type now; wait, or choose another type or region.",
    ),
    (
        _FULL_SUBNET,
        errors.VendorRefused,
        "The subnet has no free address; choose another subnet.",
    ),
    (
        r"(Account|Vcpu|Vpc|(Gateway)?VpcEndpoint|Address|NatGateway|Instance|InternetGateway|Subnet|SecurityGroup|RouteTable|Resource|Volume|"
        r"FileSystem|NetworkInterface)?"
        r"LimitExceeded(Exception)?|MaxIOPSLimitExceeded|SecurityGroupsPerInstanceLimitExceeded|"
        r"RulesPerSecurityGroupLimitExceeded|Max(Spot)?(Instance|Fleet|FleetRequest)CountExceeded|TooMany(LoadBalancers|TargetGroups|Listeners|Tags|Targets)|"
        r"ServiceQuotaExceeded.*",
        errors.VendorQuotaExceeded,
        "A quota of the AWS account is used up; ask AWS to raise it, or remove what is not needed.",
    ),
    (
        r"UnauthorizedOperation|AccessDenied(Exception)?|NotAuthorized|Client\.UnauthorizedOperation|"
        r"403",
        errors.PermissionDenied,
        "The role in the AWS account lacks a permission; deploy the account's current template again.",
    ),
    (
        r"AuthFailure|InvalidClientTokenId|ExpiredToken(Exception)?|UnrecognizedClientException|SignatureDoesNotMatch|"
        r"RequestExpired|OptInRequired|InvalidAccessKeyId|Blocked|PendingVerification",
        errors.CredentialsRevoked,
        "AWS does not accept the account's credentials; check the role and verify the cloud account.",
    ),
    (
        r"Invalid.*\.NotFound|Invalid.*NotFound|NatGatewayNotFound|NoSuchEntity|.*NotFound(Exception|Error)?|"
        r"InvalidGroup\.NotFound|InvalidPlacementGroup\.Unknown|InvalidAMIID\.Unavailable|InvalidInstanceID\.Malformed|"
        r"InvalidCapacityReservationId\.Malformed|NoSuch(Bucket|Key|TagSet)|404",
        errors.VendorNotFound,
        "It does not exist in this region of the account.",
    ),
    (
        r"DependencyViolation|DeleteConflict|ResourceInUse(Exception)?|VolumeInUse|InvalidIPAddress\.InUse|.*\.InUse|"
        r"FileSystemInUse|DependencyTimeout|BucketNotEmpty",
        errors.VendorConflict,
        "Something still uses it; it is tried again.",
    ),
    (
        r"IncorrectState|IncorrectInstanceState|Incorrect.*State.*|ConcurrentModification(Exception)?|OperationAborted|"
        r"PriorRequestNotComplete|InvalidTarget|OperationNotPermitted|ScalingActivityInProgress(Fault)?|"
        r"ResourceContention(Fault)?",
        errors.VendorConflict,
        "It is busy with another change; it is tried again.",
    ),
    (
        REPEATED,
        errors.NotYetVisible,
        "The same request was made before; AWS does not show its result yet.",
    ),
    (
        DUPLICATE.pattern,
        errors.VendorRefused,
        "Something that is not ours has the same name; rename or remove it.",
    ),
    (
        r"InternalError|InternalFailure|ServerInternal|ServiceUnavailable(Exception)?|Unavailable|ServiceFailure",
        errors.VendorUnavailable,
        "AWS has a fault; it is tried again.",
    ),
)


def classify(code: str, message: str, status: int) -> tuple[type[errors.VendorError], str]:
    """The error class and hint for an answer's code, message and HTTP status."""
    for code_pattern, text, kind, hint in _BY_TEXT:
        if re.fullmatch(code_pattern, code) and re.search(text, message.lower()):
            return kind, hint
    for code_pattern, kind, hint in TABLE:
        if re.fullmatch(code_pattern, code):
            return kind, hint
    if status == 429:
        return errors.VendorThrottled, "It is tried again."
    if status >= 500:
        return errors.VendorUnavailable, "AWS has a fault; it is tried again."
    return errors.VendorRefused, "AWS refuses the request as it is."


def scarcity(code: str, message: str) -> Scarcity | None:
    """Scarcity of a launch that was refused with this code and message; None when it was refused for another reason.
    Another type, zone or provider may have what is scarce, so a claim goes on with its next choice."""
    if re.fullmatch(_FULL_SUBNET, code):
        return "addresses"
    if re.fullmatch(_MACHINE_QUOTAS, code):
        return "quota"
    return "capacity" if classify(code, message, 400)[0] is errors.InsufficientCapacity else None


def translate(error: Exception, doing: str) -> errors.VendorError:
    """Our error for one of botocore's. ``doing`` names the service and the call; no parameter is shown."""
    if isinstance(error, boto.ClientError):
        body = error.response.get("Error", {})
        code, message = str(body.get("Code", "")), str(body.get("Message", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
        kind, hint = classify(code, message, status)
        return kind(f"{doing}: {message or code}", code=code, hint=hint)
    name = type(error).__name__
    if isinstance(error, (boto.ConnectTimeoutError, boto.ReadTimeoutError)):
        return errors.VendorTimeout(f"{doing}: no answer in time", code=name)
    if isinstance(error, (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError)):
        return errors.CredentialsRevoked(f"{doing}: no credentials", code=name)
    if isinstance(error, (boto.ParamValidationError, boto.InvalidRegionError)):
        return errors.VendorRefused(f"{doing}: {error}", code=name)
    return errors.VendorUnavailable(f"{doing}: {name}", code=name)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what botocore raises as one of ours."""
    try:
        yield
    # an answer that is not AWS's, as proxies send it, is none of botocore's own errors
    except (boto.ClientError, boto.BotoCoreError, boto.HTTPClientError, ResponseParserError) as error:
        raise translate(error, doing) from error


@contextmanager
def accepting(code: str) -> Iterator[None]:
    """Take the answer ``code``, which says that an earlier try has done it, for success."""
    try:
        yield
    except errors.VendorError as error:
        if error.code != code:
            raise
