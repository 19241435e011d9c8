"""The jr2 command."""
