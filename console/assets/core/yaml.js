// A reader of the YAML that manifests are written in: blocks, flow, quotes, block texts, anchors, several documents.
// Tags and complex keys are refused. Raises `YamlFault` with the line.

export class YamlFault extends Error {
  constructor(line, text) { super(`Line ${line}: ${text}`); this.line = line; }
}

const MOST_DEPTH = 64;

/** A plain scalar by the core schema. */
function scalar(text) {
  if (text === "" || text === "~" || /^(null|Null|NULL)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  if (/^[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$/.test(text) && !/^[-+]?0\d/.test(text)) return Number(text);
  return text;
}

/** Set a member without touching the prototype. */
const put = (object, key, value) => Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });

/** Members of `more` that the object has not itself (`<<`). */
function merge(object, more) {
  for (const each of [].concat(more)) for (const [key, value] of Object.entries(each || {})) if (!Object.prototype.hasOwnProperty.call(object, key)) put(object, key, value);
}

class Reader {
  constructor(text) {
    this.lines = text.replace(/\r\n?/g, "\n").split("\n");
    this.at = 0;
    this.anchors = new Map();
  }

  fail(text, line = this.at) { throw new YamlFault(line + 1, text); }

  /** Skip what is empty or a comment; the indent of the line that follows, or -1 at the end of a document. */
  next() {
    while (this.at < this.lines.length) {
      const line = this.lines[this.at];
      if (/^(---|\.\.\.)(\s|$)/.test(line)) return -1;
      if (/^\s*(#|$)/.test(line)) { this.at++; continue; }
      if (/^ *\t/.test(line)) this.fail("a tab stands where spaces have to");
      return line.length - line.trimStart().length;
    }
    return -1;
  }

  documents() {
    const all = [];
    while (this.at < this.lines.length) {
      this.anchors.clear();
      const marker = /^---(?:\s+(.*))?$/.exec(this.lines[this.at]);
      if (marker) {
        if (marker[1] && !marker[1].startsWith("#")) this.lines[this.at] = `    ${marker[1]}`; else this.at++;
      }
      if (/^%/.test(this.lines[this.at] || "")) { this.at++; continue; }
      const indent = this.next();
      if (indent >= 0) all.push(this.block(indent, 0));
      if (this.next() >= 0) this.fail("this does not belong to what stands before it");
      if (/^\.\.\./.test(this.lines[this.at] || "")) this.at++;
    }
    return all;
  }

  block(indent, depth) {
    if (depth > MOST_DEPTH) this.fail("this is nested too deep");
    const text = this.lines[this.at].slice(indent);
    if (/^-(\s|$)/.test(text)) return this.sequence(indent, depth);
    if (this.keyOf(text) !== null) return this.mapping(indent, depth);
    this.at++;
    return this.value(text, indent - 1, depth);
  }

  /** Key of a line of a mapping and what follows it, or null. */
  keyOf(text) {
    const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?:\s+(.*)|)$/.exec(text);
    if (quoted) return [this.flow(quoted[1]), quoted[2] || ""];
    const plain = /^([^\s\-?:,[\]{}#&*!|>'"%@`][^#]*?|[-?:][^\s#][^#]*?)\s*:(?:\s+(.*)|)$/.exec(text);
    if (!plain) return null;
    const cut = /^(.*?):(?:\s+(.*)|)$/.exec(text);
    return [cut[1].trim(), cut[2] || ""];
  }

  mapping(indent, depth) {
    const object = {}, own = new Set(), merged = [];
    for (let now = this.next(); now === indent; now = this.next()) {
      const pair = this.keyOf(this.lines[this.at].slice(indent));
      if (!pair) this.fail("a key with a colon is missed here");
      if (own.has(pair[0])) this.fail(`the key ${pair[0]} stands here twice`);
      own.add(pair[0]);
      this.at++;
      const value = this.value(pair[1], indent, depth + 1, true);
      if (pair[0] === "<<") merged.push(value); else put(object, pair[0], value);
    }
    merged.forEach((more) => merge(object, more));
    if (this.next() > indent) this.fail("this line stands too far to the right");
    return object;
  }

  sequence(indent, depth) {
    const list = [];
    for (let now = this.next(); now === indent; now = this.next()) {
      const text = this.lines[this.at].slice(indent), match = /^-(\s+|$)(.*)$/.exec(text);
      if (!match) break;
      if (match[2] && (this.keyOf(match[2]) || /^-(\s|$)/.test(match[2]))) {
        // What follows the dash is a block of its own, as far to the right as it stands.
        const inner = indent + 1 + match[1].length;
        this.lines[this.at] = " ".repeat(inner) + match[2];
        list.push(this.block(inner, depth + 1));
      } else { this.at++; list.push(this.value(match[2], indent, depth + 1)); }
    }
    return list;
  }

  /** What stands behind a key or a dash; `indent` is that of the line. A sequence may stand below its key. */
  value(text, indent, depth, below = false) {
    const anchor = /^&([^\s,[\]{}]+)(?:\s+(.*)|)$/.exec(text);
    if (anchor) {
      const value = this.value(anchor[2] || "", indent, depth, below);
      this.anchors.set(anchor[1], value);
      return value;
    }
    if (/^!/.test(text)) this.fail("tags are not read", this.at - 1);
    if (/^[|>]/.test(text)) return this.lump(text, indent);
    if (text === "" || text.startsWith("#")) {
      const next = this.next();
      if (next > indent || (below && next === indent && /^\s*-(\s|$)/.test(this.lines[this.at]))) return this.block(next, depth);
      return null;
    }
    let whole = text;
    if (/^[[{"']/.test(text)) {
      // A flow or a quoted text may go on in the lines below.
      while (!this.complete(whole) && this.at < this.lines.length) whole += `\n${this.lines[this.at++].trim()}`;
      return this.flow(whole);
    }
    while (this.next() > indent) whole += ` ${this.lines[this.at++].trim()}`;
    whole = whole.replace(/\s+#.*$/, "").trim();
    if (whole.startsWith("*")) return this.alias(whole.slice(1));
    if (/:\s/.test(whole) || /^[@`%]/.test(whole)) this.fail("quote this text: it has a sign of YAML in it", this.at - 1);
    return scalar(whole);
  }

  alias(name) {
    if (!this.anchors.has(name)) this.fail(`there is no anchor ${name}`, this.at - 1);
    return structuredClone(this.anchors.get(name));
  }

  lump(text, indent) {
    const [, style, signs] = /^([|>])([-+\d]*)/.exec(text), given = /\d/.exec(signs);
    const lines = [];
    let own = given ? indent + Number(given[0]) : -1;
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at], at = line.length - line.trimStart().length;
      if (line.trim() === "") { lines.push(""); continue; }
      if (own < 0) own = at;
      if (at <= Math.max(indent, -1) || at < own) break;
      lines.push(line.slice(own));
    }
    while (lines.length && lines[lines.length - 1] === "") lines.pop();
    const end = signs.includes("-") || !lines.length ? "" : "\n";
    return (style === "|" ? lines.join("\n") : lines.join("\n").replace(/([^\n])\n(?!\n|\s)/g, "$1 ").replace(/\n\n/g, "\n")) + end;
  }

  complete(text) {
    let depth = 0, quote = "";
    for (let n = 0; n < text.length; n++) {
      const sign = text[n];
      if (quote) { if (sign === "\\" && quote === '"') n++; else if (sign === quote) quote = ""; continue; }
      if (sign === '"' || sign === "'") quote = sign;
      else if (sign === "[" || sign === "{") depth++;
      else if (sign === "]" || sign === "}") depth--;
    }
    return depth === 0 && !quote;
  }

  flow(text) {
    let n = 0;
    const line = this.at - 1, space = () => { while (/[\s]/.test(text[n] || "")) n++; if (text[n] === "#") { while (n < text.length && text[n] !== "\n") n++; space(); } };
    const quoted = () => {
      const quote = text[n++];
      let out = "";
      for (; n < text.length; n++) {
        if (quote === "'" && text[n] === "'" && text[n + 1] === "'") { out += "'"; n++; } else if (text[n] === quote) { n++; return out; } else if (quote === '"' && text[n] === "\\") {
          const sign = text[++n], long = { x: 2, u: 4, U: 8 }[sign];
          if (long) { out += String.fromCodePoint(parseInt(text.slice(n + 1, n + 1 + long), 16)); n += long; } else out += { n: "\n", t: "\t", r: "\r", 0: "\0", "\n": "" }[sign] ?? sign;
        } else out += text[n] === "\n" ? " " : text[n];
      }
      return this.fail("a quote is not closed", line);
    };
    const plain = () => {
      const from = n;
      while (n < text.length && !/[,[\]{}\n]/.test(text[n]) && !(text[n] === ":" && /[\s,\]}]|$/.test(text[n + 1] || "")) && !(text[n] === "#" && /\s/.test(text[n - 1]))) n++;
      const word = text.slice(from, n).trim();
      return word.startsWith("*") ? this.alias(word.slice(1)) : scalar(word);
    };
    const node = (depth) => {
      if (depth > MOST_DEPTH) this.fail("this is nested too deep", line);
      space();
      if (text[n] === "[") {
        const list = [];
        for (n++, space(); text[n] !== "]"; space()) { if (n >= text.length) this.fail("a bracket is not closed", line); list.push(node(depth + 1)); space(); if (text[n] === ",") n++; else if (text[n] !== "]") this.fail("a comma is missed", line); }
        n++;
        return list;
      }
      if (text[n] === "{") {
        const object = {}, merged = [];
        for (n++, space(); text[n] !== "}"; space()) {
          if (n >= text.length) this.fail("a brace is not closed", line);
          const key = text[n] === '"' || text[n] === "'" ? quoted() : plain();
          space();
          let value = null;
          if (text[n] === ":") { n++; space(); if (text[n] !== "," && text[n] !== "}") value = node(depth + 1); }
          if (key === "<<") merged.push(value); else put(object, String(key), value);
          space();
          if (text[n] === ",") n++; else if (text[n] !== "}") this.fail("a comma is missed", line);
        }
        n++;
        merged.forEach((more) => merge(object, more));
        return object;
      }
      return text[n] === '"' || text[n] === "'" ? quoted() : plain();
    };
    const value = node(0);
    space();
    if (n < text.length) this.fail("there is more behind the end", line);
    return value;
  }
}

/** Documents of a text, JSON or YAML; empty ones are left out. */
export function readDocuments(text) {
  if (/^\s*[[{]/.test(text)) { try { const read = JSON.parse(text); return Array.isArray(read) ? read : [read]; } catch { /* flow YAML, perhaps */ } }
  return new Reader(text).documents().filter((document) => document !== null);
}
