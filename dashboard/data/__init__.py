"""What the pages show, read with the admin client."""
