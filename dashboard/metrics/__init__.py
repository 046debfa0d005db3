"""What ``/metrics`` exports: which answer of a broker feeds which metric."""
