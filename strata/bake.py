"""The bake file: one target a step that is to be built, as `docker buildx bake` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strata.model import BootstrapBase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from strata.plan import Plan, Step

BASE_TARGET = "base"
# The engine's containerd store keeps these very blobs: a push sends them as they are.
OUTPUT = "type=image,compression=zstd,compression-level=3,oci-mediatypes=true"
NOTHING = "type=cacheonly"


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """Folders that Dockerfiles mount by name.

    `tools` holds settle, lay and the installer; `rattler` the unpacked wheel
    that the installer runs on; `base` the folder with the base's Dockerfile and
    tarball; `installer` the folder with Miniconda's, as miniconda.sh; `steps`
    each step's own `env` (packages, slice and manifest).
    """

    tools: Path
    rattler: Path
    base: Path
    installer: Path
    steps: Mapping[str, Path]


def render_bake(
    plan: Plan,
    build: Collection[str],
    root: Path,
    contexts: Contexts,
    base_ref: str | None,
    *,
    relay: str = "",
    dry: bool = False,
) -> dict[str, Any]:
    """Return the bake file for the steps named in `build`.

    A step whose image is there already is not among them: its children name
    that image as their parent.  `base_ref` is where the base comes from
    (`docker-image://…`, `oci-layout://…`) unless it is made on the spot, and so
    a target of its own.  `relay` is the name of the environment variable that
    holds the proxy for the steps' commands, if they have one.  A `dry` build
    runs every command, and keeps nothing.
    """
    targets: dict[str, Any] = {}
    epoch = str(plan.variant.epoch)
    for step in plan.steps:
        if step.name not in build:
            continue
        targets[step.name] = {
            "context": str(step.layer.folder),
            "dockerfile": "Dockerfile",
            "contexts": _contexts(step, build, root, contexts, base_ref),
            "args": _literal({"SOURCE_DATE_EPOCH": epoch, **step.args}),
            "labels": _literal(step.labels),
            "platforms": [plan.platform],
            "tags": [step.ref, *(i.ref for i in plan.images if i.step is step)],
            "output": [OUTPUT],
        }
        if relay:  # a template, which bake fills in: the bake file holds no password
            targets[step.name]["args"]["http_proxy"] = f"${{{relay}}}"
            targets[step.name]["args"]["https_proxy"] = f"${{{relay}}}"
        if dry:
            targets[step.name] |= {"tags": [], "output": [NOTHING], "no-cache": True}
    if isinstance(plan.variant.base, BootstrapBase) and any(
        f"target:{BASE_TARGET}" == t["contexts"]["parent"] for t in targets.values()
    ):
        targets[BASE_TARGET] = {
            "context": str(contexts.base),
            "args": {"SOURCE_DATE_EPOCH": epoch},
            "platforms": [plan.platform],
            "output": [NOTHING],
        }
    wanted = [name for name in targets if name != BASE_TARGET]
    bake: dict[str, Any] = {"group": {"default": {"targets": wanted}}, "target": targets}
    if relay:
        bake["variable"] = {relay: {"default": ""}}
    return bake


def _contexts(
    step: Step, build: Collection[str], root: Path, contexts: Contexts, base_ref: str | None
) -> dict[str, str]:
    """Return what a step's Dockerfile finds under which name."""
    if step.parent is None:
        parent = base_ref or f"target:{BASE_TARGET}"
    elif step.parent.name in build:
        parent = f"target:{step.parent.name}"
    else:
        parent = f"docker-image://{step.parent.ref}"
    named = {"parent": parent, "tools": str(contexts.tools)}
    if step.layer.category:
        named |= {"rattler": str(contexts.rattler), "env": str(contexts.steps[step.name])}
    if step.layer.installer:
        named["installer"] = str(contexts.installer)
    for folder in step.layer.contexts:
        named[folder.rsplit("/", 1)[-1]] = str(root / folder)
    return named


def _literal(values: Mapping[str, str]) -> dict[str, str]:
    """Return texts that bake takes as they are: in its JSON, `${` and `%{` begin templates."""
    return {k: v.replace("${", "$${").replace("%{", "%%{") for k, v in values.items()}
