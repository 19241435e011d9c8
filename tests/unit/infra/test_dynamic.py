"""What all dynamic providers do alike, and how their errors and settings travel."""

from __future__ import annotations

import base64
import json
import pickle
import stat
import sys
import traceback
import types
from collections.abc import Mapping
from pathlib import Path

import pytest

from jr2.errors import Aborted, Jr2Error, Refusal, StepFailed
from jr2_infra import dynamic
from jr2_infra.derived.urns import provider_constant
from jr2_infra.engine.failure import ENV_FAILURE_FILE, read_failure, write_failure
from jr2_infra.engine.run_file import ENV_RUN_FILE, read_run_file, write_run_file


class Recorder(dynamic.StepProvider):
    """A provider that remembers, for the test, what it was asked."""

    asked: list[tuple[dict[str, str], dict[str, str] | None]]

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        self.asked.append((dict(inputs), None if previous is None else dict(previous)))
        dynamic.say("done", code="x")
        if inputs.get("fail"):
            raise Refusal(inputs["fail"])


@pytest.fixture
def provider() -> Recorder:
    made = Recorder()
    made.asked = []
    return made


def test_inputs_are_the_outputs_of_create_and_update(provider: Recorder) -> None:
    old, new = {"hash": "a", "__provider": "p"}, {"hash": "b", "__provider": "p"}

    assert provider.create(dict(old)).outs == {"hash": "a"}
    assert provider.update("id", old, dict(new)).outs == {"hash": "b"}
    assert provider.asked == [({"hash": "a"}, None), ({"hash": "b"}, {"hash": "a"})]


def test_the_class_behind_a_step_is_no_difference(provider: Recorder) -> None:
    assert (
        provider.diff("id", {"a": "1", "__provider": "x"}, {"a": "1", "__provider": "y"}).changes
        is False
    )
    assert (
        provider.diff("id", {"a": "1", "__provider": "x"}, {"a": "2", "__provider": "x"}).changes
        is True
    )


def test_the_constant_is_the_class_by_name() -> None:
    """Pulumi unpickles it; here the plain pickle of the standard library does."""
    constant = base64.b64decode(provider_constant("Recorder"))
    assert constant == b"cjr2_infra.providers\nRecorder\n(tR."
    local = constant.replace(b"jr2_infra.providers", b"collections").replace(
        b"Recorder", b"Counter"
    )
    assert pickle.loads(local) == {}


def test_an_error_goes_to_the_file_and_a_marker_is_raised(
    provider: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = tmp_path / "failure.json"
    monkeypatch.setenv(ENV_FAILURE_FILE, str(failure))

    with pytest.raises(dynamic.ProviderMarker) as caught:
        provider.create({"fail": "CANARY is wrong\n  line two", "__provider": "p"})

    assert "CANARY" not in repr(caught.value)
    assert caught.value.__cause__ is None
    said = read_failure(failure)
    assert said is not None
    assert said.printed == "refusing: CANARY is wrong\n  line two"


@pytest.mark.parametrize(
    "error",
    [
        Refusal("r"),
        StepFailed("s"),
        StepFailed("diagnosis", prefix=""),
        Aborted("aborted"),
        Jr2Error("plain"),
    ],
)
def test_an_error_comes_back_as_it_is_printed(error: Jr2Error, tmp_path: Path) -> None:
    path = tmp_path / "failure.json"
    write_failure(error, {ENV_FAILURE_FILE: str(path)})

    back = read_failure(path)

    assert back is not None
    assert (back.printed, isinstance(back, Refusal)) == (error.printed, isinstance(error, Refusal))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_first_error_stands(tmp_path: Path) -> None:
    path = tmp_path / "failure.json"
    assert read_failure(path) is None
    for text in ("first", "second"):
        write_failure(StepFailed(text), {ENV_FAILURE_FILE: str(path)})

    said = read_failure(path)
    assert said is not None
    assert str(said) == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["failure.json"]


def test_without_a_command_the_error_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_failure(Refusal("no"), {})

    assert capfd.readouterr().err == "refusing: no\n"


def test_what_a_provider_says_is_one_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENV_RUN_FILE, "/run.json")
    dynamic.say("two\nlines", code="c")
    dynamic.warn("warning: w")
    dynamic.progress(None)

    sent = [line.removeprefix(dynamic.SAY) for line in capsys.readouterr().out.splitlines()]
    assert [json.loads(line) for line in sent] == [
        {"line": "two\nlines", "code": "c"},
        {"warning": "warning: w", "code": "warning"},
        {"progress": None},
    ]


def test_where_no_command_listens_the_lines_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENV_RUN_FILE, raising=False)
    dynamic.say("done", code="c")
    dynamic.warn("warning: w")
    dynamic.progress("long")

    assert capsys.readouterr().out == "done\nwarning: w\n"


def test_neither_the_run_nor_a_step_that_stands_is_a_difference(provider: Recorder) -> None:
    old = {"a": "1", "nonce": "first", "due": "true"}

    def changes(**news: str) -> object:
        return provider.diff("id", old, news).changes

    assert changes(a="1", nonce="second", due="false") is False
    assert changes(a="1", nonce="second", due="true") is True
    assert changes(a="2", nonce="second", due="false") is True


def test_an_error_of_a_plain_run_is_its_text_alone(
    provider: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi's plugin answers with `traceback.format_exc` of its own module."""
    plugin = types.ModuleType("__main__")
    vars(plugin).update(traceback=traceback, DynamicResourceProviderServicer=object)
    monkeypatch.setitem(sys.modules, "__main__", plugin)

    try:
        provider.create({"fail": "it is held\n  by x", "nonce": "n", "__provider": "p"})
    except dynamic.SaidError:
        answer = vars(plugin)["traceback"].format_exc()
    assert answer == "refusing: it is held\n  by x"

    try:
        raise ValueError("a fault of ours")
    except ValueError:
        answer = vars(plugin)["traceback"].format_exc()
    assert "Traceback" in answer
    assert "a fault of ours" in answer


def test_settings_travel_in_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_run_file(path, {"namespace": "demo"})

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_run_file({ENV_RUN_FILE: str(path)}) == {"namespace": "demo"}
