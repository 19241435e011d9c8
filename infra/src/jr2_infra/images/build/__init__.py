"""How a Kit image is made: everything in this folder decides what stands in one.

The content hash of an image covers this folder, so nothing that does not change an image belongs
here: the cache, the lock and the command are its neighbours.

A build needs root on Debian or Ubuntu, a mirror that apt reaches, and a package index that `uv`
reaches; with the packages of an earlier build at hand, no network.
"""
