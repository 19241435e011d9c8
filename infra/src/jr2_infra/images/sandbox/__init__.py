"""Sandbox Images: the folders that they are built from, and whether they can be built at all."""
