# SPDX-License-Identifier: MIT
"""check_course.py BUILD: the chapters of docs/course/ say what the programs do.

For every chapter: its code is in the example, what it says an example prints is what it prints, its
commands run, its states are ones that the page knows, it has three questions and as many answers, and it
leads to the chapters before and after it. What chapter 11 says that Python prints is checked by
python/tests/test_torch_examples.py.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "course"
SOURCES = {"c": "examples", "python": "python/examples"}


class Failure(Exception):
    """What is wrong with a chapter, as a sentence."""


class Skip(Exception):
    """Why something cannot be checked here."""


def blocks(text, language):
    """The fenced blocks of this language; "": those that name none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [block for name, block in found if name == language]


def section(text, title):
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        raise Failure(f"there is no section {title}")
    return found[1]


def title_of(path):
    return path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def source_of(text, language):
    """The text of the one example that a chapter links to as "The whole program"."""
    folder = SOURCES[language]
    found = re.search(rf"The whole program is \[{folder}/\S+\]\(\.\./\.\./({folder}/\S+?)\)", text)
    if not found:
        raise Failure("there is no link to the whole program")
    return (ROOT / found[1]).read_text(encoding="utf-8")


def code_is_in_the_example(text):
    languages = [language for language in SOURCES if blocks(text, language)]
    if len(languages) != 1:
        raise Failure("a chapter has code of one language")
    source = "\n" + source_of(text, languages[0])
    for block in blocks(text, languages[0]):
        if "\n" + block not in source:
            raise Failure(f"not in the example:\n{block}")


def prints_what_it_says(text, build):
    shown = [block for block in blocks(text, "") if block.startswith("$ ")]
    if len(shown) != 1:
        raise Failure(f"{len(shown)} outputs of programs, not one")
    command, _, wanted = shown[0].partition("\n")
    if command.startswith("$ python "):
        return
    found = re.fullmatch(r"\$ (MHA_ISA=c )?build/examples/(\w+)", command)
    if not found:
        raise Failure(f"no example: {command}")
    environment = {k: v for k, v in os.environ.items() if k != "MHA_ISA"}
    if found[1]:
        environment["MHA_ISA"] = "c"
    result = subprocess.run([build / "examples" / found[2]], capture_output=True, text=True, env=environment)
    if result.returncode != 0 or result.stdout != wanted:
        raise Failure(f"{command} prints:\n{result.stdout}{result.stderr}")


def commands_run(text, build):
    lines = [line for block in blocks(text, "sh") for line in block.splitlines() if line.startswith("mha ")]
    if not lines:
        raise Failure("there is no command of mha")
    skipped = None
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "docs", f"{folder}/docs")
        path = f"{build}{os.pathsep}{os.environ['PATH']}"
        for line in lines:
            result = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path})
            if "built without libpng" in result.stderr:
                skipped = "built without libpng"
            elif result.returncode != 0:
                raise Failure(f"{line}: exit status {result.returncode}\n{result.stderr}")
    if skipped:
        raise Skip(skipped)


def states_are_known(text):
    web = ROOT / "src" / "page" / "web"
    state = (web / "state.js").read_text(encoding="utf-8")
    fields = re.findall(r"^    (\w+): ", re.search(r"BEGINNING = \{(.*?)^\};", state, re.M | re.S)[1], re.M)
    views = re.findall(r'"(\w+)"', re.search(r"VIEW_NAMES = \[(.*?)\]", state)[1])
    sources = "".join((web / f"compute_{part}.js").read_text(encoding="utf-8") for part in ("steps", "together"))
    known = {"view": views, "kind": ["encoder", "decoder", "cross"],
             "step": re.findall(r'^ +name: "(\w+)",$', sources, re.M),
             "sort": re.findall(r'^    \["(\w+)", ', (web / "wall.js").read_text(encoding="utf-8"), re.M)}
    states = re.findall(r"`#(view=[^`]*)`", text)
    if not states:
        raise Failure("there is no state of the page")
    for field, value in (part.split("=", 1) for line in states for part in line.split("&")):
        if field not in fields or value not in known.get(field, [value]):
            raise Failure(f"the page knows no {field}={value}")


def three_questions_have_answers(text):
    for part in ("Questions", "Answers"):
        numbers = re.findall(r"^(\d+)\. ", section(text, part), re.M)
        if numbers != ["1", "2", "3"]:
            raise Failure(f"{part}: {numbers}")


def leads_on(text, chapters, number):
    last = text.rstrip("\n").split("\n")[-1]
    wanted = "[The course](README.md)"
    if number > 0:
        before = chapters[number - 1]
        wanted = f"Previous: [{title_of(before)}]({before.name}) · {wanted}"
    if number + 1 < len(chapters):
        after = chapters[number + 1]
        wanted = f"{wanted} · Next: [{title_of(after)}]({after.name})"
    if last != wanted:
        raise Failure(f"the last line is not: {wanted}")


def index_is_complete(chapters):
    text = (COURSE / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[(.*?)\]\((.*?)\) \|", text, re.M)
    wanted = [(*title_of(chapter).split(". ", 1), chapter.name) for chapter in chapters]
    if rows != wanted:
        raise Failure(f"the table has {rows}, not {wanted}")
    numbers = [int(chapter.name[:2]) for chapter in chapters]
    if numbers != list(range(1, len(chapters) + 1)) or len(numbers) < 11:
        raise Failure(f"chapters {numbers}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def check(name, function, *arguments):
        try:
            function(*arguments)
            result, word = "passed", "ok   "
        except Failure as failure:
            result, word = "failed", "FAIL "
            print("\n".join(f"{name}: {line}" for line in str(failure).split("\n")))
        except Skip as reason:
            result, word, name = "skipped", "skip ", f"{name}: {reason}"
        counts[result] += 1
        print(word + name)

    chapters = sorted(COURSE.glob("[0-9]*.md"))
    check("index_is_complete", index_is_complete, chapters)
    for number, chapter in enumerate(chapters):
        text, name = chapter.read_text(encoding="utf-8"), chapter.stem
        check(f"{name}: code", code_is_in_the_example, text)
        check(f"{name}: output", prints_what_it_says, text, build)
        check(f"{name}: commands", commands_run, text, build)
        check(f"{name}: states", states_are_known, text)
        check(f"{name}: questions", three_questions_have_answers, text)
        check(f"{name}: links", leads_on, text, chapters, number)
    print(f"check_course: {', '.join(f'{n} {name}' for name, n in counts.items())}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
