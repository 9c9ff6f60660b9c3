"""What ddp-check finds in a container that is not as it should be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.boxes import Boxes

# No name resolves here, not even this host's.  The two checks end at their first
# failing phase.  The second one finds a NumPy that says to be another, as after a
# `pip install` over the image's own, and no NetworkX any more.
SCRIPT = """
: > /etc/hosts
ddp-check --json
pip uninstall --yes --quiet --root-user-action ignore networkx
cd /opt/env/lib/python3*/site-packages
sed -i 's/^Version: .*/Version: 1.26.4/' numpy-*.dist-info/METADATA
ddp-check --json
"""


def documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents that follow each other."""
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        document, end = decoder.raw_decode(text.strip())
        found.append(document)
        text = text.strip()[end:]
    return found


def test_small_shared_memory_and_changed_packages_are_found(boxes: Boxes) -> None:
    """Docker's 64 MiB of shared memory, with the remedy (D1); changed packages, by name (C8).

    And ranks come together without a name that resolves.
    """
    options = ("--user", "0", "--network", "none")
    done = boxes.once("slim", *options, command=("sh", "-c", SCRIPT))
    assert done.code == 6
    small, changed = documents(done.out)
    assert small["facts"]["manifest"]["agrees"] is True
    failed = {
        phase["name"]: phase["reason"] for phase in small["phases"] if phase["outcome"] == "fail"
    }
    assert list(failed) == ["memory"]
    assert [phase["outcome"] for phase in small["phases"][:2]] == ["pass", "pass"]
    assert "/dev/shm has 64 MiB free; 2 ranks" in failed["memory"]  # noqa: S108 - a text
    assert "--shm-size 1g" in failed["memory"]
    assert changed["facts"]["manifest"]["agrees"] is False
    assert changed["phases"][0]["outcome"] == "fail"
    networkx, numpy = sorted(changed["facts"]["manifest"]["disagreements"])
    assert networkx.startswith("networkx is not whole (lib/python3")
    assert numpy.startswith("numpy is 1.26.4, the manifest says 2.")
    assert all(said in changed["phases"][0]["reason"] for said in (networkx, numpy))
