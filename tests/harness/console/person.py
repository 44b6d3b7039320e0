"""A person at the console: logs in by the stand-in's page, and does what one does with eyes, keys and a pointer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.harness.browser import SECONDS, Tab

_FIELD = """(() => {
  const label = [...document.querySelectorAll('label')].find((each) => each.innerText.trim().startsWith(%s));
  const field = label && (label.querySelector('input, textarea, select') || document.getElementById(label.htmlFor));
  if (!field) return false;
  const kind = field.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
  field.focus();
  Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(field, %s);
  field.dispatchEvent(new Event('input', {bubbles: true}));
  return true;
})()"""
_CHOOSE = """(() => {
  const label = [...document.querySelectorAll('label')].find((each) => each.innerText.trim().startsWith(%s));
  const list = label?.querySelector('select');
  if (!list) return false;
  list.value = %s;
  list.dispatchEvent(new Event('change', {bubbles: true}));
  return true;
})()"""
_PRESS = """(() => {
  const all = [...document.querySelectorAll('button, a, [role=menuitem], summary')].filter((each) => each.offsetParent);
  const able = all.filter((each) => each.getAttribute('aria-disabled') !== 'true');
  const found = able.find((each) => each.innerText.trim().startsWith(%s));
  if (!found) return false;
  found.click();
  return true;
})()"""


@dataclass(slots=True)
class ConsolePerson:
    """One tab of the console at ``url``, the API's own."""

    tab: Tab
    url: str

    def sign_in(self, name: str = "local-user", path: str = "") -> None:
        """Open a page, and log in on the way to it."""
        self.tab.open(f"{self.url}/console/{path}")
        self.tab.wait_for("document.querySelector('.sign .button')")
        self.press("Continue to sign in")
        self.tab.wait_for("document.querySelector('#kc-form-login')")
        self.tab.evaluate(f"document.querySelector('input[value={name}]').checked = true")
        self.tab.evaluate("document.querySelector('#kc-form-login button').click()")
        self.tab.wait_for("document.querySelector('.frame main h1, .frame .empty')")

    def go(self, path: str) -> None:
        """Go to a page of the console without loading it again, as a link does."""
        page_path = json.dumps(f"/console/{path}")
        self.tab.evaluate(
            f"(history.pushState(null, '', {page_path}), dispatchEvent(new PopStateEvent('popstate')), 1)"
        )

    def sees(self, text: str, seconds: float = SECONDS) -> None:
        """Wait until a text is to be read on the page."""
        self.tab.wait_for(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def reads(self) -> str:
        """All that is to be read on the page."""
        return str(self.tab.evaluate("document.querySelector('main').innerText"))

    def press(self, text: str) -> None:
        """Press the button or link that begins with a text, as soon as it can be pressed."""
        self.tab.wait_for(_PRESS % json.dumps(text))

    def fill(self, label: str, text: str) -> None:
        """Type into the field whose label begins so, as soon as it is there."""
        self.tab.wait_for(_FIELD % (json.dumps(label), json.dumps(text)))

    def choose(self, label: str, value: str) -> None:
        """Choose from the list whose label begins so, as soon as it is there."""
        self.tab.wait_for(_CHOOSE % (json.dumps(label), json.dumps(value)))

    def verbs(self) -> list[str]:
        """Texts of all buttons and links of the page."""
        texts: list[str] = self.tab.evaluate(
            "[...document.querySelectorAll('main button, main a')].map((each) => each.innerText.trim())"
        )
        return texts

    def strangers(self) -> set[str]:
        """Hosts that the page has asked, without that of the API."""
        own = urlsplit(self.url).netloc
        hosts = {urlsplit(each).netloc for each in self.tab.requested if not each.startswith(("data:", "about:"))}
        return hosts - {own}
