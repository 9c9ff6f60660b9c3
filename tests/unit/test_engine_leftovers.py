"""Telling an engine's processes and mounts from everybody else's."""

from pathlib import Path

from strata.engine.leftovers import groups_of, is_ours, mounts_under, stands_on

RUN = Path("/run/strata-1")
DATA = Path("/home/me/my project/build/engine")
OVERLAY = "36 25 0:32 / / rw - overlay overlay rw,lowerdir=l,upperdir={data}/containerd/1/fs\n"


def test_an_engines_own_programs_are_known_by_their_run_folder() -> None:
    """Daemons and shims are ours when they were told to use our folder."""
    assert is_ours(("/usr/sbin/dockerd", "--config-file", "/run/strata-1/daemon.json"), RUN)
    shim = ("/usr/bin/containerd-shim-runc-v2", "-id", "x", "-address", f"{RUN}/containerd.sock")
    assert is_ours(shim, RUN)


def test_nobody_elses_programs_are_ours() -> None:
    """Another engine, a client of ours and a reader of our files are never ended."""
    assert not is_ours(("dockerd", "--config-file", "/run/strata-12/daemon.json"), RUN)
    assert not is_ours(("dockerd",), RUN)
    assert not is_ours(("docker", "-H", "unix:///run/strata-1/docker.sock", "ps"), RUN)
    assert not is_ours(("tail", "-f", "/run/strata-1/daemon.json"), RUN)
    assert not is_ours((), RUN)


def test_a_containers_process_is_known_by_its_root() -> None:
    """A process stands on our layers when its root is an overlay with an upper folder of ours."""
    assert stands_on(OVERLAY.format(data=r"/home/me/my\040project/build/engine"), DATA)
    assert not stands_on(OVERLAY.format(data=r"/home/me/my\040project/build/engine2"), DATA)


def test_a_process_of_the_host_is_not_a_containers() -> None:
    """The host sees our overlays as mounts, but does not stand on them."""
    host = "25 1 254:0 / / rw - ext4 /dev/vda rw\n" + OVERLAY.replace(" / / ", " / /mnt/x ").format(
        data=r"/home/me/my\040project/build/engine"
    )
    assert not stands_on(host, DATA)


def test_mounts_are_undone_from_the_inside_out() -> None:
    """Only mounts below our folders are listed, the deepest first, with plain names."""
    lines = ("/run/strata-1/docker", "/run/strata-1/docker/netns/a", "/run/strata-12/docker")
    table = "".join(f"1 2 0:3 / {point} rw - tmpfs tmpfs rw\n" for point in lines)
    table += "1 2 0:3 / /home/me/my\\040project/build/engine/m rw - tmpfs tmpfs rw\n"
    found = mounts_under(table, (RUN, DATA))
    assert set(found) == {RUN / "docker", RUN / "docker/netns/a", DATA / "m"}
    assert found.index(RUN / "docker/netns/a") < found.index(RUN / "docker")


def test_control_groups_are_known_by_the_containers_id() -> None:
    """Both of Docker's ways to name a group are found, with what is inside; others are not."""
    ours, other = "a" * 64, "b" * 64
    groups = [
        Path(f"/sys/fs/cgroup/{name}")
        for name in (
            f"cpu/docker/{ours}/init",
            f"cpu/docker/{ours}",
            f"cpu/docker/{other}",
            f"system.slice/docker-{ours}.scope",
            "cpu/docker",
        )
    ]
    assert groups_of((ours,), groups) == [groups[0], groups[1], groups[3]]
    assert groups_of((), groups) == []
