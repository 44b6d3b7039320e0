"""Handler of Stockyard's custom resources in CloudFormation, behind the provider framework of the CDK.

It runs as a Lambda function with nothing but the standard library and boto3. ``on_event`` only says which resource a
request is about; each effect is of ``is_complete``, which is called again and again and brings the resource one step
nearer to what the stack wants, whoever has begun it.
"""

from stockyard_stack_resources.handler import is_complete, on_event

__all__ = ["is_complete", "on_event"]
