// SPDX-License-Identifier: GPL-2.0-or-later
//
// The panels of a page about two traces, A and B: each is what `diff` shows.

const TRACES = [["a", "A"], ["b", "B"]];
const DISTRIBUTIONS_SHOWN = 12;

const idOf = domain => domain.domid_a === undefined ? domain.domid_b : domain.domid_a;
const diffName = domain => domain.name || "d" + idOf(domain);
const isInBoth = domain => domain.domid_a !== undefined && domain.domid_b !== undefined;

// As `diff` prints them, cut off.
const formatPpm = ppm => `${Math.floor(ppm / 1e4)}.${Math.floor(ppm % 1e4 / 1e3)}%`;
const formatDistance = ppm => `${Math.floor(ppm / 1e6)}.${String(Math.floor(ppm % 1e6 / 1e3)).padStart(3, "0")}`;
const formatRate = rate => rate < 1e5 ? `${Math.floor(rate / 1e3)}.${Math.floor(rate % 1e3 / 100)}/s`
    : `${Math.floor(rate / 1e3)}/s`;

const DISTANCE_COLUMNS = [["Difference", true], ["Halves", true], ["Larger"]];

// The last three cells of a row.
function distanceCells(domain, value, format) {
    const show = number => number === undefined ? "-" : format(number);
    if (!isInBoth(domain))
        return ["-", "-", domain.domid_a === undefined ? "only in B" : "only in A"];
    return [show(value.difference), show(value.between_halves), value.larger === undefined ? "unknown"
        : value.larger ? element("strong", {}, "yes") : "no"];
}

function diffTrimmedNote() {
    return page.trimmed.length === 0 ? null : element("p", {class: "note"}, "This page does not have all: ",
        commandElement(page.a.argument && page.b.argument
            ? `xentracectl --json diff ${page.a.argument} ${page.b.argument}` : null));
}

function differencesPanel() {
    const targets = {run_ppm: "run", waits: "waits", exits: "exits"};
    const items = page.diff.findings.map(finding => element("li", {class: "warn", "data-measure": finding.measure},
        element("a", {href: "#" + (targets[finding.measure] || "run")}, finding.text)));
    return [
        items.length > 0 ? element("ol", {class: "findings"}, ...items)
            : element("p", {}, "No difference is larger than those between the halves of one trace."),
        element("p", {class: "note"}, "A difference counts if it is larger than the one between the halves of A, and than " +
            "the one between the halves of B. Of waits, it is the largest distance between the two distributions, " +
            "from 0 to 1."),
        diffTrimmedNote()];
}

function runPanel() {
    const rows = page.diff.domains.map(domain => [
        diffName(domain), ...TRACES.map(([key]) => domain.run_ppm[key] === undefined ? "-"
            : barCell(domain.run_ppm[key] / 1e6, formatPpm(domain.run_ppm[key]))),
        ...distanceCells(domain, domain.run_ppm, formatPpm)]);
    return rows.length === 0 ? null : [
        makeTable([["Domain"], ["A", true], ["B", true], ...DISTANCE_COLUMNS], rows),
        element("p", {class: "note"}, "100% is one CPU.")];
}

function diffWaitsPanel() {
    const rows = page.diff.domains.flatMap(domain => {
        const of = TRACES.filter(([key]) => domain.waits[key] && domain.waits[key].count > 0);
        return of.map(([key, letter], i) => {
            const {count, p50_ns, p99_ns, max_ns} = domain.waits[key];
            return [i === 0 ? diffName(domain) : "", letter, formatCount(count),
                    ...[p50_ns, p99_ns, max_ns].map(formatNsec),
                    ...(i === 0 ? distanceCells(domain, domain.waits, formatDistance) : ["", "", ""])];
        });
    });
    return rows.length === 0 ? null
        : makeTable([["Domain"], ["Trace"], ["Number", true], ["P50", true], ["P99", true], ["Max", true],
                     ...DISTANCE_COLUMNS], rows);
}

const DIFF_KINDS = KINDS.filter(([kind]) => kind !== "other");

// Of a domain and kind: [key, letter, waits in nanoseconds] of each trace that has some.
function waitsOfKind(waits, kind) {
    return TRACES.filter(([key]) => waits[key] && waits[key][kind])
        .map(([key, letter]) => [key, letter, inNsec(waits[key][kind], page[key].tsc_khz)]);
}

function distributionsPanel() {
    const shown = page.waits.map((waits, i) => ({
        name: diffName(page.diff.domains[i]),
        kinds: DIFF_KINDS.map(([kind, text]) => ({text, of: waitsOfKind(waits, kind)})).filter(({of}) => of.length > 0),
    })).filter(({kinds}) => kinds.length > 0).slice(0, DISTRIBUTIONS_SHOWN);
    if (shown.length === 0)
        return null;
    const range = rangeOf(shown.flatMap(({kinds}) => kinds.flatMap(({of}) => of.map(([, , entry]) => entry))));
    const rows = shown.flatMap(({name, kinds}) => kinds.flatMap(({text, of}) => of.map(([, letter, entry]) =>
        [name, text, letter, formatCount(entry.count),
         ...["p50", "p99", "p999", "max"].map(key => formatNsec(entry[key]))])));
    return [
        element("p", {class: "legend"}, ...TRACES.map(([key, letter]) =>
            element("span", {class: "key"}, element("i", {class: key}), letter)),
            "Upwards: the share of the trace's waits. Both scales are logarithmic. Lines: 50%, 99% and 99.9% of the waits " +
            "are at most this long."),
        ...shown.flatMap(({name, kinds}) => kinds.map(({text, of}, i) => element("div", {class: "distribution"},
            i === 0 ? element("h3", {}, name) : null, element("p", {class: "note"}, `Waits ${text}`),
            sharesChart(`Waits of ${name} ${text}, A and B`, of, range)))),
        makeTable([["Domain"], ["Waits"], ["Trace"], ["Number", true], ["P50", true], ["P99", true], ["P99.9", true],
                   ["Max", true]], rows)];
}

// Those that matter first.
function diffExitsPanel() {
    const all = page.diff.domains.flatMap(domain => Object.values(domain.exits).map(exit => ({domain, exit})));
    const distance = ({exit}) => exit.difference || 0;
    const rows = all.sort((a, b) => Boolean(b.exit.larger) - Boolean(a.exit.larger) || distance(b) - distance(a))
        .map(({domain, exit}) => [
            diffName(domain), exit.name, ...TRACES.map(([key]) => exit[key] === undefined ? "-" : formatRate(exit[key])),
            ...distanceCells(domain, exit, formatRate)]);
    return rows.length === 0 ? null
        : makeTable([["Domain"], ["Reason"], ["A", true], ["B", true], ...DISTANCE_COLUMNS], rows);
}

function addDiffHead() {
    const nameOf = trace => trace.name.slice(trace.name.lastIndexOf("/") + 1);
    const title = `${nameOf(page.a)} and ${nameOf(page.b)}`;
    document.title = `${title} - Xen traces`;
    document.getElementById("title").textContent = title;
    document.getElementById("quality-lines").append(...TRACES.flatMap(([key, letter]) => [
        element("h3", {}, "Trace " + letter),
        ...page[key].quality.map(line => element("p", {}, line)),
        page[key].argument ? element("p", {class: "note"}, "More about it: ",
                                     commandElement(`xentracectl report ${page[key].argument}`)) : null,
    ].filter(Boolean)));
}
