"""The sub-commands of ``rewindmq race``, one module each, with ``add_arguments``, ``run`` and ``EPILOG``."""
