"""Names and tags: everything that people have becomes valid, or a clear refusal (case I7)."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from strata.errors import DefinitionError
from strata.tags import (
    immutable_tag,
    repository,
    tag_of,
    validate_image_name,
    validate_registry,
    validate_tag,
    validate_variant_name,
)

# The grammars of the OCI distribution specification, written down a second time.
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
NAME = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
SHA = "0123456789abcdef0123456789abcdef01234567"
DAY = date(2026, 11, 30)
# A busy machine is slow, and no run depends on an earlier one.
anywhere = settings(deadline=None, database=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("main", "main"),
        ("v2.1_rc-1", "v2.1_rc-1"),
        ("renovate/x@1", "renovate-x-1-xd5599d9fca"),
        ("2.1+cu121", "2.1-cu121-xa5be81ed92"),
        ("a/b", "a-b-xc14cddc033"),
        (".hidden", "hidden-x1692419006"),
        ("ä", "_-x33e6d73fee"),
    ],
)
def test_tag_of_what_people_have(text: str, expected: str) -> None:
    """A valid tag stays, and anything else keeps what it can and gets a hash."""
    assert tag_of(text) == expected


@anywhere
@given(st.text(min_size=1, max_size=300))
def test_every_text_has_a_valid_tag(text: str) -> None:
    """Any text that is not empty, of any length, gives a tag that registries take."""
    assert TAG.fullmatch(tag_of(text))


@anywhere
@given(st.text(min_size=1), st.text(min_size=1))
def test_distinct_texts_keep_distinct_tags(one: str, other: str) -> None:
    """Two different texts never share a tag, even if one is the other's tag."""
    assume(one != other)
    assert tag_of(one) != tag_of(other)
    made = tag_of(one)
    assert made == one or tag_of(made) != made


@anywhere
@given(st.from_regex(r"[a-z]{1,5}[/@+][a-z]{1,5}", fullmatch=True))
def test_slash_and_hyphen_differ(text: str) -> None:
    """`a/b` is not `a-b`, whatever a and b are and whatever stands between them."""
    assert tag_of(text) != tag_of(re.sub(r"[/@+]", "-", text))


def test_long_branches_differ_in_their_last_character() -> None:
    """Branches of 200 characters get tags of at most 128, which differ if they do."""
    one, other = (tag_of(f"{'b' * 199}{last}") for last in "xy")
    assert (len(one), len(other)) == (128, 128)
    assert one != other


def test_immutable_tag() -> None:
    """The tag names the variant, the day and the commit."""
    made = immutable_tag("cuda129", DAY, SHA, dirty=False)
    assert made == "cuda129-20261130-g0123456"


@pytest.mark.parametrize(
    ("sha", "dirty", "reason"),
    [
        ("", False, "there is no commit"),
        (SHA, True, "changes that commit 0123456 does not have"),
        ("main", False, "not the id of a commit"),
        ("012345", False, "not the id of a commit"),
    ],
)
def test_immutable_tag_never_lies(sha: str, dirty: bool, reason: str) -> None:  # noqa: FBT001
    """Where no commit says what was built, there is no tag, and exit code 2."""
    with pytest.raises(DefinitionError, match=reason) as failure:
        immutable_tag("cpu", DAY, sha, dirty=dirty)
    assert failure.value.exit_code == 2


@pytest.mark.parametrize("name", ["cpu", "cuda118-py39", "cuda12.9", "a" * 110])
def test_good_variants_fit_with_their_stamp(name: str) -> None:
    """Every variant name that is let through gives a valid immutable tag."""
    validate_variant_name(name)
    assert TAG.fullmatch(immutable_tag(name, DAY, SHA, dirty=False))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2.1+cu121", "small letters"),
        ("CPU", "small letters"),
        ("renovate/x@1", "small letters"),
        ("", "small letters"),
        ("-cpu", "small letters"),
        ("cpu\n", "small letters"),
        ("a" * 111, "111 characters"),
        ("cpu-20261130-g0123456", "immutable tag of another variant"),
        ("main-x0123456789", "made from a branch"),
    ],
)
def test_bad_variants(name: str, reason: str) -> None:
    """A variant that cannot be a tag, or could be taken for another one's, is refused."""
    with pytest.raises(DefinitionError, match=reason):
        validate_variant_name(name)


