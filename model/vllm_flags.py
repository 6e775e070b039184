"""A vLLM command line taken apart: words, environment, flags with their values.

Text from anywhere is only ever split and compared with tables, never run or expanded. The flags
are data: ``catalogue/vllm_flags.csv`` has one row a flag of vLLM's engine and server, with the
columns

=============  ====================================================================
``short``      its short form, if it has one
``values``     0 (a switch, which ``--no-...`` turns off), 1, ? (0 or 1), * (any)
``role``       setting (of a scenario), none (no effect on scheduling), unmodelled
``field``      path of the scenario's field that a setting sets
``reads``      how its value is read
``engine``     the only engine that has it (empty: both)
``elsewhere``  what it is under the other engine: refused, none or unmodelled
``harmless``   value with which an unmodelled flag changes nothing
=============  ====================================================================
"""

from __future__ import annotations

import csv
import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType

from model.errors import LabError
from model.trace_formats import shown

LONGEST_COMMAND = 20_000  # characters; a real one has a few hundred
MOST_WORDS = 2_000

NUMBER = re.compile(r"[+-]?(\d{1,300}\.?\d{0,300}|\.\d{1,300})([eE][+-]?\d{1,3})?", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.ASCII | re.DOTALL)
_CONTINUATION = re.compile(r"\\[ \t]*(?:#[^\n]*)?(?:\n|$)")
_LEVEL = re.compile(r"^-O(\d)$", re.ASCII)
_REDIRECTION = re.compile(r"(?<=\s)\d?&?>{1,2}(?:&\d|\s*[^\s;|&]+)")
_LONG_DASH = re.compile(r"(?<!\S)[—–](?=[A-Za-z])")  # what word processors make of "--"
_TYPOGRAPHY = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u3000": " "})


@dataclass(frozen=True, slots=True)
class Flag:
    """A row of the table of flags."""

    flag: str
    short: str
    values: str
    role: str
    field: str
    reads: str
    engine: str
    elsewhere: str
    harmless: str


@dataclass(frozen=True, slots=True)
class Given:
    """A flag as it stands in a command; ``value`` is "true" or "false" for a switch."""

    flag: str
    value: str


@dataclass(slots=True)
class Command:
    """What a text says: environment, flags in their order, and words that belong to no flag."""

    environment: dict[str, str] = field(default_factory=dict)
    given: list[Given] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    faults: list[LabError] = field(default_factory=list)


@cache
def flags() -> Mapping[str, Flag]:
    """Every flag of the table by its long name."""
    text = resources.files("model.catalogue").joinpath("vllm_flags.csv").read_text("utf-8")
    return MappingProxyType({row["flag"]: Flag(**row) for row in csv.DictReader(text.splitlines())})


@cache
def _shorts() -> Mapping[str, str]:
    return MappingProxyType({flag.short: name for name, flag in flags().items() if flag.short})


def closest(name: str) -> str:
    """A known flag that an unknown one may have meant, or ""."""
    near = difflib.get_close_matches(name[:80], flags(), 1, 0.8)
    return near[0] if near else ""


def take_apart(text: str) -> Command:
    """Split a command; whatever is odd in it becomes a fault or an unknown word.

    Understands line continuations, quotes, comments, redirections, environment prefixes, and the
    forms ``vllm serve MODEL``, ``python -m vllm.entrypoints....api_server``, ``docker run ...
    vllm/vllm-openai`` and bare flags. Raises LabError vllm_too_long, vllm_quotes or
    vllm_not_a_command.
    """
    words = _words(text)
    command = Command()
    first = _first_argument(words, command.environment)
    _arguments(words[first:], command)
    return command


def _words(text: str) -> list[str]:
    if len(text) > LONGEST_COMMAND:
        raise LabError("vllm_too_long", limit=LONGEST_COMMAND)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    text = _LONG_DASH.sub("--", text.translate(_TYPOGRAPHY))
    text = _REDIRECTION.sub(" ", _CONTINUATION.sub(" ", text))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        raise LabError("vllm_quotes") from None
    if len(words) > MOST_WORDS:
        raise LabError("vllm_too_long", limit=LONGEST_COMMAND)
    return [word for word in words if word.strip()]


def _first_argument(words: Sequence[str], environment: dict[str, str]) -> int:
    """Index of the word after the program's name; notes the assignments before it."""
    for index, word in enumerate(words):
        program = word.rsplit("/", 1)[-1]
        following = words[index + 1] if index + 1 < len(words) else ""
        if program == "vllm" and following == "serve":
            return index + 2
        if word.startswith("vllm.entrypoints.") or "vllm/vllm-openai" in word:
            serve = following == "serve"  # "vllm.entrypoints.cli.main serve"
            return index + 1 + serve
        if _ASSIGNMENT.fullmatch(word):
            name, _, value = word.partition("=")
            environment[name] = value
    if words and words[0].startswith("--"):
        return 0
    raise LabError("vllm_not_a_command", value=shown(" ".join(words[:4])))


def _arguments(words: Sequence[str], command: Command) -> None:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word and not word.strip(";|&"):
            if index > 1 or command.given:
                return  # another command begins
            continue
        if not _is_flag(word):
            if word != "-":
                command.words.append(word)
            continue
        name, equals, value = _LEVEL.sub(r"--optimization-level=\1", word).partition("=")
        name, value_of_switch = _name_of(name)
        flag = flags().get(name)
        if flag is None:
            taken = [] if equals else _values(words, index, 1)
            index += len(taken)
            command.unknown.append(shown(name))
            continue
        if flag.values == "0":
            following = words[index].lower() if index < len(words) else ""
            if not equals and following in ("true", "false"):
                value, equals = following, "="
                index += 1
            on = (value.lower() if equals else "true") == "true"
            if equals and value.lower() not in ("true", "false"):
                command.faults.append(bad_value(name, value, "true or false"))
                continue
            command.given.append(Given(name, "true" if on == value_of_switch else "false"))
            continue
        if not equals:
            most = len(words) if flag.values == "*" else 1
            taken = _values(words, index, most)
            index += len(taken)
            if not taken and flag.values == "1":
                command.faults.append(LabError("vllm_value_missing", flag=name))
                continue
            value = " ".join(taken)
        command.given.append(Given(name, value))


def _name_of(name: str) -> tuple[str, bool]:
    """The long name in vLLM's spelling, and what giving it says of a switch."""
    if not name.startswith("--"):
        return _shorts().get(name, name), True
    name = "--" + name[2:].replace("_", "-")
    known = flags()
    if name not in known and name.startswith("--no-"):
        positive = "--" + name[5:]
        if positive in known and known[positive].values == "0":
            return positive, False
    if name not in known and "." in name:  # --compilation-config.level 3
        name = name.split(".", 1)[0]
    return name, True


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not NUMBER.fullmatch(word)


def _values(words: Sequence[str], start: int, most: int) -> list[str]:
    taken: list[str] = []
    for word in words[start : start + most]:
        if _is_flag(word) or not word.strip(";|&"):
            break
        taken.append(word)
    return taken


def bad_value(flag: str, value: str, expected: str) -> LabError:
    """The sentence for a flag whose value cannot be read."""
    return LabError("vllm_bad_value", flag=flag, value=shown(value), expected=expected)
