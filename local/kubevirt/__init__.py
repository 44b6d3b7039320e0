"""KubeVirt as a host of machines has it: what its API refuses, and what its controllers do."""

from local.kubevirt.admission import virtual_machine_faults
from local.kubevirt.controllers import VirtControllers
from local.kubevirt.kinds import DATA_VOLUMES, kinds

__all__ = ["DATA_VOLUMES", "VirtControllers", "kinds", "virtual_machine_faults"]
