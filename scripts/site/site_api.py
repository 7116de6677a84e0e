# SPDX-License-Identifier: MIT
"""The reference of a header, made from its comments: each comment with the declaration after it."""
import re

from site_frame import escape, slug

SECTION = re.compile(r"/\* =+ (.*?) =+ \*/")
NAMES = re.compile(r"\b(mha_[a-z0-9_]+)(?=\()|^typedef (?:struct|enum) (mha_\w+)|^#define (\w+)", re.M)
SKIPPED = re.compile(r"#(ifndef|ifdef|if|else|endif|include)\b|extern \"C\"|}\s*$|#define MHA_\w*(API|_H)\b")


def comment_text(comment):
    lines = comment[2:-2].split("\n")
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in lines).strip("\n")


def linked(text, known):
    """The text as HTML, with links from names to where they are declared."""
    def link(match):
        name = match.group(0)
        return f'<a href="{known[name]}">{name}</a>' if name in known else name
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\b(?:mha|MHA)_\w+", link, text)


def prose(text, known):
    """Paragraphs, and as they are those that begin with an indented line or contain a list."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"^ {3,}\S|^ *- ", paragraph, re.M):
            parts.append(f"<pre>{linked(paragraph, known)}</pre>")
        else:
            parts.append(f"<p>{linked(paragraph, known)}</p>")
    return "\n".join(parts)


def pieces(text):
    """("comment" or "code", text) of a header, in order; code is cut at empty lines outside braces."""
    for part in re.split(r"(^/\*.*?\*/$)", text, flags=re.M | re.S):
        if part.startswith("/*"):
            yield "comment", part
            continue
        block = []
        for line in part.strip("\n").split("\n"):
            depth = "\n".join(block).count("{") - "\n".join(block).count("}")
            if line.strip() == "" and depth == 0:
                yield "code", "\n".join(block)
                block = []
            else:
                block.append(line)
        yield "code", "\n".join(block)


def declaration(code):
    """Code without what no reader needs: export marks, bodies of inline functions, guards."""
    code = re.sub(r"\n\{\n.*?^\}", ";", code, flags=re.M | re.S)
    if SKIPPED.match(code):
        return ""
    return code.replace("MHA_API ", "")


def names_of(code):
    plain = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    found = [next(filter(None, match)) for match in NAMES.findall(plain)]
    return list(dict.fromkeys(name for name in found if not name.endswith("_API")))


def entries(text):
    """("section", title), ("text", comment) and ("entry", comment, code, names), in order."""
    pending = ""
    for kind, part in pieces(text):
        section = SECTION.fullmatch(part)
        if kind == "comment":
            if pending:
                yield "text", pending
            pending = "" if section else comment_text(part)
            if section:
                yield "section", section.group(1)
        elif declaration(part):
            code = declaration(part)
            yield "entry", pending, code, names_of(code)
            pending = ""
    if pending:
        yield "text", pending


def declared(text):
    """The names that a header declares."""
    return [name for entry in entries(text) if entry[0] == "entry" for name in entry[3]]


def entry_html(comment, code, names, known):
    marks = "".join(f'<a id="{escape(name)}"></a>' for name in names)
    return (f'<div class="entry">{marks}<pre><code>{linked(code, known)}</code></pre>\n'
            f"{prose(comment, known) if comment else ''}</div>")


def reference(header, text, known):
    """The body of the page of a header; known: name -> link to where it is declared."""
    body = [f"<h1>{escape(header)}</h1>"]
    used, placed = set(), set()
    for kind, first, *rest in entries(text):
        if kind == "section":
            body.append(f'<h2 id="{slug(first, used)}">{escape(first)}</h2>')
        elif kind == "text":
            if not first.startswith("SPDX"):
                body.append(prose(first, known))
        else:
            code, names = rest
            body.append(entry_html(first, code, [n for n in names if n not in placed], known))
            placed.update(names)
    return "\n".join(body)
