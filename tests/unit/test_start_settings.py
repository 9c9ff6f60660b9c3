"""How a container is started: closed, on the loopback, as the caller, as the label remembers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest

from strata.start.options import StartOptions
from strata.start.reference import Reference
from strata.start.services import JUPYTER, SSH, Service
from strata.start.settings import (
    HostFacts,
    ImageFacts,
    Settings,
    decide,
    differences,
    mount,
    run_arguments,
)
from strata.start.user import Identity, choose_user

IMAGE = ImageFacts(
    digest="sha256:aa",
    user=(1000, 1000),
    folder=PurePosixPath("/home/dev/work"),
    ports=frozenset({8888}),
)
OPTIONS = StartOptions(image="lab", work=Path("/data"))
HOST = HostFacts(memory=16 << 30, offers_gpus=False)
CLOSED = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]


def settle(
    options: StartOptions = OPTIONS,
    *,
    host: HostFacts = HOST,
    user: Identity | None = (1000, 1000),
    service: Service | None = JUPYTER,
    keys: tuple[str, ...] = (),
) -> Settings:
    """Decide for the image `lab`."""
    return decide(
        options,
        Reference(text="strata/lab:embedded", short="lab"),
        IMAGE,
        host,
        user=user,
        name="box",
        service=service,
        keys=keys,
    )


def arguments(settings: Settings) -> list[str]:
    """Return the arguments without the labels, which other tests read."""
    found = list(run_arguments(settings))
    while "--label" in found:
        at = found.index("--label")
        del found[at : at + 2]
    return found


def published(settings: Settings) -> list[str]:
    """Return the values of `--publish`."""
    found = run_arguments(settings)
    return [value for flag, value in pairwise(found) if flag == "--publish"]


def test_a_service_is_closed_and_on_the_loopback() -> None:
    """The whole command for the image's own user on a machine without GPU is this."""
    assert arguments(settle()) == [
        *("--name", "box", *CLOSED),
        *("--shm-size", "8192m", "--ulimit", "stack=67108864"),
        *("--mount", "type=bind,source=/data,target=/home/dev/work"),
        *("--publish", "127.0.0.1::8888"),
        "strata/lab:embedded",
    ]


def test_a_command_publishes_nothing_unless_asked() -> None:
    """A command's port is the same on both sides, and it carries no label."""
    assert published(settle(service=None)) == []
    found = settle(replace(OPTIONS, port=6006), service=None)
    assert published(found) == ["127.0.0.1:6006:6006"]
    assert "--label" not in run_arguments(found)


@pytest.mark.parametrize(
    ("port", "is_public", "value"),
    [
        (None, False, "127.0.0.1::8888"),
        (9000, False, "127.0.0.1:9000:8888"),
        (None, True, "8888"),
        (9000, True, "9000:8888"),
    ],
)
def test_ports_are_open_to_the_network_only_when_asked(
    port: int | None, *, is_public: bool, value: str
) -> None:
    """`--public` alone leaves the loopback's address out."""
    assert published(settle(replace(OPTIONS, port=port, is_public=is_public))) == [value]


@pytest.mark.parametrize(
    ("gpus", "offers_gpus", "gets_gpus"),
    [
        ("auto", False, False),
        ("auto", True, True),
        ("none", True, False),
        ("all", False, True),  # the engine will say what it lacks
    ],
)
def test_gpus_are_given_where_there_are_some(
    gpus: str, *, offers_gpus: bool, gets_gpus: bool
) -> None:
    """With them come the memory locks that RDMA needs."""
    host = replace(HOST, offers_gpus=offers_gpus)
    text = " ".join(arguments(settle(replace(OPTIONS, gpus=gpus), host=host)))
    assert ("--gpus all --ulimit memlock=-1" in text) is gets_gpus
    assert ("--gpus" in text) is gets_gpus


def test_gpus_known_by_cdi_alone_are_named_as_devices() -> None:
    """Such an engine has no runtime for `--gpus`; it is no reason to start anew."""
    host = replace(HOST, offers_gpus=True)
    by_cdi = settle(host=replace(host, gives_gpus_by_cdi=True))
    text = " ".join(arguments(by_cdi))
    assert "--device nvidia.com/gpu=all --ulimit memlock=-1" in text
    assert "--gpus" not in text
    assert differences(settle(host=host).label, by_cdi) == ()


