"""What models hold after some tokens."""
