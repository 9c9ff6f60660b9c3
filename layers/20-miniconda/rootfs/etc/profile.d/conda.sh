# Makes `conda activate` work.  Every bash reads this file, by one of three ways: a login
# shell by /etc/profile, an interactive one and sshd's by /etc/bash.bashrc, others by
# BASH_ENV.  It says nothing, and runs under nounset and in any POSIX shell.
#
# /opt/env counts as activated, as its programs are first on PATH: activating another
# environment takes them out, deactivating it brings them back.
[ -n "${CONDA_PREFIX:-}" ] || unset CONDA_SHLVL # an image without /opt/env
if [ -z "${CONDA_SHLVL+x}" ] && [ -d /opt/env ]; then
  export CONDA_SHLVL=1 CONDA_PREFIX=/opt/env CONDA_DEFAULT_ENV=env
fi
# conda's functions use it; a shell that isn't interactive has none.
[ -n "${PS1+x}" ] || PS1=
. /opt/conda/etc/profile.d/conda.sh
