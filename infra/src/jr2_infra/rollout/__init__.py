"""Wait for a rollout, read what its pods say, and explain it."""
