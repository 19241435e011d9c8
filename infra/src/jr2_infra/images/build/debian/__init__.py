"""The layers that come from Debian packages, as `requirements/debian-*.txt` list them.

`sets` says what is asked for, `lists` reads what it was resolved to, `archive` fetches exactly
that, `unpack` extracts it without running a package's script, and `base` and `userland` make a
root file system of it.

Source: design §6.1, ADR-0119.
"""
