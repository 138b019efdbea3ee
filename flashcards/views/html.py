"""HTML in small pieces. Text becomes HTML in one place, where it is escaped: a name is data, whatever it says."""

import base64
import html
from collections.abc import Iterable
from typing import NewType

Html = NewType("Html", str)


def written(text: object) -> Html:
    return Html(html.escape(str(text)))


def element(name: str, *inside: Html, **attributes: object) -> Html:
    said = "".join(f' {key}="{html.escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{said}>{''.join(inside)}</{name}>")


def picture(content: bytes, media_type: str, title: str) -> Html:
    source = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    style = "max-width:100%;image-rendering:pixelated"
    image = Html(f'<img src="{html.escape(source)}" alt="{html.escape(title)}" style="{style}">')
    return element("figure", image, element("figcaption", written(title)), style="margin:8px 0")


def facts(rows: Iterable[tuple[str, object]]) -> Html:
    lines = (element("tr", _cell(name, "opacity:.7"), _cell(value, "")) for name, value in rows)
    return element("table", *lines)


def card(title: str, *inside: Html) -> Html:
    head = element("div", written(title), style="font-weight:600;margin-bottom:4px")
    return element("div", head, *inside, style="max-width:60em;font-family:sans-serif")


def number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def _cell(text: object, more: str) -> Html:
    return element("td", written(text), style=f"text-align:left;padding:2px 12px 2px 0;overflow-wrap:anywhere;{more}")
