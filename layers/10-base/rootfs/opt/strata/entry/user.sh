# shellcheck shell=bash
# bin/entry reads this: who one is, and a home.

# Another user's file would say who is who (decision 0008).
own_folder() {
  if [ -e "$1" ] && [ ! -O "$1" ]; then
    echo "strata: $1 is another user's; fix: a /tmp for each user's containers" >&2
    exit 78
  fi
  install -d -m 0755 "$1"
}

# Any `--user UID:GID` gets the image's name for it, by libnss-cache, whose files
# /etc/{passwd,group}.cache point into /tmp; and a home that it can write to.
settle() {
  local name home shell uid gid folder=/tmp/.strata
  IFS=: read -r name _ _ _ _ home shell </etc/strata/account
  uid=$(id -u) gid=$(id -g)
  if [ "${HOME:-/}" = / ] || [ ! -d "$HOME" ] || [ ! -w "$HOME" ]; then
    export HOME="$home"
    if [ ! -w "$home" ]; then
      export HOME="$folder/home"
      own_folder "$folder" && install -d -m 0700 "$HOME" || return 1
    fi
  fi
  case "$uid:$(getent -s files passwd "$uid")" in
    0:* | "$uid:$name:"*":$uid:$gid:"*) return 0 ;;
  esac
  own_folder "$folder" || return 1
  printf '%s:x:%s:%s::%s:%s\n' "$name" "$uid" "$gid" "$HOME" "$shell" >"$folder/passwd" || return 1
  getent -s files group "$gid" >/dev/null || printf '%s:x:%s:\n' "$name" "$gid" >"$folder/group"
}
