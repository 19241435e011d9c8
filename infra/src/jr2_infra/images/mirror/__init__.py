"""Debian packages as `requirements/debian-*.txt` lists them, from the mirrors that apt knows.

`lists` reads and writes the lists, `archive` fetches exactly what they name, `refresh` resolves
them anew, and `sources_list` picks the mirrors. Since a package is taken by its digest, nothing
here decides what stands in an image: that is `build/`.

Source: design §6.1, ADR-0119.
"""
