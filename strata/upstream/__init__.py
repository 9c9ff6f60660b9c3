"""The upstreams room: what comes from channels, registries and sites, and by which mirror."""
