"""The races of the laboratory with the official Java client, against the real broker and ours."""
