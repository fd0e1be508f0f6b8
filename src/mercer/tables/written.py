"""How a column of text writes its numbers: the decimal mark, what groups thousands, signs of money
and percents; decided by the column as a whole."""

from __future__ import annotations

from mercer.tables.arrow import Column, pa, pc

MONEY = (  # signs, and codes of ISO 4217 in capital letters that are no words
    r"(?:(?:US|CA|AU|NZ|HK|A|C|S|R)\$|zł|Kč|Rs\.?|Fr\.|[$€£¥₹₩₽₺₴₪₫₦฿]|"
    r"USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|AUD|NZD|CAD|HKD|SGD|TWD|KRW|THB|IDR|MYR|VND"
    r"|BRL|MXN|ARS|CLP|ZAR|NGN|KES|EGP|AED|SAR|QAR|KWD|PKR|BDT|LKR)"
)
PLAIN = ".,"  # the decimal mark, and what groups thousands
SPACES = " \u00a0\u2009\u202f"
APOSTROPHES = "'’"
LOOKED = 2000  # cells from which it is told
RARELY = 0.01  # of the cells: what fewer have is an oversight
SURE = 50  # values with a dot before three digits, which decimals of any length would not all have
DOUBTED = 5  # and so many are worth a word
GROUPED = ",."  # dots group thousands
_SPACED = rf"[1-9][0-9]{{0,2}}([{SPACES}][0-9]{{3}})+"
_QUOTED = rf"[1-9][0-9]{{0,2}}([{APOSTROPHES}][0-9]{{3}})+"
_INDIAN = r"[0-9]{1,2}(,[0-9]{2})+,[0-9]{3}"


def _grouped(mark: str) -> str:
    return rf"[0-9]{{1,3}}(\{mark}[0-9]{{3}})+"


def _shows(mark: str, other: str) -> str:
    """What shows that decimals have this mark: it is not followed by just three digits, or by three
    behind a zero or many digits, or beside groups by another one; or the other one groups twice."""
    behind = rf"([0-9]*\{mark}([0-9]{{1,2}}|[0-9]{{4,}})|([0-9]{{4,}}|0?)\{mark}[0-9]{{3}})"
    beside = rf"({_grouped(other)}|{_SPACED}|{_QUOTED})\{mark}[0-9]*"
    return rf"^({behind}|{beside}|[0-9]{{1,3}}(\{other}[0-9]{{3}}){{2,}})$"


_COMMA, _POINT = _shows(",", "."), rf"({_shows('.', ',')}|^{_INDIAN}$)"
_EITHER = r"^[1-9][0-9]{0,2}[.,][0-9]{3}$"  # 1,234 or 1.234, which may be thousands or not
_DOTTED = r"^[1-9][0-9]{0,2}[.][0-9]{3}$"
_POWER = rf"([a-df-wyzA-DF-WYZµΩ])[23]([/{SPACES}]|$)"  # m2, kg/m3; not 1e3 or 4x2
_LARGE = {" ": rf"^{_SPACED}([.,][0-9]*)?$", "'": rf"^{_QUOTED}([.,][0-9]*)?$"}


def written_of(cells: Column, points: str = "") -> str:
    """The decimal mark of a text column and, behind it, all marks that group thousands, one for its
    kind.

    A cell such as "1,234" shows nothing by itself: the others of the column decide, and where none
    shows more, its comma groups thousands and a point is a decimal one; unless values such as "12.450"
    stand beside whole ones below 1,000, and the file does not show decimal `points` elsewhere.

    >>> written_of(pa.array(["1.234,50 €", "2,5", "1.300"])), written_of(pa.array(["1,234", "$1.5"]))
    (',.', '.,')
    >>> written_of(pa.array(["1 234", "950"])), written_of(pa.array(["110 021", "120 044"]))
    ('., ', '.,')
    """
    if not len(bare := _bare(cells)):
        return PLAIN
    if not _count(bare, rf"[,{SPACES}{APOSTROPHES}]|[.].*[.]"):  # as most are
        return GROUPED if not points and dotted(bare) >= SURE else PLAIN
    marks = ",." if _count(bare, _COMMA) > _count(bare, _POINT) else PLAIN
    kinds = [kind for kind, form in _LARGE.items() if _count(bare, form)]
    if " " in kinds and _codes(cells, bare):
        kinds.remove(" ")
    return marks + "".join(kinds)


def dotted(cells: Column) -> int:
    """How many different values have one dot, before three digits, where all others are whole
    numbers below 1,000; 0 for any other column. Zeros and nines, which may stand for missing, do
    not show that.

    >>> dotted(pa.array(["1.374", "802", "12.450 €"])), dotted(pa.array(["1.374", "8.5", "802"]))
    (2, 0)
    >>> dotted(pa.array(["1.374", "0.802"])), dotted(pa.array(["1.374", "999"]))
    (0, 0)
    """
    bare = _bare(cells)
    bare = pc.unique(bare.filter(pc.not_equal(bare, "")))
    large, small = _count(bare, _DOTTED), _count(bare, r"^[0-9]{1,3}$")
    shown = small - _count(bare, r"^(0+|9+)$")
    return large if shown > 0 and large + small == len(bare) else 0


def about_dots(cells: Column, written: str, points: str = "") -> str:
    """What to tell of a column whose dots may group thousands, to follow its name; `points` is
    "given" where the user said what they are."""
    cells = cells.slice(0, LOOKED).drop_null()
    if points == "given" or (n := dotted(cells)) < DOUBTED:
        return ""
    bare = _bare(cells)
    large = cells.filter(pc.match_substring_regex(bare, _DOTTED))[0].as_py()
    small = cells.filter(pc.match_substring_regex(bare, r"^[1-9][0-9]{0,2}$"))[0].as_py()
    shown = f'has "{large[:20]}" beside "{small[:20]}"'
    if written[0] == ",":
        behind = f"three digits behind all its dots ({n:,} values or more)"
        taken = "were taken to group thousands; give --decimal . where they are decimal points"
        return f"{shown}, and {behind}, which {taken}."
    taken = "its dots were read as decimal points"
    return f"{shown}; {taken}: give --decimal , where they group thousands."


