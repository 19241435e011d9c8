"""The Machines of the Workflows: what the walk refuses."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import CHECK, Row

ROWS: Final = (
    Row(
        text='refusing: workflow "<workflow>": `machine` is <what it is>, but Machine(…).build() did not make it, so no door reads its input: a run starts with any input, and the Console start form is only a field for JSON — export what .build() returns (ADR-0033)',
        page=CHECK,
        tests=("tests/unit/kit/test_walk.py::test_the_door_rule",),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Repo Slot "<slot>" open — bind it where the Machine is registered: machine = customize(<import>, repos={"<slot>": "<url>"})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves its Repo Slots open — bind it where the Machine is registered: machine = customize(<import>, repos={"<slot>": "<url>"})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open — bind it where the Machine is registered: machine = customize(<import>, agents={"<agent>": {"model": "<provider>/<model>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the url of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"url": "https://<host>/<path>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the argv of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"argv": ["<program>", "<arg>"]}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the url and secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"url": "https://<host>/<path>", "secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves the argv and secret of Effect "<effect>" open — bind it where the Machine is registered: machine = customize(<import>, effects={"<effect>": {"argv": ["<program>", "<arg>"], "secret": "<name>"}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open (on the Machine composed as "<slot>") — bind it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"agents": {"<agent>": {"model": "<provider>/<model>"}}}})  (ADR-0054)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Repo Slot "<slot>" open (on the Machine composed as "<slot>" → "<slot>") — bind it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"actors": {"<slot>": {"repos": {"<slot>": "<url>"}}}}})  (ADR-0051)',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" leaves Agent "<agent>" open on a Machine invoked inline — no customize() reaches an actor without a slot key; declare it with .child("<slot>", …) and bind it there  (ADR-0049, ADR-0054)',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_what_no_line_mends",),
    ),
    Row(
        text='refusing: workflow "<workflow>": the Size leaves the Harness container <memory> memory and <cpu> cpu, and it needs 256Mi and more than 0 cpu: <total> minus Custodian 64Mi/50m (kit); make <fields> larger; a composer retunes it where the Machine is registered: machine = customize(<import>, resources={"limits": {"memory": "<memory>"}})',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='refusing: workflow "<workflow>" (on the Machine composed as "<slot>"): the Size leaves the Harness container <memory> memory and <cpu> cpu, and it needs 256Mi and more than 0 cpu: <total> minus Custodian 64Mi/50m (kit), User Container <size> (<field>), Effector 64Mi/50m (kit); make <field> larger; a composer retunes it where the Machine is registered: machine = customize(<import>, actors={"<slot>": {"resources": {"limits": {"memory": "<memory>"}}}})',
        page=CHECK,
        tests=(
            "tests/unit/infra/test_machine_refusals.py::test_each_line_is_whole_and_mends_its_refusal",
        ),
    ),
    Row(
        text='error: Workspace of workflow "<workflow>": the push of Repo Slot "<slot>" (<url>): git.credentials entry "<match>" cannot push — its token\'s variable <NAME> is not set — set it in .env (ADR-0051)',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_what_no_line_mends",),
    ),
    Row(
        text='error: the Sandbox Image context <folder> cannot be read (<code>) — a `workspace()` names its image with `context(__file__, "<dir>")`, so that directory must exist beside the Machine\'s own module (ADR-0037/0049).',
        page=CHECK,
        tests=("tests/unit/infra/test_machine_refusals.py::test_the_folder_of_a_sandbox_image",),
    ),
)
