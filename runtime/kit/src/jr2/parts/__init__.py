"""What a Machine carries beside its chart: Agents, Effects, child Machines, and a Workspace.

A part is plain data under a slot of its Machine, so that it can be walked, checked and bound anew
without running anything. Each module is one kind of part, or one thing that is done with parts.

Source: spec/authoring.md §2.
"""
