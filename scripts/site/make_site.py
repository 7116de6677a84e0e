# SPDX-License-Identifier: MIT
"""make_site.py SOURCE OUTPUT: the Markdown of the tree as a static site.

    *.md, docs/**/*.md and what they link to   pages beside each other, as in the tree
    include/mha/*.h                            api/*.html, from their comments
    live*.html in OUTPUT                       entries of the navigation, made before by mha view --live

Files that pages link to come along: pictures and data as they are, sources as pages. Markdown is read
by cmark-gfm. All links are relative, so any web server and file:// show the site.
"""
import pathlib
import re
import shutil
import subprocess
import sys

from site_api import declared, reference
from site_check import broken_links
from site_frame import escape, frame, relative, slug

BEGINNING = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
MEASURED = ["docs/benchmarks.md", "docs/benchmarks-peers.md", "docs/speed-log.md"]
AS_THEY_ARE = {".png", ".svg", ".jpg", ".csv", ".ipynb", ".html", ".json", ".tsv"}
# Where the states of the page lead that texts name, as `#view=...`.
LIVE_PAGE = "live.html"
LIVE_TITLES = {"live.html": "Live: the laboratory", "live-en-fr.html": "Live: English to French"}


def page_of(path):
    """The page that shows a file of the tree."""
    if path.name == "README.md":
        return str(path.with_name("index.html"))
    if path.suffix == ".md":
        return str(path.with_suffix(".html"))
    return str(path) if path.suffix in AS_THEY_ARE else f"{path}.html"


class Site:
    def __init__(self, source, output):
        self.source, self.output = source, output
        self.waiting = [pathlib.Path(name) for name in BEGINNING]
        self.waiting += sorted(p.relative_to(source) for p in source.glob("docs/**/*.md"))
        self.headers = sorted(source.glob("include/mha/*.h"))
        self.seen = set(self.waiting)
        self.entries = self.navigation()

    def title(self, path):
        lines = (self.source / path).read_text(encoding="utf-8").split("\n")
        return next(line[2:].strip().replace("`", "") for line in lines if line.startswith("# "))

    def navigation(self):
        """As navigation() of site_frame.py takes it."""
        markdown = [str(path) for path in self.waiting]
        course = sorted((name for name in markdown if name.startswith("docs/course/")),
                        key=lambda name: (not name.endswith("README.md"), name))
        docs = [n for n in markdown if n not in BEGINNING + MEASURED + course]
        live = [name for name in LIVE_TITLES if (self.output / name).exists()]

        def links(names):
            return [(self.title(name), page_of(pathlib.Path(name))) for name in names]
        groups = [("libmha", links(BEGINNING)), ("Live", [(LIVE_TITLES[n], n) for n in live]),
                  ("Course", links(course)), ("Documentation", links(docs)),
                  ("Benchmarks", links(MEASURED)),
                  ("API", [(h.name, f"api/{h.stem}.html") for h in self.headers])]
        return [entry for name, found in groups if found for entry in [(name, None), *found]]

    def write(self, page, title, body):
        path = self.output / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(frame(page, title, body, self.entries), encoding="utf-8")

    # ---------------------------------------------------------------- links -----

    def link(self, link, page, folder):
        """A link of a page of the tree, changed to one of the site."""
        target, mark, place = link.partition("#")
        if target == "" or re.match(r"[a-z]+:", target):
            return link
        full = (self.source / folder / target).resolve()
        if not full.is_relative_to(self.source) or not full.exists():
            raise SystemExit(f"{folder}: {link} leads nowhere")
        path = full.relative_to(self.source)
        if full.is_dir():
            path = path / "README.md"
        if path not in self.seen:
            self.seen.add(path)
            self.waiting.append(path)
        return relative(page_of(path), page) + mark + place

    # ---------------------------------------------------------------- pages -----

    def add_markdown(self, path):
        page, used = page_of(path), set()
        made = subprocess.run(["cmark-gfm", "-e", "table", "-e", "autolink", self.source / path],
                              check=True, capture_output=True, text=True).stdout
        body = re.sub(r"<h([1-6])>(.*?)</h\1>",
                      lambda m: f'<h{m[1]} id="{slug(m[2], used)}">{m[2]}</h{m[1]}>', made)
        body = re.sub(r'(href|src)="([^"]*)"',
                      lambda m: f'{m[1]}="{self.link(m[2], page, path.parent)}"', body)
        if (self.output / LIVE_PAGE).exists():
            body = re.sub(r"<code>#(view=[^<]*)</code>",
                          lambda m: f'<a href="{relative(LIVE_PAGE, page)}#{m[1]}">{m[0]}</a>', body)
        body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
        self.write(page, self.title(path), body)

    def add_source(self, path):
        text = (self.source / path).read_text(encoding="utf-8")
        self.write(page_of(path), str(path), f"<h1>{escape(str(path))}</h1>\n<pre>{escape(text)}</pre>")

    def add_folder(self, folder):
        """A folder without a README: the list of its files."""
        files = [p.relative_to(self.source) for p in sorted((self.source / folder).iterdir())
                 if p.is_file()]
        page = page_of(folder / "README.md")
        items = [f'<li><a href="{self.link(file.name, page, folder)}">{escape(file.name)}</a></li>'
                 for file in files]
        self.write(page, str(folder), f"<h1>{escape(str(folder))}</h1>\n<ul>{''.join(items)}</ul>")

    def add(self, path):
        if path.name == "README.md" and not (self.source / path).exists():
            self.add_folder(path.parent)
        elif path.suffix == ".md":
            self.add_markdown(path)
        elif path.suffix in AS_THEY_ARE:
            (self.output / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.source / path, self.output / path)
        else:
            self.add_source(path)

    def add_api(self):
        texts = {h: h.read_text(encoding="utf-8") for h in self.headers}
        places = {name: header for header in reversed(self.headers) for name in declared(texts[header])}
        for header, text in texts.items():
            known = {name: ("" if at == header else f"{at.stem}.html") + f"#{name}"
                     for name, at in places.items()}
            self.write(f"api/{header.stem}.html", header.name, reference(header.name, text, known))

    def make(self):
        while self.waiting:
            self.add(self.waiting.pop(0))
        self.add_api()
        shutil.copyfile(pathlib.Path(__file__).with_name("site.css"), self.output / "site.css")


def main():
    source, output = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    output.mkdir(parents=True, exist_ok=True)
    Site(source, output).make()
    broken = list(broken_links(output))
    for line in broken:
        print(line, file=sys.stderr)
    pages = len(list(output.glob("**/*.html")))
    print(f"{output}: {pages} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
