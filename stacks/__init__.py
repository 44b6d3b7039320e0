"""The CDK app: two stacks a stage. Composition only; what things are called is in ``names``."""
