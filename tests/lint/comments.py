#!/usr/bin/env python3
"""comments.py [--write | WORD [DOMAIN]]: is no comment written in words that others must puzzle out?

A comment is plain English: subject, verb, object; a thing is "it". Counted are, in product code (a key of comments.txt is
a domain and one of these):

    who, whoever, whose   of a thing, which is "that" or "which"; after a word for people ("the user who") they are free
    anew                  "again"
    of                    a sentence that begins with "Of": say what it is, not only whose
    torn                  a declaration that its own comment has broken over two lines: the comment goes above it

The counts may only fall (counts.py). With a word: the places. Exits with 0, or with 1 after one line for each count.
"""
import collections
import pathlib
import re
import sys

import counts

COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`[^`]*`)|/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*', re.S)
PEOPLE = (r"people|persons?|users?|somebody|someone|anybody|anyone|everybody|everyone|nobody|no one|one|those|"
          r"visitors?|admins?|engineers?|operators?|attackers?|viewers?|him|her")
RULES = {
    "who": re.compile(r"\bwho\b"),
    "whoever": re.compile(r"\bwhoever\b"),
    "whose": re.compile(r"\bwhose\b"),
    "anew": re.compile(r"\banew\b"),
    "of": re.compile(r"(?:^|[.!?] +)of\b"),
}
AFTER_PEOPLE = re.compile(rf"\b(?:{PEOPLE}),? +who(?:se)?\b")
TORN = re.compile(r"^[ \t]+(?!return\b|else$|case\b|goto\b)[A-Za-z_][\w \t]*\**\n[ \t]+\**\w+(?:\[[^\]\n]*\])*;[ \t]*/\*\*?<?", re.M)


def plain(comment):
    """Its text without stars, in lower case, on one line."""
    text = re.sub(r"^/\*+<?|\*+/$|^[ \t]*(?://+|\*(?!/))", "", comment, flags=re.M)
    return re.sub(r"\s+", " ", text).strip().lower()


def places_of(text):
    """(word, offset) of each place in a file."""
    for match in COMMENT.finditer(text):
        if match[1] is not None:
            continue
        said = AFTER_PEOPLE.sub("people", plain(match[0]))
        for word, rule in RULES.items():
            for _ in rule.finditer(said):
                yield word, match.start()
    for match in TORN.finditer(text):
        yield "torn", match.start()


def words_of(text):
    return sorted(word for word, _ in places_of(text))


def check_itself():
    assert words_of('/** The task that WHO started, the user who asks, a job whose end is near. */ "who"') == ["who", "whose"]
    assert words_of("/* Of the job.\n * It is made anew. Of that whoever asks. */\nint of; // a way of its own") == [
        "anew", "of", "of", "whoever"]
    assert words_of("struct a {\n    const char *\n        dir; /**< Absolute. */\n    int n; /**< Files. */\n};") == ["torn"]
    assert words_of("int f(void)\n{\n    return n /* of all */;\n}") == ["of"]


def main():
    check_itself()
    found, places = collections.Counter(), []
    for domain, path, text in counts.product_texts():
        for word, at in places_of(text):
            found[f"{domain} {word}"] += 1
            places.append((word, domain, f"{path.relative_to(counts.ROOT)}:{text.count(chr(10), 0, at) + 1}"))
    wanted = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    if wanted:
        print("\n".join(place for word, domain, place in places if word == wanted[0] and domain in (wanted[1:] or [domain])))
        return 0
    return counts.main(pathlib.Path(__file__).with_suffix(".txt"), found, "comments with a word that puzzles",
                       "write subject, verb, object, and \"it\" of a thing; comments.py WORD DOMAIN lists the places")


if __name__ == "__main__":
    sys.exit(main())
