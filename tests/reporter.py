"""The reporter of a Converge in tests: it keeps all that it hears."""

from __future__ import annotations


class Reporter:
    """Keeps what was said, shown and asked.

    Args:
        answer: the answer to each question; without one nothing is to be asked.
        warns: whether a warning may come.
    """

    def __init__(self, *, answer: bool | None = None, warns: bool = False) -> None:
        self._answer = answer
        self._warns = warns
        self.lines: list[str] = []
        """Lines and warnings, in order."""
        self.shown: list[str] = []
        """What took long."""
        self.questions: list[str] = []
        self.said: list[tuple[str, str | None, str]] = []
        """Kind, text and code of all but the questions, in order."""

    def line(self, text: str, *, code: str = "line") -> None:
        """Keep a line."""
        self.lines.append(text)
        self.said.append(("line", text, code))

    def warning(self, text: str, *, code: str = "warning") -> None:
        """Keep a warning."""
        assert self._warns, text
        self.lines.append(text)
        self.said.append(("warning", text, code))

    def progress(self, text: str | None) -> None:
        """Keep what is shown."""
        self.said.append(("progress", text, ""))
        if text is not None:
            self.shown.append(text)

    def confirm(self, question: str) -> bool:
        """Keep a question and answer it."""
        assert self._answer is not None, f"nothing was to be asked: {question}"
        self.questions.append(question)
        return self._answer
