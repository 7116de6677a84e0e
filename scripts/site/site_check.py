# SPDX-License-Identifier: MIT
"""Every link of a folder of pages leads to a file of it and, with "#", to an id that it has."""
import os
import re
import sys
import urllib.parse
from html.parser import HTMLParser


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value and not re.match(r"[a-z]+:", value):
                self.links.append(value)


def read_pages(folder):
    """path -> Links of every page but those that run a model: these have no links, and what follows
    their address is a state."""
    pages = {}
    for place, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(place, name)
            if name.endswith(".html") and not name.startswith("live"):
                pages[path] = Links()
                with open(path, encoding="utf-8") as file:
                    pages[path].feed(file.read())
    return pages


def broken_links(folder):
    pages = read_pages(folder)
    for path, page in sorted(pages.items()):
        for link in page.links:
            target, _, place = link.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(target)))
            to = path if target == "" else to
            if not os.path.isfile(to):
                yield f"{path}: {link}: there is no such file"
            elif to in pages and place and urllib.parse.unquote(place) not in pages[to].ids:
                yield f"{path}: {link}: the page has no such place"


def main():
    broken = list(broken_links(sys.argv[1]))
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
