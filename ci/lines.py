#!/usr/bin/env python3
"""Lines of code by room: without tests, models, comments and blank lines.

    ci/lines.py [FOLDER]      FOLDER is a `src`; without it, crates/urgency/src

A test or a model is an item under `#[cfg(..)]` that asks for `test` or `urgency_loom`, or a file or folder that is named
so (tests, loom, stress). A room is a folder or a single file. For another tree: `git archive COMMIT crates | tar x -C DIR`.
"""
import collections
import os
import re
import sys

SKIPPED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*|[^'\\\n])'""", re.S
)
CFG = re.compile(r"#\[cfg\(([^\]]*)\)\]")
TESTS = re.compile(r"(^|/)(tests|loom|stress)(\.rs|/)|_loom\.rs$")


def bare(text):
    """Without comments, and without what strings and characters hold."""
    def kept(match):
        return "" if match[0].startswith("/") else '""' + "\n_" * match[0].count("\n")

    return SKIPPED.sub(kept, text)


def asks_for_tests(condition):
    positive = re.sub(r"not\([^()]*(\([^()]*\))?[^()]*\)", "", condition)
    return re.search(r"\b(test|urgency_loom)\b", positive) is not None


def end_of_item(code, at):
    """Where the item, field or statement ends that begins at `at`."""
    depth = 0
    while at < len(code):
        char = code[at]
        at += 1
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return at - 1
            if depth == 0 and char == "}":
                return at
        elif depth == 0 and char in ";,":
            return at
    return at


def without_tests(text):
    """The code, and the names of the files that it declares for tests."""
    code, at, files = bare(text), 0, []
    while found := CFG.search(code, at):
        at = found.end()
        if asks_for_tests(found[1]):
            end = end_of_item(code, at)
            files += re.findall(r"\bmod (\w+);", code[at:end])
            code = code[: found.start()] + code[end:]
            at = found.start()
    return code, files


def main():
    at_root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(at_root, "crates/urgency/src")
    sources, tests = {}, set()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(".rs") and not TESTS.search(path):
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    sources[path], files = without_tests(file.read())
                of_file = path.removesuffix(".rs")
                inside = of_file if name not in ("mod.rs", "lib.rs") else os.path.dirname(path)
                tests.update(os.path.join(inside, file) for file in files)
    rooms = collections.Counter()
    for path, code in sources.items():
        if path.removesuffix(".rs") not in tests:
            lines = sum(1 for line in code.split("\n") if line.strip())
            rooms[path.split("/")[0].removesuffix(".rs")] += lines
    for room, lines in sorted(rooms.items()):
        print(f"{lines:7} {room}")
    print(f"{rooms.total():7} all")


if __name__ == "__main__":
    main()
