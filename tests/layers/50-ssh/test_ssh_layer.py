"""The SSH server before anybody logs in: no key, strict settings, clear refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

PRINT_SETTINGS = """
folder=$(mktemp -d)
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
/usr/sbin/sshd -T -f /etc/strata/sshd_config -h "$folder/key"
"""
MEANT = {
    "port 2222",
    "authenticationmethods publickey",
    "pubkeyauthentication yes",
    "passwordauthentication no",
    "kbdinteractiveauthentication no",
    "permitemptypasswords no",
    "hostbasedauthentication no",
    "gssapiauthentication no",
    "permitrootlogin no",
    "permituserenvironment no",
    "allowagentforwarding no",
    "x11forwarding no",
    "permittunnel no",
    "gatewayports no",
    "strictmodes no",
    "usepam no",
    "printmotd no",
    "banner none",
}
SERVICE = "/opt/strata/services/ssh"
STATE = "STRATA_SSH_DIR=$(mktemp -d)"


def test_settings(layer: Layer) -> None:
    """The server, run by the user, understands its settings as they are meant."""
    settings = layer.lines(PRINT_SETTINGS)
    assert set(settings) >= MEANT


def test_nothing_more(layer: Layer) -> None:
    """The server listens on 2222 alone and accepts no variable that a client sends."""
    settings = layer.lines(PRINT_SETTINGS)
    assert [line for line in settings if line.startswith("port ")] == ["port 2222"]
    assert [line for line in settings if line.startswith("acceptenv")] == []


def test_no_key_in_the_image(layer: Layer) -> None:
    """No host key, private key or list of authorised keys is in the image (case S4)."""
    names = ("ssh_host_*", "host_ed25519*", "host_rsa*", "authorized_keys", "id_*sa", "id_*9")
    wanted = " -o ".join(f"-name '{name}'" for name in names)
    found_names = layer.find(rf"! -path '/tmp/*' \( {wanted} \)")
    assert found_names == []
    found = layer.host.run("grep -rIl -- '^-----BEGIN .*PRIVATE KEY-----' /etc /home /opt/strata")
    assert found.stdout == ""


def test_no_key_given(layer: Layer) -> None:
    """Without a public key the service ends with 78 and says what to give it."""
    done = layer.host.run(f"{STATE} {SERVICE}")
    assert (done.rc, done.stdout) == (78, "")
    assert done.stderr.startswith("ssh: no public key to let in; fix: docker run -v ")
    assert "/etc/strata/authorized_keys" in done.stderr


def test_only_broken_keys_given(layer: Layer) -> None:
    """A key that is none is named, and where there is no other the service ends with 78."""
    done = layer.host.run(f"STRATA_AUTHORIZED_KEYS='ssh-ed25519 AAAAbroken ada' {STATE} {SERVICE}")
    assert done.rc == 78
    assert "ssh: left out, not a public key: ssh-ed25519 AAAAbroken ada\n" in done.stderr


def test_algorithms(layer: Layer) -> None:
    """No SHA-1, no NIST curve, no CBC and no 64-bit tag is offered; what all clients have, is."""
    settings = dict(line.split(" ", 1) for line in layer.lines(PRINT_SETTINGS) if " " in line)
    kinds = ("ciphers", "macs", "kexalgorithms", "hostkeyalgorithms", "pubkeyacceptedalgorithms")
    offered = {kind: settings[kind].split(",") for kind in kinds}
    flat = [name for kind in ("ciphers", "macs", "kexalgorithms") for name in offered[kind]]
    weak = ("sha1", "md5", "nistp", "cbc", "umac-64", "group14", "3des")
    assert [name for name in flat if any(word in name for word in weak)] == []
    assert not {"ssh-rsa", "ssh-dss"} & {*offered[kinds[3]], *offered[kinds[4]]}
    assert "curve25519-sha256" in offered["kexalgorithms"]
    assert {"ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"} <= set(offered["hostkeyalgorithms"])
    assert {"aes256-gcm@openssh.com", "aes128-ctr"} <= set(offered["ciphers"])
    assert {"hmac-sha2-256-etm@openssh.com", "hmac-sha2-256"} <= set(offered["macs"])


def test_private_key_given(layer: Layer) -> None:
    """A private key is refused with 78, and not a byte of it is shown."""
    given = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"
    done = layer.host.run(f"STRATA_AUTHORIZED_KEYS='{given}' {STATE} {SERVICE}")
    assert (done.rc, done.stdout) == (78, "")
    assert done.stderr == "ssh: a private key was given; fix: give the file that ends in .pub\n"


FROM = 'from="10.0.0.0/8,127.0.0.1",no-pty '
MAKE_KEYS = """
cd "$(mktemp -d)"
for key in a b c; do ssh-keygen -q -t ed25519 -N '' -C $key@home -f $key && cat $key.pub; done
"""


@pytest.fixture(scope="module")
def keys(layer: Layer) -> list[str]:
    """Make three keys; return their public lines, with a@home, b@home and c@home as comments."""
    return layer.lines(MAKE_KEYS)


def let_in(layer: Layer, given: str) -> tuple[list[str], list[str]]:
    """Return the lines that are let in of what is given, and what is said of the others."""
    command = "STRATA_AUTHORIZED_KEYS=%s /opt/strata/bin/authorized-keys"
    done = layer.host.run(command, given)
    assert done.rc == 0
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.parametrize(
    "between", ["\n", "\r\n", "\r", ",", "; ", " ", "\\n", "\\r\\n", "\n\n# no\n"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_keys_are_parted(layer: Layer, keys: list[str], between: str, place: int) -> None:
    """Keys on lines of any ending, or joined on one, come out one a line, each with its options."""
    # A comment that has a space itself can't be told from the next key.
    given = keys if between == " " else [f"{key}, office" for key in keys]
    given = [FROM * (number == place) + key for number, key in enumerate(given)]
    assert let_in(layer, between.join(given)) == (given, [])
    assert let_in(layer, between.join([*given, *given])) == (given, [])


def test_options_without_a_comment(layer: Layer, keys: list[str]) -> None:
    """Where the first key has no comment, the second keeps its options, too."""
    one, two = keys[0].removesuffix(" a@home"), f'restrict,from="10.0.0.0/8" {keys[1]}'
    assert let_in(layer, f"{one} {two}") == ([one, two], [])


@pytest.mark.parametrize(
    "between",
    [
        ', frm="10.0.0.0/8" ',
        ", from=10.0.0.0/8 ",
        ', from="10.0.0.0/8 ',
        ", no-pty, ",
        ", some-option ",
        " of two words ",
        "|",
    ],
)
def test_doubt_lets_nobody_in(layer: Layer, keys: list[str], between: str) -> None:
    """Where it can't be told whose an option is, no key of the line is taken, and it is named."""
    found, said = let_in(layer, f"{keys[0]}{between}{keys[1]}\n{keys[2]}")
    assert found == [keys[2]]
    what = f"its keys and their options can't be told apart: {keys[0][:40]}"
    assert said == [f"ssh: left out, {what}; fix: give each key a line of its own"]


