"""What the Converge reads before it decides: the Instance, the cluster, images, Secrets.

A fact never writes, and decides nothing.

Source: design §2 and §5.1.
"""
