"""A log line as words, with `<*>` for what can only be a value: numbers, addresses, paths, quotes.

The first half of template mining. It sees a line's shape, in which every digit is 0, so all lines
of one shape have the same words. Bounded: the rest of a giant line is one value.
"""

import re

VALUE = "<*>"
_CHARS, _WORDS = 2_000, 100

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DATE = (
    rf"\b(?:{_DAY},? )?(?:{_MONTH} {{1,2}}\d+|\d+ {_MONTH})\b,?(?: \d+)?(?: \d+(?::\d+)+)?"
    r"(?: [A-Z]{3,4}\b)?(?: \d{4}\b)?"
)
_PLAIN_VALUES = re.compile(
    r"\b[a-zA-Z][\w+-]{0,20}://[^\s\"'<>,;()\[\]]+"
    rf"|{_DATE}"
    r"|(?<![\w:])(?:[0-9a-fA-F]{0,4}:){3,8}[0-9a-fA-F]{0,4}(?![\w:])"
    r"|(?<![\w.])(?:~?/|[A-Za-z]:\\|\\\\)[^\s,:;()\[\]{}\"'=<>]+(?:\?[^\s\"']*)?"
    r"|(?<![\w/.-])[\w.-]+/[\w.-]+/[\w./-]*"
)
_HINT = re.compile(rf"[/:\\]|{_MONTH} +\d|\d {_MONTH}")
_BRACKETS = re.compile(r"[\"']|\(\)|\[\]")
"""Most lines have nothing of the kind, and a look is cheaper than the work."""
_SETTING = re.compile(
    r"(?<=[\w\]])(?<!\bmsg)(?<!\bmessage)(?<!\berror)(?<!\berr)(?<!\breason)(?<!\bevent)"
    r"=(?!=)(?:\"[^\"]*\"|\[[^\]\s]*\]|[^\s,;()\[\]{}]+)"
)
"""What a name is set to, except where it is the message itself."""
_MEMBER = re.compile(r"\"([\w.@-]+)\": ?(\"(?:[^\"\\]|\\.)*\"|[^\s,{}\[\]]+),?")
_SAYING = frozenset({"msg", "message", "event", "error", "err", "reason"})
_QUOTED = re.compile(r"\"[^\"\s]*\"|(?<!\w)'[^'\s]*'(?!\w)|\(\)|\[\]")
_SAID = re.compile(r"\b(?:[Tt]rue|[Ff]alse|TRUE|FALSE|null|NULL|root)\b")
_NUMBERS = re.compile(
    r"\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{6,}\b"
    r"|[-+#*]{0,3}(?:\b[A-Za-z_]+-?)?\d\w*(?:[.:,/x-]{0,3}[-+]?\d\w*)*(?:%| ?[KMGT]?i?B\b)?"
)
_MAP = re.compile(r"\{\w+=<\*>(?:, \w+=<\*>)*\}")
_LIST = re.compile(r"<\*>(?:, <\*>)+")
"""However many they are, they are one value."""
_ENDPOINT = re.compile(
    r"(?<![\w./-])[A-Za-z][\w-]*(?:\.[\w-]+)+(?<!\.\w)(?<!\.(?:py|cc|go|rs|js|ts|rb))(?<!\.(?:cpp|php))"
    r"(?<!\.java)(?<!\.scala)[:/@](?=<\*>)|(?<=<\*>)[:/@][\w-]+(?:\.[\w-]+)+"
)
"""A machine's or a program's dotted name, beside a port or an address; a source file is none."""
_GLUED = re.compile(r"(?:[\w.#\\-]*<\*>[\w.#/\\-]*)+(?:[.,:/@+-]*<\*>)*")


def words_of(shape: str) -> tuple[str, ...]:
    """The words of a line; values that follow one another are one value."""
    text = shape[:_CHARS]
    if text.startswith('{"'):
        text = _MEMBER.sub(_member, text)
    if _HINT.search(text):
        text = _PLAIN_VALUES.sub(VALUE, text)
    if "=" in text:
        text = _SETTING.sub("=" + VALUE, text)
    if _BRACKETS.search(text):
        text = _QUOTED.sub(_emptied, text)
    text = _SAID.sub(VALUE, text)
    if "0" in text:
        text = _NUMBERS.sub(VALUE, text)
    if VALUE in text and (", " in text or "{" in text):
        text = _LIST.sub(VALUE, _MAP.sub(VALUE, text))
    words: list[str] = []
    for word in text.split(None, _WORDS)[:_WORDS]:
        whole = _GLUED.sub(VALUE, _ENDPOINT.sub("", word)) if VALUE in word else word
        if whole != VALUE or not words or words[-1] != VALUE:
            words.append(whole)
    return tuple(words)


def _member(found: re.Match[str]) -> str:
    """A member of a JSON object, as a setting; what is said stays."""
    name, value = found[1], found[2]
    return f"{name}={value if name in _SAYING else VALUE} "


def _emptied(found: re.Match[str]) -> str:
    return found[0][0] + VALUE + found[0][-1]
