# /etc/profile has reset PATH.  The shell's first environment still has it, with
# what a child image or `docker run -e` put there; a login that never knew the
# image's gets it in front, and an environment of one's own stays active.  It runs
# under nounset and in any POSIX shell.
# A line of another variable's value is not taken for PATH: newlines and NULs change places.
first=$(tr '\0\n' '\n\0' <"/proc/$$/environ" | sed -n 's/^PATH=//p') || first=
case ":$first:" in
  *:/opt/strata/bin:*) PATH=$first ;;
  *) PATH=/opt/env/bin:/opt/strata/bin:$PATH ;;
esac
export PATH
unset first
if [ -d /opt/env ]; then
  CONDA_PREFIX=${CONDA_PREFIX:-/opt/env}
  export CONDA_PREFIX
fi
