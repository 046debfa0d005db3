"""A watch in a file: written while another tool resets a group, judged afterwards."""
