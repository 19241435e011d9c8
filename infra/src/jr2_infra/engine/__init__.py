"""The Pulumi engine as the Converge runs it: alone, private, and never longer than its command.

Source: design §5.2–5.4.
"""
