"""The modes of INVOKE_BROKER_TO_RESET_OFFSET (222), one module each (``docs/reset.md``)."""
