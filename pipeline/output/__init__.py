"""What a job writes, and which log it was made from."""
