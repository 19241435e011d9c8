"""The official release of a program: its address, its committed sum, and how it gets here.

`table` says what could be fetched and why not, `download` fetches a file that is resumed and
checked, and `unpack` takes the one member out of an archive that is wanted.

Source: design §7.
"""
