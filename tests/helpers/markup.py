"""Reads pieces of HTML: their tags, whether they are closed, and their text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})


class Markup(HTMLParser):
    """Tags, attributes and text of a piece of HTML.

    Attributes
    ----------
    open : list of str
        Tags that were not closed; none of a well-formed piece.
    tags : list of str
    attributes : list of pairs
        Name and value of every attribute.
    text : list of str
        Pieces of text, without white space around them.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.text.append(data.strip())


def require_static(page: str) -> Markup:
    """A piece of HTML that is well formed, runs nothing and asks for no address."""
    markup = Markup(page)
    assert markup.open == []
    forbidden = {"script", "iframe", "object", "embed", "link", "img", "form", "base"}
    assert not forbidden & set(markup.tags)
    for name, value in markup.attributes:
        assert not name.startswith("on"), name
        assert name not in ("href", "src", "srcset", "xlink:href"), name
        assert "://" not in value or name == "aria-label", value
        assert "url(" not in value or name == "aria-label", value
    return markup