def about_percents(cells: Column) -> str:
    """What to tell of a column with percent signs on part of its values, to follow its name; a zero
    needs none.

    >>> about_percents(pa.array(["72 %", "0.3335", "0"]))[:44]
    'has percent signs on 1 of 2 values and none '
    >>> about_percents(pa.array(["72 %", "0"])), about_percents(pa.array(["72", "x"]))
    ('', '')
    """
    signs = _count(cells, r"[0-9.,]\s*[%‰]\)?$") if len(cells) else 0
    plain = _count(cells, r"[0-9][.,]?$") - _count(cells, r"^[+-]?0+([.,]0*)?$") if signs else 0
    if plain <= 0:
        return ""
    some = f"has percent signs on {signs:,} of {signs + plain:,} values and none on the others"
    return f"{some}; all were read as they stand, 72 % as 72: write them in one way."


def doubtful(cells: Column) -> str:
    """A cell of a column that could be read with either decimal mark, "" where another shows it.

    >>> doubtful(pa.array(["$1,234", "7"])), doubtful(pa.array(["1,234", "1.5"]))
    ('$1,234', '')
    """
    cells = cells.slice(0, LOOKED).drop_null()
    bare = _bare(cells)
    found = cells.filter(pc.match_substring_regex(bare, _EITHER)) if len(bare) else bare
    if not len(found) or _count(bare, _COMMA) or _count(bare, _POINT):
        return ""
    return str(found[0].as_py())


def currencies(cells: Column) -> list[str]:
    """The signs of money before or behind the numbers of a text column, without rare ones; sorted.

    >>> currencies(pa.array(["$5", "€ 4", "3 USD", "x"]))
    ['$', 'USD', '€']
    """
    if not _count(cells, MONEY):
        return []
    found = pc.extract_regex(cells, rf"^[(+-]*\s*(?P<before>{MONEY})\s*[+-]?[0-9]").field("before")
    behind = pc.extract_regex(cells, rf"[0-9.,-]\s*(?P<behind>{MONEY})\)?$").field("behind")
    both = pa.concat_arrays([found.drop_null(), behind.drop_null()])
    both = pc.utf8_rtrim(both, ".")  # Rs is Rs.
    counted = pc.value_counts(both).to_pylist() if len(both) else []
    often = RARELY * len(cells)
    return sorted(i["values"] for i in counted if i["values"] and i["counts"] > often)


def undressed(column: Column, written: str = PLAIN) -> Column:
    """Without signs of money, percents, marks of thousands, and brackets that mean a minus; with a
    decimal point.

    >>> undressed(pa.array(["($1,234.50)", "-12 %", "CHF 5.–"])).to_pylist()
    ['-1234.50', '-12', '5']
    >>> undressed(pa.array(["1.234", "1 234,5 €", "0.5"]), ",. ").to_pylist()
    ['1234', '1234.5', '0.5']
    """
    bare = pc.replace_substring(column, "−", "-")
    bare = pc.replace_substring_regex(bare, r"^\(([^()]*[0-9][^()]*)\)$", r"-\1")
    bare = pc.replace_substring_regex(bare, rf"^([+-]?)\s*{MONEY}[\s\p{{Z}}]*([+-]?)", r"\1\2")
    bare = pc.replace_substring_regex(bare, rf"[\s\p{{Z}}]*({MONEY}|%|‰)$", "")
    bare = pc.replace_substring_regex(bare, r"([0-9])[.,][-–—]{1,2}$", r"\1")
    decimal, group = written[0], written[1]
    forms = {group: rf"{_grouped(group)}|{_INDIAN if group == ',' else '[0-9]+'}"}
    forms |= {SPACES: _SPACED} if " " in written else {}
    forms |= {APOSTROPHES: _QUOTED} if "'" in written else {}
    for marks, form in forms.items():
        large = pc.match_substring_regex(bare, rf"^[+-]?({form})(\{decimal}[0-9]*)?$")
        bare = pc.if_else(large, pc.replace_substring_regex(bare, f"[{marks}]", ""), bare)
    if decimal == ".":
        return bare
    local = pc.match_substring_regex(bare, r"^[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?$")
    return pc.if_else(local, pc.replace_substring(bare, ",", "."), bare)


def _bare(cells: Column) -> Column:
    """The first cells, from their first digit or mark to their last digit."""
    found = cells.slice(0, LOOKED).drop_null()
    found = pc.replace_substring_regex(found, rf"^[(+-]*\s*{MONEY}", "")  # some end with a point
    found = pc.replace_substring_regex(found, _POWER, r"\1\2")
    return pc.replace_substring_regex(found, r"^[^0-9.,]+|[^0-9]+$", "")


def _count(cells: Column, form: str) -> int:
    return int(pc.sum(pc.match_substring_regex(cells, form)).as_py() or 0)


def _codes(cells: Column, bare: Column) -> bool:
    """Whether digits in groups may be codes, such as "110 021": all are of one length, and there is
    no sign beside them."""
    size = pc.min_max(pc.utf8_length(bare)).as_py()
    found = cells.slice(0, LOOKED).drop_null()
    dressed = pc.sum(pc.not_equal(found, bare)).as_py()
    return bool(size["min"] == size["max"] and 2 * dressed < len(found))
