"""What a container starts with: any user, hooks, and no time lost (bin/entry)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.e2e.jupyterclient import start_jupyter
from tests.e2e.sshclient import Client, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Boxes

START = "/opt/strata/start.d"
WHO = (
    'id -un; echo "$(id -u):$(id -g)"; whoami; touch ~/mine && stat -c %u:%g ~/mine;'
    " python -c 'import getpass, os; print(getpass.getuser(), os.path.expanduser(\"~\"))'"
)
CLOSED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")  # noqa: S108
NO_PRIVILEGES = ("--security-opt", "no-new-privileges")
OWN, FALLBACK = "/home/dev", "/tmp/.strata/home"  # noqa: S108
# Known and unknown numbers, of people, of the system's (33 has a home that isn't there), and root's
# group, which `--user UID` alone gives.
USERS = {
    "1000:1000": OWN,
    "1000:5": OWN,
    "33:33": FALLBACK,
    "400:7": FALLBACK,
    "501:20": FALLBACK,
    "12345:54321": FALLBACK,
    "2000000:0": FALLBACK,
}


@pytest.mark.parametrize("user", USERS)
def test_any_user(boxes: Boxes, user: str) -> None:
    """Whatever the numbers are, one is dev, with a home to write to."""
    done = boxes.once("slim", "--user", user, command=("sh", "-c", WHO))
    assert (done.code, done.err) == (0, "")
    wanted = ["dev", user, "dev", user, "dev", USERS[user]]
    assert done.out.split() == wanted


def test_closed(boxes: Boxes) -> None:
    """That is so where all is closed, too."""
    options = (*CLOSED, *NO_PRIVILEGES, "--user", "12345:54321")
    done = boxes.once("slim", *options, command=("sh", "-c", WHO))
    assert (done.code, done.err) == (0, "")
    assert done.out.split()[-1] == FALLBACK


def test_nowhere_to_write(boxes: Boxes) -> None:
    """Where nothing can be written, that is said with its fix, and the command runs."""
    done = boxes.once("slim", "--read-only", "--user", "12345:1", command=("echo", "ran"))
    assert (done.code, done.out) == (0, "ran")
    fix = "strata: user 12345 has no place to write to; fix: --tmpfs /tmp\n"
    assert done.err.endswith(fix)


def test_own_home_and_work(boxes: Boxes, tmp_path: Path) -> None:
    """A mounted home of one's own is home; new files are one's own, others' stay theirs."""
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
        os.chown(folder, 12345, 54321)
    theirs = work / "theirs"
    theirs.write_text("")
    os.chown(theirs, 777, 778)
    mounts = ("--volume", f"{home}:/home/dev", "--volume", f"{work}:/home/dev/work")
    script = "echo $HOME; touch ~/mine mine"
    done = boxes.once("slim", "--user", "12345:54321", *mounts, command=("sh", "-c", script))
    assert (done.code, done.out, done.err) == (0, "/home/dev", "")
    owners = {file.name: file.stat().st_uid for file in (home / "mine", work / "mine", theirs)}
    assert owners == {"mine": 12345, "theirs": 777}
    assert (work / "mine").stat().st_gid == 54321


def test_root_stays_root(boxes: Boxes) -> None:
    """Whoever asks for root, as for apt-get, is root, and leaves no account behind."""
    script = "id -un; echo $HOME; ls -d /tmp/.strata 2>/dev/null || echo none"
    done = boxes.once("slim", "--user", "0", command=("sh", "-c", script))
    assert done.out.split() == ["root", "/root", "none"]


def test_hooks(boxes: Boxes, tmp_path: Path) -> None:
    """Hooks run in the order of their names, and set variables; stdin and stdout are not theirs."""
    (tmp_path / "20-b.sh").write_text('export SEEN="$SEEN b"; cat\n')
    (tmp_path / "10-a.sh").write_text('echo noise; export SEEN="a $name"\n')
    (tmp_path / "30-no.txt").write_text("exit 9\n")
    tmp_path.chmod(0o755)
    mount = ("--volume", f"{tmp_path}:{START}:ro", "--env", "name=é\nn", "--interactive")
    done = boxes.once("slim", *mount, command=("sh", "-c", 'printf "%s" "$SEEN"; exit 3'))
    assert (done.code, done.out, done.err) == (3, "a é\nn b", "noise\n")


def test_failing_hook(boxes: Boxes, tmp_path: Path) -> None:
    """A hook that fails is named, and its exit code is the container's; nothing else starts."""
    (tmp_path / "fails.sh").write_text("(exit 7)\necho not reached\n")
    tmp_path.chmod(0o755)
    done = boxes.once("slim", "--volume", f"{tmp_path}:{START}:ro", command=("echo", "ran"))
    assert (done.code, done.out, done.err) == (7, "", f"strata: {START}/fails.sh failed\n")


def test_hook_that_exits(boxes: Boxes, tmp_path: Path) -> None:
    """A hook that ends the entry with 0 is a failure: the command has not run."""
    (tmp_path / "ends.sh").write_text("exit 0\n")
    tmp_path.chmod(0o755)
    done = boxes.once("slim", "--volume", f"{tmp_path}:{START}:ro", command=("echo", "ran"))
    assert (done.code, done.out, done.err) == (70, "", f"strata: {START}/ends.sh failed\n")


def test_names_of_another_user(boxes: Boxes, tmp_path: Path) -> None:
    """In a shared /tmp nobody's list of names is taken for another's: that is refused, and said."""
    tmp_path.chmod(0o1777)
    shared = ("--volume", f"{tmp_path}:/tmp")
    first = boxes.once("slim", *shared, "--user", "12345:1", command=("id", "-un"))
    assert (first.code, first.out) == (0, "dev")
    second = boxes.once("slim", *shared, "--user", "12346:1", command=("echo", "ran"))
    said = "strata: /tmp/.strata is another user's; fix: a /tmp for each user's containers\n"
    assert (second.code, second.out, second.err) == (78, "", said)


def test_services_with_own_home_and_work(boxes: Boxes, tmp_path: Path) -> None:
    """With a home and a work folder of one's own, what SSH and Jupyter write is one's own."""
    key = make_key(tmp_path, "ada")
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
        os.chown(folder, 12345, 54321)
    server = start_jupyter(
        boxes,
        "dev",
        *("--user", "12345:54321", "--publish", "127.0.0.1::2222"),
        *("--volume", f"{home}:/home/dev", "--volume", f"{work}:/home/dev/work"),
        *("--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro"),
        *("--env", "JUPYTER_TOKEN=open"),
        token="open",  # noqa: S106 - of this container
    )
    server.cells("open('cell', 'w').close()", "!touch ~/cell")
    assert Client(wait_for_ssh(server.box), key).run("touch session ~/session").code == 0
    made = [folder / name for folder in (home, work) for name in ("cell", "session")]
    found = [(file.stat().st_uid, file.stat().st_gid) for file in made]
    assert found == [(12345, 54321)] * 4


def test_starting_is_quick(boxes: Boxes) -> None:
    """The entry takes less than 0.3 s, also for a user whom the image doesn't know."""
    program = (
        "import subprocess, time; start = time.monotonic();"
        "[subprocess.run(['/opt/strata/bin/entry', 'true'], check=True) for _ in range(5)];"
        "print((time.monotonic() - start) / 5)"
    )
    done = boxes.once("slim", "--user", "12345:1", command=("python", "-c", program))
    assert float(done.out) < 0.3
