"""The embedded variant: a conda channel made on the spot from pinned Python wheels."""
