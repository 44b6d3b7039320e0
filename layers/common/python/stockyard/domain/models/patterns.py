"""Patterns of texts, each with the words that say what it wants."""

from __future__ import annotations

LABEL = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"
CIDR = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"
NAME = r"^[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?$"
REGION = r"^[a-z]{2,8}(-[a-z]{2,12}){1,3}-[0-9]{1,2}$"
INSTANCE_TYPE = r"^[a-z][a-z0-9-]{0,30}\.[a-z0-9-]{1,30}$"
KEY_PAIR = r"^[!-~]([ -~]{0,253}[!-~])?$"
VPC = r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$"
SUBNET = r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$"
DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
TYPE_GLOB = r"^[a-z0-9*?][a-z0-9*?.-]{0,62}$"
ALLOWED_TYPE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.(\*|[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?)$"
DURATION = r"^([0-9]{1,9}(s|m|h)){1,3}$"
DURATION_OR_NEVER = r"^(([0-9]{1,9}(s|m|h)){1,3}|Never)$"
SECURITY_GROUP = r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$"
IMAGE = r"^ami-([0-9a-f]{8}|[0-9a-f]{17})$"
INSTANCE_PROFILE = r"^[A-Za-z0-9_+=,.@-]{1,128}$"
ROLE_ARN = r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,512}$"

WORDS = {
    LABEL: "1 to 63 letters, digits, - _ . starting and ending with a letter or digit",
    NAME: "1 to 128 letters, digits and hyphens, starting and ending with a letter or digit",
    DNS_LABEL: "1 to 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit",
    TYPE_GLOB: "an EC2 instance type, in which * and ? stand for other characters, such as m6i.*",
    ALLOWED_TYPE: "the canonical name of a node type, provider.type, or provider.* for all of a provider",
    DURATION: "a duration such as 30s, 5m or 1h30m",
    DURATION_OR_NEVER: "a duration such as 30s, 5m or 1h30m, or Never",
    SECURITY_GROUP: "the id of a security group: sg- and 8 or 17 hexadecimal digits",
    IMAGE: "the id of a machine image: ami- and 8 or 17 hexadecimal digits",
    INSTANCE_PROFILE: "the name of an instance profile",
    REGION: "an AWS region such as us-east-1",
    INSTANCE_TYPE: "an EC2 instance type such as t3.xlarge",
    KEY_PAIR: "the name of an EC2 key pair: printable ASCII characters, no space at the ends",
    VPC: "the id of a VPC: vpc- and 8 or 17 hexadecimal digits",
    SUBNET: "the id of a subnet: subnet- and 8 or 17 hexadecimal digits",
    ROLE_ARN: "the ARN of an IAM role, arn:aws:iam::<account>:role/<name>",
}
"""What a text must be, by its pattern."""
