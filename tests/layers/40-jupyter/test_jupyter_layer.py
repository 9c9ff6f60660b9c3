"""JupyterLab without its server: versions, settings, and a kernel that computes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

KERNEL = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name='python3')
try:
    said = []
    client.execute_interactive(
        'import sys; print(1 + 1, sys.executable)', timeout=60,
        output_hook=lambda message: said.append(message['content'].get('text', '')))
    print(''.join(said), end='')
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
HOME = "HOME=/tmp/jupyter-test"


def test_kernel_computes(layer: Layer) -> None:
    """The one kernel is called `Python (strata)` and runs the environment's Python."""
    listed = json.loads(layer.out(f"{HOME} jupyter kernelspec list --json"))["kernelspecs"]
    assert [(name, it["spec"]["display_name"]) for name, it in listed.items()] == [
        ("python3", "Python (strata)")
    ]
    done = layer.host.run(f"{HOME} python -c %s", KERNEL)
    assert (done.rc, done.stdout) == (0, "2 /opt/env/bin/python\n"), done.stderr


def test_settings_are_read(layer: Layer) -> None:
    """JupyterLab starts with the image's settings: its port and no other, all interfaces, bash."""
    done = layer.host.run(f"{HOME} jupyter lab --show-config-json")
    assert done.rc == 0, done.stderr
    found = json.loads(done.stdout)
    server = found["ServerApp"]
    assert (server["ip"], server["port"], server["port_retries"]) == ("0.0.0.0", 8888, 0)
    assert server["base_url"] == "/"
    assert server["open_browser"] is False
    assert server["terminado_settings"] == {"shell_command": ["/bin/bash", "-l"]}
    assert "allow_origin" not in server
    assert found["LabApp"]["news_url"] is None
    assert not {"IdentityProvider", "PasswordIdentityProvider"} & found.keys()


def test_no_secret_in_files(layer: Layer) -> None:
    """No token and no password is set in the image's settings, nor left in the home."""
    places = "/opt/env/etc/jupyter /opt/strata/jupyter /opt/strata/services"
    found = layer.host.run(f"grep -riE '(token|password)[a-z_]* *= *[\"'\\''][^\"'\\'']' {places}")
    named = [line.partition(":")[2] for line in found.stdout.splitlines()]
    assert [line for line in named if '"JUPYTER_' not in line] == []
    assert len(named) == 2
    for name in (".jupyter", ".ipython", ".local"):
        assert not layer.host.file(f"{layer.account.home}/{name}").exists


def test_service(layer: Layer) -> None:
    """The service and the health check are programs; one finds nothing wrong where none runs."""
    assert layer.host.file("/opt/strata/services/jupyter").mode == 0o755
    assert layer.host.file("/opt/strata/bin/healthy").mode == 0o755
    assert layer.out("healthy") == "well"
