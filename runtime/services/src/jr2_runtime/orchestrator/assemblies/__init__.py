"""Assemblies on the state volume: unpacked member by member, checked, held, released.

Source: design §5.5, spec/runtime.md §1.13.
"""
