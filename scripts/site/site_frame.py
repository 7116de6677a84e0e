# SPDX-License-Identifier: MIT
"""The frame around every page of the site, and the paths between them."""
import html
import os
import re


def escape(text):
    return html.escape(text, quote=True)


def slug(text, used):
    """The id of a heading, as GitHub makes it; `used` is the set of those that the page has."""
    plain = re.sub(r"<[^>]*>", "", html.unescape(text)).strip().lower()
    base = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
    name, number = base, 0
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    return name


def relative(target, page):
    """The link from `page` to `target`, both relative to the root of the site."""
    path, mark, place = target.partition("#")
    return os.path.relpath(path, os.path.dirname(page) or ".") + mark + place


def navigation(page, entries):
    """entries: (title, target), or (title, None) for a heading."""
    lines = []
    for title, target in entries:
        if target is None:
            lines.append(f"<h2>{escape(title)}</h2>")
        else:
            here = ' aria-current="page"' if target == page else ""
            lines.append(f'<a href="{escape(relative(target, page))}"{here}>{escape(title)}</a>')
    return "\n".join(lines)


def frame(page, title, body, entries):
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{relative("site.css", page)}">
</head>
<body>
<a class="skip" href="#text">To the text</a>
<nav aria-label="Pages">
{navigation(page, entries)}
</nav>
<main id="text">
{body}
</main>
</body>
</html>
"""
