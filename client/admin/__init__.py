"""The admin client, and mqadmin's commands that use it."""
