// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers, times and names for people, as `report` prints them; and elements of the page.

const nsecOf = (ticks, khz = page.trace.tsc_khz) => ticks * 1e6 / khz;
const ticksOf = nsec => nsec * page.trace.tsc_khz / 1e6;

const formatCount = number => Math.round(number).toLocaleString("en-US");

// "64.7ms": three digits, cut off.
function formatNsec(nsec) {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
    const [size, name] = units.find(unit => nsec >= unit[0]) || units[3];
    const value = Math.floor(nsec) / size;
    const digits = size === 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return (Math.floor(value * 10 ** digits + 1e-9) / 10 ** digits).toFixed(digits) + name;
}
const formatSpan = ticks => formatNsec(nsecOf(ticks));

function formatPercent(part, whole) {
    const percent = whole > 0 ? 100 * part / whole : 0;
    return percent > 0 && percent < 0.05 ? "<0.1%" : percent.toFixed(1) + "%";
}

// The pieces of the time in which the clock was not set: from and until in ticks; what the clock shows at their
// beginning, in nanoseconds, and how much in each tick. It counts from a full second, or the trace's beginning.
function piecesOfClock({tsc_khz: khz, offset, realtime_nsec: realtime, clock}) {
    if (!realtime)
        return [{from: 0, until: Infinity, nsec: nsecOf(offset), rate: 1e6 / khz}];
    return clock.map(([from, nsec], i) => {
        const [until, next] = clock[i + 1] || [Infinity, 0];
        const rate = until === Infinity ? 1e6 / khz : (next - nsec) / (until - from);
        return {from, until, nsec: realtime % 1e9 + nsec, rate};
    }).filter(piece => piece.from < piece.until);
}
const clockPieces = page.trace ? piecesOfClock(page.trace) : [];

// A time of the trace, by the wall clock if it is known; DIGITS of a second.
function formatWhen(ticks, digits = 3) {
    const piece = clockPieces.findLast(one => one.from <= ticks) || clockPieces[0], unit = 10 ** (9 - digits);
    const nsec = piece.nsec + (ticks - piece.from) * piece.rate;
    if (!page.trace.realtime_nsec)
        return "+" + (Math.floor(nsec / unit + 1e-6) / 10 ** digits).toFixed(digits) + "s";
    const second = Math.floor(page.trace.realtime_nsec / 1e9) + page.trace.utc_offset_sec + Math.floor(nsec / 1e9);
    const time = new Date(second * 1000).toISOString().slice(11, 19);
    const rest = Math.floor((nsec - Math.floor(nsec / 1e9) * 1e9) / unit);
    return digits > 0 ? time + "." + String(rest).padStart(digits, "0") : time;
}
// Of the beginning, by the wall clock: "2026-11-28 16:14:36"; null: it is not known.
const formatDate = ({realtime_nsec: nsec, utc_offset_sec: offset}) =>
    nsec ? new Date((Math.floor(nsec / 1e9) + offset) * 1000).toISOString().slice(0, 19).replace("T", " ") : null;

// The same for commands: since the beginning of the trace.
const formatAt = ticks =>
    "+" + (Math.floor(nsecOf(ticks + page.trace.offset) / 1e3) / 1e6).toFixed(6) + "s";

const formatDomain = domain =>
    domain === "d32767" ? "idle" : page.names[domain] === undefined ? domain : page.names[domain];
// "web v1"; "d5v1" of a domain without a name.
function formatVcpu(vcpu) {
    const domain = domainOf(vcpu), name = formatDomain(domain);
    if (name === "idle" && domain === "d32767")
        return name;
    return vcpu === "unknown" || name === domain ? vcpu : name + " " + vcpu.slice(domain.length);
}

// Of what ran on CPU.
const formatRan = (vcpu, cpu) => domainOf(vcpu) === "d32767" ? `CPU ${cpu} was idle` : formatVcpu(vcpu);

// A command about this trace; null if it came from a pipe, and cannot be read again.
const commandFor = words =>
    page.trace.argument ? "xentracectl " + words + " " + page.trace.argument : null;

// element("a", {href: "#x", class: "y", onclick: f}, "text", child...)
function element(tag, attributes = {}, ...children) {
    const result = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on"))
            result.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false)
            result.setAttribute(name, value === true ? "" : value);
    }
    result.append(...children.filter(child => child !== null && child !== undefined));
    return result;
}

// A command that a click copies. Lines end after its words, or folders, not inside of a name.
function commandElement(command) {
    if (!command)
        return null;
    const button = element("button", {type: "button", class: "copy", title: "Copy"}, "copy");
    button.addEventListener("click", () => {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        const copied = navigator.clipboard
            ? navigator.clipboard.writeText(command) : Promise.resolve(document.execCommand("copy"));
        copied.then(() => { button.textContent = "copied"; }, () => { button.textContent = "selected"; });
    });
    const code = element("code", {}, ...command.split(/(?<= )|(?<=[^ ]\/)/).flatMap(word =>
        [element("wbr"), element("span", {}, word)]));
    return element("span", {class: "command"}, code, button);
}
