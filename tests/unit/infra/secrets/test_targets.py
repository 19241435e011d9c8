"""What an entry of `hosts` may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2_infra.secrets.targets import BadTarget, Target, parse_target, url_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("api.anthropic.com", Target("api.anthropic.com", 443)),
        ("API.Anthropic.COM.", Target("api.anthropic.com", 443)),
        ("gateway.corp:8443", Target("gateway.corp", 8443)),
        ("vault", Target("vault", 443)),
        ("xn--bcher-kva.example", Target("xn--bcher-kva.example", 443)),
        ("10.1.2.3", Target("10.1.2.3", 443)),
        ("10.1.2.3:9000", Target("10.1.2.3", 9000)),
        ("[2001:DB8::1]:9000", Target("2001:db8::1", 9000)),
        ("[2001:db8:0:0::1]", Target("2001:db8::1", 443)),
        ("2001:db8::1", Target("2001:db8::1", 443)),
        ("https://llm.corp/v1", Target("llm.corp", 443)),
        ("https://llm.corp:8443", Target("llm.corp", 8443)),
        ("HTTPS://llm.corp", Target("llm.corp", 443)),
    ],
)
def test_an_entry_is_a_host_and_a_port(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("*.example.com", '"*.example.com" has a wildcard — name each host'),
        ("http://llm.corp", '"http://llm.corp" is no https URL'),
        ("ftp://llm.corp", '"ftp://llm.corp" is no https URL'),
        ("llm.corp/v1", '"llm.corp/v1" is more than a host'),
        ("llm.corp?x=1", '"llm.corp?x=1" is more than a host'),
        ("https://llm.corp/v1?x=1", '"https://llm.corp/v1?x=1" has a query'),
        ("https://", "names no host"),
        ("llm.corp:0", '"llm.corp:0" has no port from 1 to 65535'),
        ("llm.corp:65536", '"llm.corp:65536" has no port'),
        ("llm.corp:", '"llm.corp:" has no port'),
        ("llm.corp:https", '"llm.corp:https" has no port'),
        ("llm_1.corp", '"llm_1.corp" is neither a DNS name nor an IP address'),
        ("-a.corp", '"-a.corp" is neither'),
        ("a..corp", '"a..corp" is neither'),
        ("bücher.example", '"bücher.example" is neither'),
        ("x" * 64 + ".corp", "is neither"),
        ("127.1", '"127.1" is neither'),
        ("2130706433", '"2130706433" is neither'),
        ("0x7f.0x1", '"0x7f.0x1" is neither'),
        ("256.1.1.1", '"256.1.1.1" is neither'),
        ("[::1", '"[::1" is no host'),
        ("localhost", '"localhost" is the pod itself'),
        ("x.localhost:8443", '"x.localhost" is the pod itself'),
        ("127.0.0.1:8000", '"127.0.0.1" is an address that a Custodian never dials'),
        ("0.0.0.0", '"0.0.0.0" is an address'),
        ("169.254.169.254", '"169.254.169.254" is an address'),
        ("[::1]:8000", '"::1" is an address'),
        ("[::ffff:10.0.0.1]", "is an address"),
        ("fe80::1", '"fe80::1" is an address'),
        ("[fd00:ec2::254]", '"fd00:ec2::254" is an address'),
    ],
)
def test_an_entry_that_names_no_such_host(text: str, problem: str) -> None:
    with pytest.raises(BadTarget) as raised:
        parse_target(text)
    assert problem in str(raised.value)


@pytest.mark.parametrize("text", ["me:S3CRET@llm.corp", "https://me:S3CRET@llm.corp/v1"])
def test_a_password_is_not_repeated(text: str) -> None:
    with pytest.raises(BadTarget) as raised:
        parse_target(text)
    assert str(raised.value) == "holds a user or a password, and a host has none"


def test_a_url_of_another_scheme_names_no_host() -> None:
    with pytest.raises(BadTarget, match="is no https URL"):
        url_target("llm.corp")


@given(st.text(max_size=40))
def test_every_text_is_a_host_or_is_refused(text: str) -> None:
    """What is taken once is taken again as it is written."""
    try:
        target = parse_target(text)
    except BadTarget:
        return
    assert parse_target(str(target)) == target
    assert 1 <= target.port <= 65_535
