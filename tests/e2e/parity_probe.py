"""Prints what a door shows, as one line of JSON; runs in the container, in Python or Jupyter."""

import json
import locale
import os
import resource
import shutil
import sys

KINDS = (
    *("_C", "CONDA_", "CUDA_", "GIT_", "GIVEN_", "LC_"),
    *("NCCL_", "NVIDIA_", "OMP_", "PYTHON", "REQUESTS_", "SSL_"),
)
NAMES = {"BASH_ENV", "HOSTNAME", "LANG", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "SHELL", "TZ"}
PROGRAMS = ("python", "pip", "torchrun", "conda", "ddp-check", "ssh", "curl")

locale.setlocale(locale.LC_ALL, "")
umask = os.umask(0o022)
os.umask(umask)
limits = (name for name in dir(resource) if name.startswith("RLIMIT_"))
facts = {
    "env": {k: v for k, v in os.environ.items() if k.startswith(KINDS) or k in NAMES},
    "prefix": sys.prefix,
    "which": {name: shutil.which(name) for name in PROGRAMS},
    "locale": [".".join(map(str, locale.getlocale())), sys.stdout.encoding.lower()],
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
    "umask": umask,
    "folder": os.getcwd(),  # noqa: PTH109 - as simple as it gets
    "who": [os.getuid(), os.getgid(), os.getgroups()],
}
print("\n" + json.dumps(facts, sort_keys=True))
