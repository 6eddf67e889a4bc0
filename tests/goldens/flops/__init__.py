"""What torch's flop counter sees."""
