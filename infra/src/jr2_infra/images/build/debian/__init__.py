"""The layers that come from Debian packages.

`sets` says what is asked for, `unpack` extracts packages without running their scripts, and `base`
makes root file systems of them. The packages themselves come from `..mirror`.

Source: design §6.1, ADR-0119.
"""
