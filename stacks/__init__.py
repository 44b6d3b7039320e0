"""The CDK app: two stacks per stage, three with CloudFront. The names of all resources are in ``names``."""

import sys
from pathlib import Path

# The workflow documents are made from the product's table of phases, which is a part of the functions' common layer.
sys.path.append(str(Path(__file__).resolve().parents[1] / "layers" / "common" / "python"))
