"""The Machines that the Kit ships: ordinary Machines, to be bound with `customize` and registered."""

from .task_machine import Approve, Finish, RequestChanges, TaskDoor, TaskOutcome, task

__all__ = ["Approve", "Finish", "RequestChanges", "TaskDoor", "TaskOutcome", "task"]
