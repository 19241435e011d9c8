"""Mistakes in binding what the Kit ships: each line that ends in `# refused` has a type error, and
no other has.
"""

from __future__ import annotations

from jr2 import customize
from jr2_machines import TaskDoor, task

customize(task, agents={"codr": {"model": "x/y"}})  # refused
customize(task, agents={"coder": {"modle": "x/y"}})  # refused
customize(task, effects={"tell": {"url": "https://h"}})  # refused
customize(task, actors={"work": {}})  # refused
customize(task, repos={"app": lambda door: door.prmpt})  # refused
customize(task, memory="4Gi")  # refused
bound = customize(task, agents={"coder": {"model": "x/y"}})
customize(bound, agents={"codr": {"model": "x/y"}})  # refused
TaskDoor(promt="x")  # refused
