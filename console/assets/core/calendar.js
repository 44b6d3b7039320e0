// Budgets of disruption on a calendar: schedules of cron in their zones, as windows of a week.
const HOUR = 3_600_000, MINUTE = 60_000, DAYS = { sun: 0, mon: 1, tue: 2, wed: 3, thu: 4, fri: 5, sat: 6 };
const MONTHS = { jan: 1, feb: 2, mar: 3, apr: 4, may: 5, jun: 6, jul: 7, aug: 8, sep: 9, oct: 10, nov: 11, dec: 12 };
const MACROS = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *" };
const formats = new Map(), offsets = new Map();

/** Milliseconds by which clocks of a zone are before UTC at a moment. */
export function offset(zone, at) {
  const hour = Math.floor(at / 900_000), key = `${zone} ${hour}`;
  if (offsets.has(key)) return offsets.get(key);
  if (!formats.has(zone)) formats.set(zone, new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" }));
  const parts = Object.fromEntries(formats.get(zone).formatToParts(hour * 900_000).map(({ type, value }) => [type, Number(value)]));
  const there = Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute) - hour * 900_000;
  if (offsets.size > 20_000) offsets.clear();
  offsets.set(key, there);
  return there;
}

function field(text, low, high, names = {}) {
  const set = new Set();
  for (const part of text.toLowerCase().split(",")) {
    const [range, step] = part.split("/"), [from, to] = range.split("-");
    const number = (word) => (word in names ? names[word] : Number(word));
    const first = range === "*" || range === "?" ? low : number(from), last = range === "*" || range === "?" || (step && to === undefined) ? high : to === undefined ? first : number(to);
    for (let n = first; n <= last; n += Number(step) || 1) set.add(names === DAYS ? n % 7 : n);
  }
  return set;
}

/** A schedule as a test of local minutes, or null for one that cannot be read. */
export function schedule(text) {
  const parts = (MACROS[text] || text).trim().split(/\s+/);
  if (parts.length !== 5) return null;
  const [minutes, hours, days, months, weekdays] = [field(parts[0], 0, 59), field(parts[1], 0, 23), field(parts[2], 1, 31), field(parts[3], 1, 12, MONTHS), field(parts[4], 0, 7, DAYS)];
  const anyDay = /^[*?]/.test(parts[2]), anyWeekday = /^[*?]/.test(parts[4]);
  return (local) => {
    if (!minutes.has(local.getUTCMinutes()) || !hours.has(local.getUTCHours()) || !months.has(local.getUTCMonth() + 1)) return false;
    const day = days.has(local.getUTCDate()), weekday = weekdays.has(local.getUTCDay());
    return anyDay || anyWeekday ? day && weekday : day || weekday;
  };
}

/** Milliseconds of "8h", "1h30m". */
export function lengthOf(text) {
  let sum = 0;
  for (const [, number, unit] of String(text || "").matchAll(/(\d+)(h|m|s)/g)) sum += Number(number) * { h: HOUR, m: MINUTE, s: 1000 }[unit];
  return sum;
}

/** Windows [from, to] of a budget that touch a span; one without a schedule is always open. */
export function windows(budget, from, to) {
  if (!budget.schedule) return [[from, to]];
  const [, named, fields] = /^(?:(?:CRON_)?TZ=(\S+)\s+)?(.*)$/.exec(budget.schedule);
  const test = schedule(fields), length = lengthOf(budget.duration), zone = budget.time_zone || named || "UTC";
  if (!test || !length) return [];
  const found = [];
  for (let at = Math.ceil((from - length) / MINUTE) * MINUTE; at < to; at += MINUTE) {
    if (!test(new Date(at + offset(zone, at)))) continue;
    const last = found[found.length - 1];
    if (last && last[1] >= at) last[1] = Math.max(last[1], at + length); else found.push([at, at + length]);
  }
  return found.filter(([, end]) => end > from);
}

/** Begin of the day of a moment in a zone. */
export function dayOf(zone, at) {
  const local = at + offset(zone, at), midnight = Math.floor(local / (24 * HOUR)) * 24 * HOUR;
  let start = midnight - offset(zone, at);
  start = midnight - offset(zone, start);
  return start;
}

/** Seven days of the week of a moment, Monday first: [{from, to, label}]; a day with a change of clocks has 23 or 25 hours. */
export function week(zone, at) {
  const local = new Date(at + offset(zone, at)), back = (local.getUTCDay() + 6) % 7;
  const days = [];
  let from = dayOf(zone, dayOf(zone, at) - back * 24 * HOUR + 12 * HOUR);
  for (let n = 0; n < 7; n++) {
    const to = dayOf(zone, from + 36 * HOUR);
    days.push({ from, to, label: new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", timeZone: zone }).format(from), today: at >= from && at < to });
    from = to;
  }
  return days;
}

/** Nodes of a budget: a number, or a share of what a pool has, rounded up as the product does. */
export const nodesOf = (budget, size) => (budget.nodes.endsWith("%") ? Math.ceil((Number(budget.nodes.slice(0, -1)) / 100) * size) : Number(budget.nodes));

/** What may leave at a moment by all budgets that are open then. */
export function allowance(budgets, size, at) {
  // Budgets of nodes that are too old alone say nothing of the others.
  const open = budgets.filter((budget) => (!budget.reasons || budget.reasons.some((reason) => reason !== "Expired")) && windows(budget, at, at + 1).some(([from, to]) => from <= at && to > at));
  return open.length ? Math.min(...open.map((budget) => nodesOf(budget, size))) : size;
}
export const zoneHere = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
