"""The wanted objects: one module for each part of the Converge, each a pure function to dicts."""
