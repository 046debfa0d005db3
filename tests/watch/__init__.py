"""The rules of watched resets, on samples."""
