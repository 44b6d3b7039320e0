"""The one page of the stand-in: people of the local cloud, one of whom logs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_STYLE = """
:root{color-scheme:light dark;--canvas:#fafaf9;--card:#fff;--line:#e3e3df;--ctl:#85857d;--t1:#1a1a18;--t2:#4f4f49;
--accent:#1d4fd7;--on:#fff;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--canvas:#101113;--card:#17181b;--line:#292b2f;--ctl:#757a82;--t1:#edeef0;
--t2:#b6bac1;--accent:#86aaff;--on:#0b1533;--bad:#ff8f85}}
body{margin:0;background:var(--canvas);color:var(--t1);font:13px/20px system-ui,"Segoe UI",Roboto,sans-serif}
main{box-sizing:border-box;max-width:392px;margin:12vh auto 24px;padding:24px;background:var(--card);
border:1px solid var(--line);border-radius:8px}
h1{font-size:16px;line-height:24px;margin:0 0 4px}p{margin:0 0 16px;color:var(--t2)}
label{display:flex;gap:8px;align-items:baseline;padding:8px 0;border-top:1px solid var(--line)}
label span{color:var(--t2)}label.field{display:block;border:0}input[type=password]{box-sizing:border-box;width:100%;
height:30px;padding:0 10px;border:1px solid var(--ctl);border-radius:6px;background:var(--card);color:inherit;
font:inherit}button{width:100%;height:34px;margin-top:12px;border:0;border-radius:6px;background:var(--accent);color:var(--on);
font:inherit;font-weight:500}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.bad{color:var(--bad)}
"""


def login_page(action: str, people: Sequence[tuple[str, str]], problem: str | None = None) -> str:
    """The page with a form for ``action``; ``people`` are names and what each may do."""
    rows = "".join(
        f'<label><input type="radio" name="username" value="{escape(name)}"{" checked" if number == 0 else ""}>'
        f"<b>{escape(name)}</b> <span>{escape(text)}</span></label>"
        for number, (name, text) in enumerate(people)
    )
    note = f'<p class="bad" role="alert">{escape(problem)}</p>' if problem else ""
    form = (
        f'<form id="kc-form-login" action="{escape(action)}" method="post">{rows}'
        f'<label class="field">Password, anything here<input type="password" name="password"'
        ' autocomplete="current-password"></label>'
        '<button type="submit">Sign in</button></form>'
    )
    text = "This page stands in for your identity provider."
    return _document("Sign in", f"<h1>Sign in to the local cloud</h1><p>{text}</p>{note}{form}")


def refusal_page(body: Mapping[str, str]) -> str:
    """The page for who cannot be sent back."""
    return _document("Sign in", f'<h1>We are sorry</h1><p class="bad">{escape(" ".join(body.values()))}</p>')


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>"
    )
