"""The command line: `mercer fit`, `mercer predict`, `mercer demo`. Nothing heavy is imported before a command needs it."""
try:
    from mercer.cli.app import app, main
except KeyboardInterrupt:  # Ctrl-C before there is a command to guard
    raise SystemExit("mercer: interrupted; nothing was left half-written.") from None

__all__ = ["app", "main"]
