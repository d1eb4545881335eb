"""Parse a page as a browser does, and texts that try to become markup in it."""

from html.parser import HTMLParser

from hypothesis import strategies as st

HOSTILE = (
    '"><script>alert(1)</script>', "</pre></style><style>*{display:none}", "javascript:alert(1)", "{{ 7 * 7 }}",
    "<!-- ", "]]>", "&lt;b&gt;", "' onmouseover='x", "\x1b[31m\x00\u202e\ud800", "<img src=//x.example>", "{% raw %}",
    "../../etc", "</svg><svg onload=x>",
)  # fmt: skip
hostile = st.text(max_size=40) | st.sampled_from(HOSTILE)


class Page(HTMLParser):
    """tags: with their attributes, and comments. text: what is shown."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self._style = [], "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, *attributes))
        self._style = tag == "style"
        self.text += " " if tag in ("td", "th") else ""

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        self.text += "" if self._style else data

    def handle_comment(self, data):
        self.tags.append(("comment", data))

    handle_pi = unknown_decl = handle_comment
