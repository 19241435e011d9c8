"""Held secrets and referenced ones."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import HOLD, Row

ROWS: Final = (
    Row(
        text='error: harness.env_from references Secret "<name>", which does not exist in namespace "<namespace>" — create it first: kubectl -n <namespace> create secret generic <name> --from-literal=KEY=...',
        page=HOLD,
        tests=(
            "tests/unit/infra/secrets/test_step_ten.py::test_env_from_names_a_secret_that_does_not_exist",
        ),
    ),
    Row(
        text='error: secrets[<i>] needs exactly one of value or value_from — <NAME> has neither, which is what an unset .env variable reads as: set <NAME> in .env, or reference a Secret with value_from=SecretKeyRef(name="<name>", key="<key>") (ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_neither_value_nor_value_from",),
    ),
    Row(
        text="error: secrets[<i>] needs exactly one of value or value_from — not both (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_both_value_and_value_from",),
    ),
    Row(
        text="error: secrets[<i>].value is empty — set <NAME> in .env (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_an_empty_value",),
    ),
    Row(
        text="error: secrets[<i>].value holds a character a header cannot carry (outside printable ASCII) or leading or trailing space — a pasted newline, most likely; the value itself is not shown (ADR-0059)",
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_value_that_no_header_carries",),
    ),
    Row(
        text='error: secrets[<i>].value_from names Secret "<name>", which does not exist in the instance\'s namespace — create it first: kubectl create secret generic <name> --from-literal=<key>=... (ADR-0019, ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_secret_that_does_not_exist",),
    ),
    Row(
        text='error: secrets[<i>].value_from names key "<key>" of Secret "<name>", which has no such key (ADR-0059)',
        page=HOLD,
        tests=("tests/unit/infra/secrets/test_step_ten.py::test_a_key_that_does_not_exist",),
    ),
)
