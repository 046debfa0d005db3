"""mqadmin's commands, one module each: same names, flags, columns and widths as RocketMQ 4.9.4's tool."""
