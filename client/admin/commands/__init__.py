"""mqadmin's commands, a module each, with the names, flags, columns and widths of RocketMQ 4.9.4's tool."""
