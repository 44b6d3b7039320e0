// Numbers, times and quantities in words. `–` is nothing, `not known` a price of null.
const grouped = (digits) => new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
const four = grouped(4), two = grouped(2), whole = grouped(0), one = grouped(1);
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
export const HOURS = 730;
export const NOTHING = "–";

export const hour = (usd) => (usd === null || usd === undefined ? "not known" : four.format(usd));
export const month = (usd) => (usd === null || usd === undefined ? "not known" : two.format(usd));
/** Whether prices are shown a month: `unit` of the address, which `u` changes. */
export const monthly = () => new URLSearchParams(location.search).get("unit") === "month";
export const unit = () => (monthly() ? "USD/month" : "USD/hour");
/** A price an hour in the unit that the person chose. */
export const price = (usd) => (monthly() && usd !== null && usd !== undefined ? month(usd * HOURS) : hour(usd));
export const count = (number) => (number === null || number === undefined ? NOTHING : whole.format(number));
export const tenth = (number) => one.format(number);
/** A difference in money, with its sign. */
export function difference(usd, digits = 2) {
  const text = (digits === 4 ? four : two).format(Math.abs(usd));
  return /[1-9]/.test(text) ? `${usd < 0 ? "−" : "+"}${text}` : text;
}
/** How far a price is above another. */
export function above(ratio) {
  const percent = (ratio - 1) * 100;
  return Math.abs(percent) < 0.05 ? "least" : `${percent < 0 ? "−" : "+"}${whole.format(Math.abs(percent))} %`;
}
export const percent = (ratio) => `${one.format(ratio * 100)} %`;

export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${one.format(s)} s`;
  if (s < 60) return `${whole.format(s)} s`;
  if (s < 3600) { const m = Math.floor(s / 60), rest = Math.floor(s % 60); return m < 10 && rest ? `${m} min ${rest} s` : `${m} min`; }
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}
export const since = (time) => (time ? duration(Math.floor((Date.now() - Date.parse(time)) / 1000) * 1000).replace(/ min \d+ s/, " min").replace(/^(\d)\D\d s$/, "$1 s") : NOTHING);
export function moment(time) {
  if (!time) return NOTHING;
  const date = new Date(time);
  return Date.now() - date < 86_400_000 ? clock.format(date) : day.format(date);
}
export const exact = (time) => (time ? `${exactly.format(new Date(time))} (${new Date(time).toISOString()})` : undefined);
export const monthName = (text) => new Intl.DateTimeFormat(undefined, { month: "long", timeZone: "UTC" }).format(new Date(`${text || new Date().toISOString().slice(0, 7)}-15T00:00:00Z`));

const UNITS = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, k: 1e3, M: 1e6, G: 1e9, T: 1e12, m: 1e-3 };
/** A Kubernetes quantity as a number; NaN for what is none. */
export function quantity(text) {
  const match = /^([\d.]+)([A-Za-z]*)$/.exec(String(text ?? ""));
  return match ? Number(match[1]) * (match[2] ? UNITS[match[2]] ?? NaN : 1) : NaN;
}
export const gib = (text) => { const value = quantity(text) / 2 ** 30; return Number.isNaN(value) ? NOTHING : String(Math.round(value * 10) / 10); };
/** What is asked for, in a sentence: "cpu 4, memory 12 GiB". */
export function resources(asked) {
  const parts = Object.entries(asked || {}).map(([name, value]) => `${name} ${name === "memory" ? `${gib(value)} GiB` : value}`);
  return parts.join(", ") || NOTHING;
}
export const plural = (number, noun, nouns = `${noun}s`) => `${count(number)} ${number === 1 ? noun : nouns}`;
/** A type without its provider's name before it. */
export const bare = (type) => String(type || "").split(".").slice(1).join(".") || String(type || "");
/** An id of another kind of name, shortened in the middle. */
export const short = (id) => (String(id).length > 20 ? `${id.slice(0, 10)}…${id.slice(-6)}` : String(id));
