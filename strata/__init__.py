"""strata: builds, proves and publishes container images for multi-GPU PyTorch training."""
