"""What a jr2 Instance imports."""

from __future__ import annotations

from .built import BuiltMachine, InputRefused
from .errors import BuildRefused
from .events import AgentEvent, Event, ExternalEvent, Message
from .kernel import EventRefused
from .machine import Machine
from .run_data import Context, Start
from .tasks import Task, TaskError

__all__ = [
    "AgentEvent",
    "BuildRefused",
    "BuiltMachine",
    "Context",
    "Event",
    "EventRefused",
    "ExternalEvent",
    "InputRefused",
    "Machine",
    "Message",
    "Start",
    "Task",
    "TaskError",
]
