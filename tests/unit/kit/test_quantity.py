"""Field case 9: quantities are compared by value, odd legal forms pass, wrong forms are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import quantity


@pytest.mark.parametrize(
    "spellings",
    [
        [1, "1", "1000m", "1e0", 1.0],
        ["0.1", 0.1, "100m"],
        ["0.5Gi", "512Mi", 536870912, "524288Ki"],
        ["1e3", "1E3", "1k", "1000"],
        ["1E", 10**18],
        ["1Ei", 2**60],
        [".5Gi", "512Mi"],
        ["5.Gi", "5Gi"],
        ["+1Gi", "1Gi"],
        ["0.9Gi", "966367641600m"],
        ["1e-1", "100m"],
        ["1e+3", "1k"],
    ],
)
def test_these_spellings_have_one_value(spellings: list[object]) -> None:
    values = {quantity.parse(quantity.spell(spelling)) for spelling in spellings}

    assert len(values) == 1


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5Gi", "512Mi"),
        ("0.9Gi", "966367641600m"),
        ("1000m", "1"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1e-1", "100e-3"),
        ("0.0000000001", "1n"),
        ("0Gi", "0"),
        ("-1500m", "-1500m"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
    ],
)
def test_canonical_is_what_the_api_server_gives_back(text: str, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1GB", '"1GB" is not a Kubernetes quantity — write "1G" or "1Gi"'),
        ("1K", '"1K" is not a Kubernetes quantity — write "1k" or "1Ki"'),
        ("1ki", '"1ki" is not a Kubernetes quantity — write "1Ki"'),
        ("1 Gi", '"1 Gi" is not a Kubernetes quantity — write "1Gi"'),
        ("1e", '"1e" is not a Kubernetes quantity — write "1" or "1E"'),
        ("0x10", '"0x10" is not a Kubernetes quantity — write one such as "2Gi" or "1500m"'),
        ("NaN", '"NaN" is not a Kubernetes quantity — write one such as "2Gi" or "1500m"'),
        ("", '"" is not a Kubernetes quantity — write one such as "2Gi" or "1500m"'),
        (".", '"." is not a Kubernetes quantity — write one such as "2Gi" or "1500m"'),
        ("1Gi\n", '"1Gi\n" is not a Kubernetes quantity — write "1Gi"'),
        (
            "-1Gi",
            '"-1Gi" is not more than zero — write a positive quantity, such as "2Gi" or "1500m"',
        ),
        ("0", '"0" is not more than zero — write a positive quantity, such as "2Gi" or "1500m"'),
        ("16Ei", '"16Ei" is larger than Kubernetes can hold — write a smaller one'),
        ("1e999999999", '"1e999999999" has an exponent beyond 40 — write it out'),
    ],
)
def test_a_wrong_form_is_refused_with_a_right_one(text: str, message: str) -> None:
    with pytest.raises(quantity.QuantityError) as raised:
        quantity.positive(text)

    assert str(raised.value) == message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, None, ["1Gi"]])
def test_only_texts_and_finite_numbers_are_spelled(value: object) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.spell(value)


def test_a_part_of_a_byte_is_named() -> None:
    assert quantity.part_of_a_byte("0.5Gi") is None
    assert quantity.part_of_a_byte("0.9Gi") == (
        '"0.9Gi" is not a whole number of bytes: Kubernetes keeps it as 966367641600m — '
        'write "966367642"'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(2 * 2**30, "2Gi"), (0, "0"), (1_500_000_000, "1500M"), (1023, "1023"), (Fraction(1, 2), "1")],
)
def test_memory_is_written_short(value: Fraction | int, text: str) -> None:
    assert quantity.format_memory(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2, "2"), (Fraction(3, 2), "1500m"), (Fraction(1, 3000), "1m")]
)
def test_cpu_is_written_short(value: Fraction | int, text: str) -> None:
    assert quantity.format_cpu(value) == text


@given(
    st.decimals(min_value=0, max_value=10**9, places=6),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e2", "E-3"]),
)
def test_the_canonical_form_keeps_the_value_and_is_its_own_canonical_form(
    number: object, suffix: str
) -> None:
    text = f"{number}{suffix}"

    canonical = quantity.canonical(text)

    assert quantity.parse(canonical) == quantity.parse(text)
    assert quantity.canonical(canonical) == canonical


@given(st.integers(min_value=1, max_value=2**60))
def test_whole_bytes_are_written_without_loss(value: int) -> None:
    assert quantity.parse(quantity.format_memory(value)) == value
