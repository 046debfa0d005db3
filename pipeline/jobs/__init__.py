"""The jobs as programs for ``spark-submit``, with the arguments of the commands of the same names."""
