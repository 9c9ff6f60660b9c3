"""An installer that stands in for Miniconda's: same contract, same places, a conda of a few lines.

What it shows is our side: that the layer calls the installer as it should, cleans up
after it, and that every shell finds `conda activate`.  What the real conda does then,
it cannot show.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "26.9.0"
PAYLOAD = "__PAYLOAD__"
# -b asks nothing, -p says where to; Miniconda's own refuses a folder that is there.
SCRIPT = f"""\
#!/bin/sh
set -eu
[ "$1 $2" = "-b -p" ] && [ "$#" = 3 ] && [ ! -e "$3" ]
cd / && mkdir -p "$3" && cd "$3"
sed '1,/^{PAYLOAD}$/d' "$0" | tar -xz
[ -e bin/python ] || ln -s /usr/bin/python3 bin/python
for file in $(find . -name '*.template'); do
  sed "s,@PREFIX@,$3,g" "$file" >"${{file%.template}}"
  chmod --reference="$file" "${{file%.template}}"
  rm "$file"
done
printf '==> %s <==\\n# cmd: installer\\n' "$(date '+%F %T')" >conda-meta/history
exit 0
{PAYLOAD}
"""
FAILING = b"#!/bin/sh\necho 'installer: no space left' >&2\nexit 3\n"
CONDA = f"""\
#!/bin/sh
set -eu
case "$1 ${{2-}}" in
  "--version ") echo conda {VERSION} ;;
  "shell.posix activate")
    for prefix in @PREFIX@ "$HOME/.conda/envs/$3" "/opt/$3"; do
      [ "$3" != base ] || break
      [ -d "$prefix/conda-meta" ] && [ "${{prefix##*/}}" = "$3" ] && break
    done
    echo "export CONDA_PREFIX='$prefix' PATH='$prefix/bin':\\"\\$PATH\\""
    ;;
  *) echo "conda: $*?" >&2 && exit 2 ;;
esac
"""
FUNCTION = """\
export CONDA_EXE='@PREFIX@/bin/conda' CONDA_PYTHON_EXE='@PREFIX@/bin/python' _CE_CONDA='' _CE_M=''
conda() {
  case "$1" in
    activate) eval "$(PS1="$PS1" @PREFIX@/bin/conda shell.posix "$@")" ;;
    *) @PREFIX@/bin/conda "$@" ;;
  esac
}
if [ -z "${CONDA_SHLVL+x}" ]; then
  export CONDA_SHLVL=0 PATH="@PREFIX@/condabin:$PATH"
fi
"""
RECORD = '{"name": "conda", "files": ["lib/python3.11/site-packages/conda/__init__.py"]}\n'
FILES = {
    "bin/conda.template": CONDA,
    "condabin/conda.template": CONDA,
    "etc/profile.d/conda.sh.template": FUNCTION,
    "conda-meta/conda-26.9.0-0.json": RECORD,
    "lib/python3.11/site-packages/conda/__init__.py": "VERSION = 'stand-in'\n",
    ".condarc": "channels: [defaults]\n",
    "condarc.d/more.yml": "channels: [defaults]\n",
    "pkgs/urls.txt": "https://repo.example/conda.conda\n",
}


def make_installer(python: Mapping[str, bytes] | None = None, note: str = "") -> bytes:
    """Return the installer; `python` maps names to the files of an interpreter that it brings.

    Without one it links the base's.  `note` goes into a comment, so that two
    installers with different notes are different files.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        contents = {name: text.encode() for name, text in FILES.items()}
        for name, data in {**contents, **(python or {})}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o755 if "bin/" in name else 0o644
            tar.addfile(member, io.BytesIO(data))
    return SCRIPT.replace("set -eu", f"# {note}\nset -eu", 1).encode() + buffer.getvalue()
