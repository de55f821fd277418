"""Session Relay: full-text search over the coding-agent sessions of this machine and of others."""

__version__ = "0.1.0"
