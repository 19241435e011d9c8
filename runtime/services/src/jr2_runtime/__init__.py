"""The programs that run in the pods of a jr2 Instance."""
