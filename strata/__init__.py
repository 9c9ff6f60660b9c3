"""strata: builds, proves and publishes container images for multi-GPU PyTorch training."""

__version__ = "0.1.0"
