"""`python -m mercer.demo` is `mercer demo`: a small real table, the whole path, the report last."""

from mercer.cli.app import app


def main() -> None:
    """Run it."""
    app(["demo"], prog_name="mercer")


if __name__ == "__main__":
    main()
