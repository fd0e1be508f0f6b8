"""The flags that say how csv files are written."""

from __future__ import annotations

import codecs

from mercer.cli.guard import UsageError
from mercer.tables import CsvOptions

_NAMES = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
    "pipe": "|",
    "space": " ",
}


def csv_options(
    delimiter: str | None, decimal: str | None, header: bool | None, encoding: str | None
) -> CsvOptions:
    """The settings that the flags give; what is None is found out.

    >>> csv_options("tab", ",", None, None).given()
    {'delimiter': '\\t', 'decimal': ','}
    """
    sign = _NAMES.get(delimiter.lower(), delimiter) if delimiter is not None else None
    if sign is not None and (len(sign) != 1 or sign in '\r\n"' or not sign.isascii()):
        raise UsageError(
            f"--delimiter must be one character, or tab, comma, semicolon, bar or space, got {delimiter!r}."
        )
    if decimal not in (None, ".", ","):
        raise UsageError(f"--decimal must be . or a comma, got {decimal!r}.")
    if sign is not None and sign == decimal:
        raise UsageError(
            f"--delimiter and --decimal are both {sign!r}; one character cannot be both."
        )
    return CsvOptions(delimiter=sign, decimal=decimal, header=header, encoding=_known(encoding))


def _known(encoding: str | None) -> str | None:
    try:
        if encoding is not None and not codecs.lookup(encoding)._is_text_encoding:
            raise LookupError
    except LookupError:
        raise UsageError(
            f"--encoding {encoding} is not known; give one such as utf-8, utf-16, latin-1 or cp1252."
        ) from None
    return encoding


def flags(options: CsvOptions) -> list[str]:
    """The words of the command line that give these settings again.

    >>> flags(CsvOptions(delimiter=";", header=False))
    ['--delimiter', ';', '--no-header']
    """
    named = {
        "--delimiter": "tab" if options.delimiter == "\t" else options.delimiter,
        "--decimal": options.decimal,
    }
    named["--encoding"] = options.encoding
    header = [] if options.header is None else ["--header" if options.header else "--no-header"]
    return [
        word for flag, value in named.items() if value is not None for word in (flag, value)
    ] + header