def test_a_command_may_have_line_breaks(layer: Layer, keys: list[str]) -> None:
    r"""A written \n within an option's value is a part of that value."""
    given = f"command=\"printf 'one\\ntwo, {keys[1]}'\" {keys[0]}"
    assert let_in(layer, given) == ([given], [])


def test_closed_state(layer: Layer) -> None:
    """A folder for the state that can't be written ends the service with 78, and is named."""
    done = layer.host.run(f"STRATA_SSH_DIR=/opt {SERVICE}")
    assert (done.rc, done.stdout) == (78, "")
    assert done.stderr == (
        f"ssh: /opt cannot be written by uid {layer.account.uid};"
        " fix: give it, or its volume, to that uid\n"
    )


def test_place_of_the_state(layer: Layer) -> None:
    """The documented place of the state is there, so that a volume over it is the user's."""
    assert layer.out("stat --format '%U %a' ~/.strata-ssh") == f"{layer.account.name} 700"


SESSION = "/opt/strata/bin/session"


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_session_restores(layer: Layer, shell: str) -> None:
    """A session has the listed environment byte for byte, but for what sshd says of itself."""
    script = f"""
    list=$(mktemp)
    printf 'SHELL={shell}\\0A.b=1\\0NL=a\\n$c\\0USER=x\\0TERM=dumb\\0PWD=/usr\\0E=\\0' >"$list"
    env -i STRATA_ENVIRON="$list" USER=dev {SESSION} -c 'pwd; env -0' | tr '\\0\\n' '\\n\\\\'
    """
    said = layer.out(script)
    first, _, rest = said.partition("\\")
    assert first == "/usr"
    found = set(rest.splitlines())
    assert ("A.b=1" in found) == (shell == "/bin/bash")  # other shells drop such names themselves
    assert found >= {f"SHELL={shell}", "NL=a\\$c", "USER=dev", "TERM=dumb", "E="}
    assert "STRATA_ENVIRON" not in rest


def test_session_without_list(layer: Layer) -> None:
    """A lost list fails with its name; without one (`su - dev`) the session is a plain shell."""
    done = layer.host.run(f"STRATA_ENVIRON=/nowhere {SESSION} -c true")
    assert done.rc != 0
    assert done.stderr.startswith("strata: /nowhere: No such file or directory; fix: ")
    plain = f"env -i SHELL={SESSION} {SESSION} -c 'echo $0 $SHELL'"
    assert layer.out(plain) == "bash /bin/bash"
    assert layer.out(f"echo 'echo $0; shopt login_shell' | {SESSION}").split() == [
        "-bash",
        "login_shell",
        "on",
    ]


def test_login_shell(layer: Layer) -> None:
    """The account's login shell is the one that restores the environment."""
    assert layer.out(f"getent passwd {layer.account.name}").endswith(f":{SESSION}")
    assert layer.host.file(SESSION).mode == 0o755


def test_root_serves_nobody(layer: Layer) -> None:
    """The service refuses to run as root."""
    pretend = "d=$(mktemp -d); printf '#!/bin/sh\\necho 0\\n' >$d/id; chmod +x $d/id"
    done = layer.host.run(f"{pretend}; PATH=$d:$PATH {SERVICE}")
    assert done.rc == 78
    assert done.stderr == "ssh: nobody logs in as root; fix: leave out --user 0\n"


def test_service(layer: Layer) -> None:
    """The service is a program that `serve` finds."""
    assert layer.host.file(SERVICE).mode == 0o755
