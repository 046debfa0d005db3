"""The admin client, and mqadmin's commands over it."""
