"""CloudFormation's life of custom resources on one machine, as strict as its documentation.

``Runner`` deploys, changes and deletes stacks of a template whose custom resources are served by functions: requests of
the three types, physical ids and replacement, response URLs that take one answer, time-outs and rollbacks. ``Provider``
stands between them as the provider framework of the CDK does.
"""

from local.cloudformation.answers import Answer, AnswerError
from local.cloudformation.framework import Fault, Provider
from local.cloudformation.runner import Deployed, Runner, StackFailed
from local.cloudformation.templates import custom_resources

__all__ = [
    "Answer",
    "AnswerError",
    "Deployed",
    "Fault",
    "Provider",
    "Runner",
    "StackFailed",
    "custom_resources",
]
