"""The SSH server before anybody logs in: no key, strict settings, clear refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    "strictmodes yes",
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


def test_environment_line(layer: Layer) -> None:
    """The session's variables go into one SetEnv line, quoted; other doors' secrets stay out."""
    done = layer.host.run(
        "env -i PATH=\"$PATH\" FOO='a b=c\"d' BACK='\\x' JUPYTER_TOKEN=secret "
        "HOME=/x /opt/strata/bin/sshd-setenv"
    )
    assert (done.rc, done.stderr) == (0, "")
    path = layer.out('printf %s "$PATH"')
    assert done.stdout.count("\n") == 1
    words = {'"FOO=a b=c\\"d"', '"BACK=\\\\x"', f'"PATH={path}"'}
    assert all(f" {word}" in done.stdout for word in words)
    assert "secret" not in done.stdout
    assert "HOME" not in done.stdout


def test_newline_is_named(layer: Layer) -> None:
    """A variable that sshd's settings can't hold is named, and its value isn't shown."""
    done = layer.host.run("TWO='a\nPermitRootLogin yes' /opt/strata/bin/sshd-setenv")
    assert done.rc == 0
    assert done.stderr == "ssh: TWO has a newline and is not handed to SSH sessions\n"
    assert "PermitRootLogin" not in done.stdout + done.stderr


def test_service(layer: Layer) -> None:
    """The service is a program that `serve` finds."""
    assert layer.host.file(SERVICE).mode == 0o755
