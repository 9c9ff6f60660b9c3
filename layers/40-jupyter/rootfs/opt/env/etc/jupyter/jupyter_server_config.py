"""How the image serves JupyterLab; a user's own ~/.jupyter is read after this."""

c = get_config()  # noqa: F821 - Jupyter's configuration files are run with it
c.ServerApp.ip = "0.0.0.0"  # noqa: S104 - of the container
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
# Terminals are bash whatever started the server (jupyterlab/jupyterlab#2779).
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash", "-l"]}
