"""List prices of AWS in us-east-1, in USD, without any free tier.

The EC2 prices are those of the offline catalogue (on-demand, July 2026). DynamoDB, alarms, dashboards and logs were
compared with published articles on the date below; the others are the public list prices as they were known then, and
``make cost`` is no better than they are. Whoever changes one changes the date.
"""

from __future__ import annotations

AS_OF = "2026-11-29"
REGION = "us-east-1"
SOURCE = "public list prices"

HOURS = 730
"""Hours in a month, as AWS counts."""

HTTP_API_REQUEST = 1.00 / 1e6
"""Of API Gateway's HTTP APIs, up to 512 KB."""
LAMBDA_REQUEST = 0.20 / 1e6
LAMBDA_ARM_GB_SECOND = 0.0000133334
DYNAMODB_READ = 0.125 / 1e6
"""A strongly consistent read of up to 4 KB."""
DYNAMODB_WRITE = 0.625 / 1e6
"""A write of up to 1 KB; a transaction counts twice."""
DYNAMODB_STORAGE_GB = 0.25
DYNAMODB_BACKUP_GB = 0.20
STEP_FUNCTIONS_TRANSITION = 0.025 / 1e3
SECRET = 0.40
SECRET_CALL = 0.05 / 1e4
KMS_KEY = 1.00
KMS_CALL = 0.03 / 1e4
ALARM = 0.10
METRIC = 0.30
DASHBOARD = 3.00
EVENT = 1.00 / 1e6
LOGS_GB = 0.50
LOGS_STORED_GB = 0.03
TRACE = 5.00 / 1e6
ASSET_STORED_GB = 0.023
WAF_WEB_ACL = 5.00
WAF_RULE = 1.00
"""A rule of a web ACL, or a group of AWS's own rules."""
WAF_REQUEST = 0.60 / 1e6
CLOUDFRONT_REQUEST = 0.01 / 1e4
"""By https, in North America and Europe; ten million a month are free of charge."""

FREE_ALARMS = 10
FREE_METRICS = 10
FREE_DASHBOARDS = 3
FREE_LAMBDA_GB_SECONDS = 400_000
FREE_LAMBDA_REQUESTS = 1_000_000
FREE_TRACES = 100_000
"""The parts of the free tier that never end."""

T3_MEDIUM_HOUR = 0.0416
M6I_XLARGE_HOUR = 0.192
EKS_HOUR = 0.10
GP3_GB = 0.08
EBS_SNAPSHOT_GB = 0.05
NAT_GATEWAY_HOUR = 0.045
NAT_GATEWAY_GB = 0.045
ZONE_GB = 0.01
"""Of data that goes to another zone, in each direction."""
CONFIG_ITEM = 0.003
"""Of AWS Config, recorded as it changes."""
LOAD_BALANCER_HOUR = 0.0225
PUBLIC_IPV4_HOUR = 0.005
"""What a cluster costs in the tenant's own account."""
