"""What a jr2 Instance imports."""
