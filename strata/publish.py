"""Sends the images whose checks passed to a registry, and makes sure that they arrived."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.credentials import read_credentials
from strata.errors import Problem, PublishError
from strata.pusher import Pusher, engine_info, local_id
from strata.registry import PUSH, Registry, is_plain_http
from strata.tags import parse_registry, repository, validate_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from docker import DockerClient


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A built image whose checks passed.

    `local_ref` is how the engine finds it, `digest` the image digest that was
    checked: in the containerd image store both its id and its manifest digest.
    """

    image: str
    variant: str
    local_ref: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """An image in a registry, as the registry itself confirmed it."""

    image: str
    variant: str
    digest: str
    reference: str  # HOST/OWNER/NAME:TAG@sha256:...
    moving: str  # HOST/OWNER/NAME:MOVING
    was_there: bool  # the immutable tag, before this push


@dataclass(frozen=True, kw_only=True)
class _Target:
    candidate: Candidate
    repository: str


def push_images(
    engine_env: Mapping[str, str],
    client: DockerClient,
    candidates: Sequence[Candidate],
    *,
    registry: str,
    tag: str,
    moving_tag: str,
    dry_run: bool,
    log: Callable[[str], None],
) -> list[Pushed]:
    """Push every candidate under `tag`, confirm them all, and then move `moving_tag`.

    `registry` is `HOST[:PORT]/OWNER`.  `engine_env` is what the engine's clients
    get on top of our environment; it says where `docker login` keeps credentials.
    `tag` is never overwritten: where the registry has it with the same digest
    there is nothing to push, with another one nothing is pushed at all.  A
    failure before the last image is confirmed leaves every moving tag where it
    was.  With `dry_run` the registry is only read, and
    nothing is returned.

    Raises `DefinitionError` for an invalid registry, name or tag, and
    `PublishError` for everything that goes wrong on the way.
    """
    validate_tag(tag)
    validate_tag(moving_tag)
    host = parse_registry(registry).host
    targets = [
        _Target(candidate=candidate, repository=repository(registry, candidate.image))
        for candidate in candidates
    ]
    _refuse_ambiguous(targets, tag)
    _refuse_missing(client, targets)
    credentials = read_credentials(host, {**os.environ, **engine_env})
    pusher = Pusher(client=client, credentials=credentials, log=log)
    plain_http = is_plain_http(host, engine_info(client))
    with closing(Registry(host, credentials, plain_http=plain_http, actions=PUSH)) as remote:
        there = _refuse_overwriting(remote, targets, tag)
        for target in targets:
            reference = f"{target.repository}:{tag}"
            if target in there:
                log(f"{reference} is there already")
            elif dry_run:
                log(f"would push {reference}@{target.candidate.digest}")
            else:
                pusher.push(target.candidate.digest, target.repository, tag)
        if dry_run:
            for target in targets:
                log(f"would move {target.repository}:{moving_tag}")
            return []
        _confirm(remote, targets, tag)
        _move(pusher, remote, targets, moving_tag)
    return [
        Pushed(
            image=target.candidate.image,
            variant=target.candidate.variant,
            digest=target.candidate.digest,
            reference=f"{target.repository}:{tag}@{target.candidate.digest}",
            moving=f"{target.repository}:{moving_tag}",
            was_there=target in there,
        )
        for target in targets
    ]


def _refuse_ambiguous(targets: Sequence[_Target], tag: str) -> None:
    if not targets:
        raise PublishError.at(
            "push", "there is no image to push", "./inv build makes and checks the images"
        )
    seen: dict[str, _Target] = {}
    for target in targets:
        if seen.setdefault(target.repository, target) != target:
            raise PublishError.at(
                f"{target.repository}:{tag}",
                f"two images want this tag: {seen[target.repository].candidate.local_ref} and "
                f"{target.candidate.local_ref}",
                "push one variant at a time: --variant V",
            )


def _refuse_missing(client: DockerClient, targets: Sequence[_Target]) -> None:
    """Refuse all images that the engine lacks, or has with another digest than was checked."""
    problems = []
    for target in targets:
        candidate = target.candidate
        found = local_id(client, candidate.local_ref)
        if found != candidate.digest:
            what = (
                "there is no such image in the engine's store"
                if found is None
                else f"it is {found} now, and {candidate.digest} was checked"
            )
            fix = f"./inv build --image {candidate.image} --variant {candidate.variant}"
            problems.append(Problem(where=candidate.local_ref, what=what, fix=fix))
    if problems:
        raise PublishError(*problems)


def _refuse_overwriting(
    remote: Registry, targets: Sequence[_Target], tag: str
) -> frozenset[_Target]:
    """Return the targets whose tag is there with their digest; refuse any other digest."""
    found = {target: remote.digest(target.repository, tag) for target in targets}
    problems = [
        Problem(
            where=f"{target.repository}:{tag}",
            what=f"it is there with another digest, {digest}, and is never overwritten "
            f"(this one is {target.candidate.digest})",
            fix="pull that one, or commit a change and build: the tag names the day and the commit",
        )
        for target, digest in found.items()
        if digest not in (None, target.candidate.digest)
    ]
    if problems:
        raise PublishError(*problems)
    return frozenset(target for target, digest in found.items() if digest is not None)


def _confirm(remote: Registry, targets: Sequence[_Target], tag: str) -> None:
    """Ask the registry for what `tag` is now, and refuse anything but what was checked."""
    problems = []
    for target in targets:
        digest = remote.digest(target.repository, tag)
        if digest != target.candidate.digest:
            has = f"has {digest}" if digest else "does not have it"
            problems.append(
                Problem(
                    where=f"{target.repository}:{tag}",
                    what=f"after the push the registry {has}, not {target.candidate.digest}",
                    fix="see whether someone else pushed at the same time; use the engine's "
                    "containerd image store, which pushes images as they are",
                )
            )
    if problems:
        raise PublishError(*problems)


def _move(pusher: Pusher, remote: Registry, targets: Sequence[_Target], moving_tag: str) -> None:
    moved: list[str] = []
    try:
        for target in targets:
            if remote.digest(target.repository, moving_tag) != target.candidate.digest:
                pusher.push(target.candidate.digest, target.repository, moving_tag)
                _confirm(remote, [target], moving_tag)
            moved.append(target.repository)
    except PublishError as failure:
        stayed = [target.repository for target in targets[len(moved) :]]
        raise PublishError(
            *failure.problems,
            Problem(
                where=f"tag {moving_tag}",
                what=f"moved: {', '.join(moved) or 'none'}; not moved: {', '.join(stayed)}",
                fix="all images are there under the immutable tag: push again to move the rest",
            ),
        ) from None
