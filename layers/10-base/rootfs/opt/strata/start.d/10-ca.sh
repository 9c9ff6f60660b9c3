# shellcheck shell=bash
# STRATA_CA_FILE, a company's CA, joins the authorities that all programs know
# (docs/hardening.md).  /etc is not ours to write: the list is made in /tmp.
strata_trust() {
  local folder=/tmp/.strata list
  if ! grep -q -e '-----BEGIN CERTIFICATE-----' "$1"; then
    echo "strata: STRATA_CA_FILE: $1 holds no certificate that uid $(id -u) can read; fix: mount" \
      "it into the container as PEM, and chmod a+r on the host"
    exit 78
  fi
  own_folder "$folder" # bin/entry's
  list=$(mktemp "$folder/ca.XXXXXX")
  { cat /etc/ssl/certs/ca-certificates.crt && echo && cat "$1"; } >"$list"
  chmod 0644 "$list"
  mv "$list" "$folder/ca-certificates.crt"
  list=$folder/ca-certificates.crt
  export GIT_SSL_CAINFO="$list" REQUESTS_CA_BUNDLE="$list" SSL_CERT_FILE="$list"
}
[ -z "${STRATA_CA_FILE:-}" ] || strata_trust "$STRATA_CA_FILE"
