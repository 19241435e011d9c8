"""The Converge: facts, a pure plan, and the Pulumi program that applies it."""