@pytest.mark.parametrize("name", ["train", "my.image", "a__b", "a--b", "9"])
def test_good_image_names(name: str) -> None:
    """What the specification allows is let through."""
    validate_image_name(name)
    assert NAME.fullmatch(name)


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("MyOrg", "myorg"),
        ("Foo/bar", "foo-bar"),
        ("renovate/x@1", "renovate-x-1"),
        ("2.1+cu121", "2-1-cu121"),
        ("a" * 200, "a" * 40),
        ("a___b", "a-b"),
        ("-a", "a"),
        ("a.", "a"),
        ("", "train"),
        ("ü", "train"),
    ],
)
def test_bad_image_names(name: str, example: str) -> None:
    """An image that no registry takes is refused, with a name that they take."""
    with pytest.raises(DefinitionError) as failure:
        validate_image_name(name, where="images/x.toml")
    problem = failure.value.problems[0]
    assert problem.where == "images/x.toml"
    assert problem.fix == f"rename it, for example {example}"
    validate_image_name(example)


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("ghcr.io/MyOrg", "ghcr.io/myorg/train"),
        ("GHCR.io/me", "ghcr.io/me/train"),
        ("localhost/me", "localhost/me/train"),
        ("127.0.0.1:5000/me", "127.0.0.1:5000/me/train"),
        ("[::1]:5000/me", "[::1]:5000/me/train"),
        ("host:5000/Group/Team/", "host:5000/group/team/train"),
        ("docker.io/me", "docker.io/me/train"),
    ],
)
def test_repository(registry: str, expected: str) -> None:
    """Host and owner are written small, and the image comes below them."""
    assert repository(registry, "train") == expected


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        ("Foo/bar", "Docker would take 'Foo' for the host of a registry"),
        ("foo/bar", "'foo' is not a host"),
        ("ghcr.io", "not a host and an owner"),
        ("ghcr.io/", "not a host and an owner"),
        ("MyOrg", "not a host and an owner"),
        ("", "not a host and an owner"),
        ("https://ghcr.io/me", "is a URL"),
        ("ghcr.io/me:tag", "no registry takes the owner 'me:tag'"),
        ("ghcr.io/renovate/x+1", "no registry takes the owner"),
        ("ghcr.io//me", "no registry takes the owner ''"),
        ("-a.b/me", "not the name of a host"),
        ("host:port/me", "not the name of a host"),
        ("ghcr.io/me\n", "no registry takes the owner"),
        (f"ghcr.io/{'a' * 250}", "characters"),
    ],
)
def test_bad_registries(registry: str, reason: str) -> None:
    """What Docker would read as something else is refused, and the form is shown."""
    with pytest.raises(DefinitionError, match=reason) as failure:
        validate_registry(registry, where="--registry")
    assert failure.value.problems[0].where == "--registry"


def test_password_is_not_repeated() -> None:
    """A password in the registry's address is refused without showing it."""
    with pytest.raises(DefinitionError) as failure:
        validate_registry("me:hunter2@ghcr.io/me")
    assert "hunter2" not in str(failure.value)


def test_long_names_together() -> None:
    """An owner and an image that are each short enough can be too long together."""
    with pytest.raises(DefinitionError, match="256 characters, 255 are allowed"):
        repository(f"ghcr.io/{'a' * 147}", "b" * 100)
    assert len(repository(f"ghcr.io/{'a' * 146}", "b" * 100)) == 255


@pytest.mark.parametrize("tag", ["", ".a", "-a", "2.1+cu121", "a/b", "a" * 129, "a\n"])
def test_bad_tags(tag: str) -> None:
    """A tag that no registry takes is refused."""
    with pytest.raises(DefinitionError, match="no registry takes"):
        validate_tag(tag)


def test_empty_text_has_no_tag() -> None:
    """There is no tag for nothing."""
    with pytest.raises(DefinitionError, match="empty"):
        tag_of("")
