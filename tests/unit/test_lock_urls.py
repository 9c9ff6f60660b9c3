"""Secrets and places in channel and package URLs."""

from __future__ import annotations

import pytest

from strata.lock.urls import base_of, is_defaults, is_local, mask, secret_in


@pytest.mark.parametrize(
    ("url", "kind", "masked"),
    [
        ("https://u:p@h/c", "a user name or password", "https://***:***@h/c"),
        ("https://u@h/c", "a user name or password", "https://***@h/c"),
        ("https://$USER:p@h/c", "a user name or password", "https://$USER:***@h/c"),
        ("https://u:p@x@h/c", "a user name or password", "https://***:***@h/c"),
        ("u:p@h/c", "a user name or password", "***:***@h/c"),
        ("https://h/t/abc/c", "a token", "https://h/t/***/c"),
        ("https://h/t/<TOKEN>/c", "a token", "https://h/t/***/c"),
        ("https://h/t/$TOKEN-abc/c", "a token", "https://h/t/***/c"),
        ("https://h/c?sig=abc", "a query, which may hold a secret", "https://h/c?***"),
        ("https://h/c#abc", "a fragment, which may hold a secret", "https://h/c#***"),
        ("https://$USER:${PASSWORD}@h/t/$TOKEN/c", None, "https://$USER:${PASSWORD}@h/t/$TOKEN/c"),
        ("https://conda.anaconda.org/conda-forge", None, "https://conda.anaconda.org/conda-forge"),
        ("conda-forge", None, "conda-forge"),
    ],
)
def test_secrets_are_found_and_masked(url: str, kind: str | None, masked: str) -> None:
    """Every secret but an environment variable is found, and never shown."""
    assert secret_in(url) == kind
    assert mask(f"see {url} there") == f"see {masked} there"


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("defaults", True),
        ("main", True),
        ("https://conda.anaconda.org/anaconda/linux-64", True),
        ("https://conda.anaconda.org/t/$TOKEN/main", True),
        ("https://repo.anaconda.com/pkgs/r", True),
        ("conda-forge", False),
        ("conda-forge/label/main", False),
        ("https://mirror.example/main", False),
        ("http://[bad/main", False),
    ],
)
def test_defaults_are_known_by_name_and_by_address(channel: str, *, expected: bool) -> None:
    """Anaconda's own channels are recognised however they are written."""
    assert is_defaults(channel) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///srv/channel", True),
        ("/srv/channel", True),
        ("http://127.0.0.1:8000/c", True),
        ("http://localhost/c", True),
        ("https://conda.anaconda.org/conda-forge", False),
        ("conda-forge", False),
        ("http://[bad/c", False),
    ],
)
def test_local_addresses_are_known(url: str, *, expected: bool) -> None:
    """What only this machine can reach is recognised."""
    assert is_local(url) is expected


def test_a_channel_has_one_base_however_it_is_written() -> None:
    """Name and URL, with and without the last slash, $VAR and ${VAR}: the same base."""
    assert base_of("conda-forge") == base_of("https://conda.anaconda.org/conda-forge/")
    assert base_of("https://h/t/${TOKEN}/c") == base_of("https://h/t/$TOKEN/c/")
    assert base_of("conda-forge") != base_of("conda-forge2")
