"""Labels of nodes on Cudo that are Cudo's own, by which requirements choose."""

from __future__ import annotations

_OWN = "cudocompute.com"
MACHINE_TYPE, GPU_MODEL = f"{_OWN}/machine-type", f"{_OWN}/gpu-model"
VCPUS_LABEL, MEMORY_GIB, GPUS_LABEL = f"{_OWN}/vcpus", f"{_OWN}/memory-gib", f"{_OWN}/gpus"
GPU = "nvidia.com/gpu"
"""The extended resource of GPUs, as NVIDIA's device plugin gives it to a node."""
