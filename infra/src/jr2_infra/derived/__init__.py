"""What the live objects say that jr2 applied: the checkpoint, the proof, and what is more."""