def test_another_user_is_named_and_no_more() -> None:
    """The image gives a name by itself; HOME is said, as `docker exec` would have / for it."""
    assert arguments(settle(user=(1234, 56))) == [
        *("--name", "box", *CLOSED),
        *("--shm-size", "8192m", "--ulimit", "stack=67108864"),
        *("--user", "1234:56", "--env", "HOME=/tmp/.strata/home"),
        *("--mount", "type=bind,source=/data,target=/home/dev/work"),
        *("--publish", "127.0.0.1::8888"),
        "strata/lab:embedded",
    ]
    assert "--user" not in arguments(settle(user=None))
    for known in ((1000, 5), (0, 0)):  # these have homes of their own
        assert "--env" not in arguments(settle(user=known))


def test_another_user_can_write_where_it_starts() -> None:
    """Without a work folder it gets one in memory; the image's own user has one already."""
    options = replace(OPTIONS, work=None)
    found = arguments(settle(options, user=(1234, 56)))
    assert found[found.index("--env") :][:4] == [
        *("--env", "HOME=/tmp/.strata/home"),
        *("--tmpfs", "/home/dev/work:exec,uid=1234,gid=56,mode=0755"),
    ]
    assert "--tmpfs" not in arguments(settle(options))


def test_variables_and_keys_are_handed_over() -> None:
    """Each variable byte for byte, all keys in one."""
    found = arguments(
        settle(replace(OPTIONS, env=("FOO=a b=c\nd",)), service=SSH, keys=("key 1", "key 2"))
    )
    assert found[-5:] == [
        *("--env", "FOO=a b=c\nd"),
        *("--env", "STRATA_AUTHORIZED_KEYS=key 1\nkey 2"),
        "strata/lab:embedded",
    ]


def test_shared_memory_and_work_folder_can_be_chosen() -> None:
    """A size is passed on as it is; without a work folder nothing is mounted."""
    found = arguments(settle(replace(OPTIONS, shm="2g", work=None)))
    assert found[found.index("--shm-size") + 1] == "2g"
    assert "--mount" not in found


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("/a b", "type=bind,source=/a b,target=/t"),
        ("/a,b", 'type=bind,"source=/a,b",target=/t'),
        ('/a"b', 'type=bind,"source=/a""b",target=/t'),
        ("/a:b", "type=bind,source=/a:b,target=/t"),
    ],
)
def test_any_path_can_be_mounted(source: str, value: str) -> None:
    """Docker reads `--mount` as CSV."""
    assert mount(source, "/t") == value


def test_a_container_as_wanted_is_used_again() -> None:
    """The same settings differ in nothing, nor does any port where none was asked for."""
    assert differences(settle(user=(7, 7)).label, settle(user=(7, 7))) == ()
    assert differences(settle(replace(OPTIONS, port=9000)).label, settle()) == ()


def test_a_container_started_otherwise_is_named() -> None:
    """Everything that differs is said, with what it was and what it should be."""
    wanted = settle(
        replace(OPTIONS, port=9000, shm="1g", work=Path("/other"), env=("A=1",), is_public=True),
        user=(7, 8),
    )
    assert differences(settle().label, wanted) == (
        "shared memory: 8192m, not 1g",
        "the work folder: /data, not /other",
        "the user: none, not 7:8",
        "--public: False, not True",
        "the port: none, not 9000",
        "variables: none, not A=1",
    )
    newer = replace(wanted, digest="sha256:bb")
    assert differences(wanted.label, newer) == ("the image: sha256:aa, not sha256:bb",)


@pytest.mark.parametrize(
    ("wanted", "caller", "environ", "owner", "user"),
    [
        ((5, 6), (1001, 1001), {}, None, (5, 6)),
        (None, (1001, 1002), {}, (3, 3), (1001, 1002)),
        (None, (0, 0), {"SUDO_UID": "1001", "SUDO_GID": "1002"}, (3, 3), (1001, 1002)),
        (None, (0, 0), {"SUDO_UID": "0", "SUDO_GID": "0"}, (3, 4), (3, 4)),
        (None, (0, 0), {}, (3, 4), (3, 4)),
        (None, (0, 0), {}, (0, 0), None),
        (None, (0, 0), {}, None, None),
        ((0, 0), (0, 0), {}, None, (0, 0)),
    ],
)
def test_nobody_becomes_root_unasked(
    wanted: Identity | None,
    caller: Identity,
    environ: dict[str, str],
    owner: Identity | None,
    user: Identity | None,
) -> None:
    """The caller, whoever called sudo, the folder's owner, or the image's user: in this order."""
    assert choose_user(wanted, caller, environ, owner) == user
