"""What a registry itself says about a tag, asked as the distribution specification has it.

Nothing is written here: the engine pushes, and this is how we know what arrived.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests

from strata.credentials import HUB, LOGIN
from strata.errors import PublishError
from strata.upstream.download import root_cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strata.credentials import Credentials

TIMEOUT = (10, 60)  # seconds to connect, and between two bytes
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
PULL = "pull"
# What a push asks for, so that a new repository reads as absent and not as forbidden.
PUSH = "pull,push"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PARAMETER = re.compile(r'([a-zA-Z_]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')


def is_plain_http(host: str, engine_info: Mapping[str, object]) -> bool:
    """Whether the engine talks to `host` without TLS if need be.

    So it does with loopback addresses and with what its `insecure-registries`
    lists; `engine_info` is the answer of the engine's `/info`.
    """
    config = engine_info.get("RegistryConfig")
    listed = config if isinstance(config, dict) else {}
    if (listed.get("IndexConfigs") or {}).get(host, {}).get("Secure") is False:
        return True
    if is_loopback(host):
        return True
    try:
        address = ipaddress.ip_address(_name(host))
    except ValueError:
        return False
    networks = [ipaddress.ip_network(net) for net in listed.get("InsecureRegistryCIDRs") or ()]
    return any(address in network for network in networks)


def is_loopback(host: str) -> bool:
    """Whether `HOST[:PORT]` is this machine itself."""
    name = _name(host)
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


class Registry:
    """One registry, asked over HTTP with the credentials of `docker login`."""

    def __init__(
        self, host: str, credentials: Credentials, *, plain_http: bool, actions: str = PULL
    ) -> None:
        """Prepare to ask `host` (`HOST[:PORT]`, as in references); nothing is sent yet.

        `actions` are what its tokens are asked for: `PULL`, or `PUSH` before a push.
        """
        self.host = host
        self._actions = actions
        self._credentials = credentials
        self._scheme = "http" if plain_http else "https"
        self._session = requests.Session()
        self._authorization: dict[str, str] = {}

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def digest(self, repository: str, tag: str) -> str | None:
        """Return the digest that `tag` has now, or None where there is no such tag.

        `repository` is `HOST[:PORT]/OWNER/NAME`.  Raises `PublishError` when the
        registry cannot be reached, refuses, or answers with something else.
        """
        path = repository.removeprefix(f"{self.host}/")
        where = f"{repository}:{tag}"
        answer = self._ask("HEAD", path, tag, where)
        if answer.status_code == requests.codes.not_found:
            return None
        digest = answer.headers.get("Docker-Content-Digest", "")
        if answer.ok and not digest:  # optional in the specification: count ourselves
            answer = self._ask("GET", path, tag, where)
            digest = f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
        if not answer.ok:
            raise self._refused(answer, where)
        if not _DIGEST.fullmatch(digest):
            raise PublishError.at(
                where, f"the registry calls it {digest!r}, which is no sha256 digest", "report it"
            )
        return digest

    def manifest(self, repository: str, reference: str) -> bytes | None:
        """Return the manifest of a tag or digest, as it is; None where there is none.

        Raises `PublishError` as `digest` does.
        """
        where = f"{repository}@{reference}"
        answer = self._ask("GET", repository.removeprefix(f"{self.host}/"), reference, where)
        if answer.status_code == requests.codes.not_found:
            return None
        if not answer.ok:
            raise self._refused(answer, where)
        return answer.content

    def blob(self, repository: str, digest: str) -> tuple[str, dict[str, str]]:
        """Return the URL of a blob and the headers to ask with, once `manifest` has been asked."""
        path = repository.removeprefix(f"{self.host}/")
        authorization = self._authorization.get(path, "")
        headers = {"Authorization": authorization} if authorization else {}
        return f"{self._scheme}://{self._api}/v2/{path}/blobs/{digest}", headers

    @property
    def _api(self) -> str:
        return "registry-1.docker.io" if self.host in HUB else self.host

    def _ask(self, method: str, path: str, tag: str, where: str) -> requests.Response:
        url = f"{self._scheme}://{self._api}/v2/{path}/manifests/{tag}"
        answer = self._send(method, url, where, self._authorization.get(path, ""))
        if answer.status_code != requests.codes.unauthorized:
            return answer
        authorization = self._answer_challenge(answer, path, where)
        if not authorization:
            return answer
        self._authorization[path] = authorization
        return self._send(method, url, where, authorization)

    def _answer_challenge(self, answer: requests.Response, path: str, where: str) -> str:
        scheme, _, rest = answer.headers.get("WWW-Authenticate", "").partition(" ")
        if scheme.lower() == "basic" and not self._credentials.is_empty:
            return self._credentials.basic
        if scheme.lower() == "bearer":
            given = {key.lower(): quoted or bare for key, quoted, bare in _PARAMETER.findall(rest)}
            return f"Bearer {self._fetch_token(given, path, where)}"
        return ""

    def _fetch_token(self, challenge: Mapping[str, str], path: str, where: str) -> str:
        realm = challenge.get("realm", "")
        if urlsplit(realm).scheme not in {"https", self._scheme}:
            raise PublishError.at(
                where,
                f"the registry sends us for a token to {realm!r}, which would show the password",
                "ask the registry's owner to serve tokens over https",
            )
        scope = f"repository:{path}:{self._actions}"
        query = {"service": challenge.get("service", ""), "scope": scope}
        if self._credentials.identity_token:
            form = {
                **query,
                "grant_type": "refresh_token",
                "refresh_token": self._credentials.identity_token,
                "client_id": "strata",
            }
            answer = self._send("POST", realm, where, "", form=form)
        else:
            basic = "" if self._credentials.is_empty else self._credentials.basic
            answer = self._send("GET", realm, where, basic, query=query)
        if not answer.ok:
            raise self._refused(answer, where)
        try:
            document = answer.json()
            token = document.get("token") or document["access_token"]
        except (ValueError, KeyError, AttributeError):
            raise PublishError.at(
                where,
                f"{urlsplit(realm).netloc} answered without a token",
                LOGIN.format(host=self.host),
            ) from None
        return str(token)

    def _send(
        self,
        method: str,
        url: str,
        where: str,
        authorization: str,
        *,
        query: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> requests.Response:
        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            # A callable, even for nothing: else requests would look into ~/.netrc.
            if authorization:
                request.headers["Authorization"] = authorization
            return request

        netloc = urlsplit(url).netloc
        try:
            return self._session.request(
                method,
                url,
                params=query,
                data=form,
                headers={"Accept": MANIFESTS} if "/manifests/" in url else {},
                auth=authorize,
                proxies={"no_proxy": _name(netloc)} if is_loopback(netloc) else None,
                timeout=TIMEOUT,
                allow_redirects=True,
            )
        except requests.RequestException as failure:
            raise PublishError.at(
                where,
                f"cannot reach the registry at {netloc}: {root_cause(failure)}",
                "check the host, the port, the network and its proxy (HTTPS_PROXY, NO_PROXY, "
                "REQUESTS_CA_BUNDLE)",
            ) from None

    def _refused(self, answer: requests.Response, where: str) -> Exception:
        status = f"{answer.status_code} {answer.reason}"
        if answer.status_code in {requests.codes.unauthorized, requests.codes.forbidden}:
            who = self._credentials.username or "nobody"
            return PublishError.at(
                where,
                f"denied: the registry answers {status} to {who}",
                LOGIN.format(host=self.host),
            )
        return PublishError.at(
            where, f"the registry answers {status}", "try again later, or ask the registry's owner"
        )


def _name(netloc: str) -> str:
    return urlsplit(f"//{netloc}").hostname or ""
