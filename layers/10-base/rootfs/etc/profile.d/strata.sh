# /etc/profile resets PATH; this gives a login shell the image's own.
# It runs under nounset and in any POSIX shell.
PATH=/opt/env/bin:/opt/strata/bin:$PATH
export PATH
if [ -d /opt/env ]; then
  CONDA_PREFIX=/opt/env
  export CONDA_PREFIX
fi
