"""The cluster's part of this machine: what it needs, makes, and takes away again.

Source: design §7.
"""
