"""Secrets of an Instance: who holds which, what is refused, and what is written for them.

`entries` says which secrets there are and what uses them; `rules` refuses what needs no cluster;
`values` and `references` judge in step 10 of `jr2 up` whether values are there and can be used;
`authority` makes the certificates that a Custodian shows; `trust` reads the user's own authorities;
`decided` puts it together for the plan.

Source: spec/converge.md §9, spec/authoring.md §3.5, design §6.3.
"""
