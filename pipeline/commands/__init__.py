"""The sub-commands of ``rewindmq pipeline``: each has ``add_arguments``, ``run`` and ``EPILOG``."""
