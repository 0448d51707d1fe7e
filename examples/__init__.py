"""Runnable examples. They leave nothing behind and reach nothing but this machine."""
