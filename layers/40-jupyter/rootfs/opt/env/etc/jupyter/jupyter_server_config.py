"""How the image serves JupyterLab; a user's own ~/.jupyter is read after this."""

import sys

sys.path.append("/opt/strata/jupyter")
from strata_jupyter import settle

settings = settle()
c = get_config()  # noqa: F821 - Jupyter's configuration files are run with it
c.ServerApp.ip = settings.ip
c.ServerApp.port = settings.port
c.ServerApp.port_retries = 0
c.ServerApp.base_url = settings.base_url
c.ServerApp.open_browser = False
c.ServerApp.use_redirect_file = False  # nobody can open a file of the container's
# Terminals are bash whatever started the server (jupyterlab/jupyterlab#2779).
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash", "-l"]}
# Kernels listen on the loopback, which --network host shares with the machine's other users.
c.KernelManager.transport_encryption = "auto"
# Else a mounted folder fills with .Trash-1000.
c.FileContentsManager.delete_to_trash = False
# The environment is the image's: nothing is installed into it, nothing asks for news.
c.LabApp.extension_manager = "readonly"
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None

if settings.token:
    c.IdentityProvider.token = settings.token
if settings.password_hash:
    c.PasswordIdentityProvider.hashed_password = settings.password_hash
if settings.public_url:
    c.ServerApp.custom_display_url = f"{settings.public_url.rstrip('/')}/lab"
    c.ServerApp.allow_origin = settings.origin  # the proxy may rename the host
    c.ServerApp.trust_xheaders = True
