"""What llama.cpp makes of a config."""
