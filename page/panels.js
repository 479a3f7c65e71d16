// SPDX-License-Identifier: GPL-2.0-or-later
//
// The panels: each is what `report`, or one of its views, shows. A panel without data is null.

const span = measures ? measures.span.cycles : 0;
const viewCommand = view => commandElement(commandFor(`report --view ${view}`));

// "Also N more: command", if the page does not have all.
function trimmedNote(path, view) {
    const left = trimmedOf(path);
    return left > 0 ? element("p", {class: "note"}, `${formatCount(left)} more: `, viewCommand(view)) : null;
}

const KIND_PANELS = {
    lost: "quality", overcommitted: "cpus", unseen: "cpus", exits: "exits", interrupts: "interrupts",
    migrations: "migrations", yields: "domains",
};
// Classes of events, as in their numbers, of which the trace has records.
const HVM = 0x8, HW = 0x80;
const hasClass = mask => Object.keys(measures.events).some(event => Number(event) >>> 16 & mask);

const BAD_KINDS = ["lost", "stopped", "starved", "wait"];

function findingsPanel(timeline) {
    const links = report.findings.map((finding, i) => element("a", {
        href: "#" + (page.places.some(place => place.finding === i) ? "timeline" : KIND_PANELS[finding.kind] || "domains"),
    }, finding.text));
    const items = report.findings.map((finding, i) => element("li", {
        class: BAD_KINDS.includes(finding.kind) ? "bad" : "warn", "data-kind": finding.kind,
    }, links[i], commandElement(finding.command)));
    timeline.follow(links);
    return items.length > 0 ? element("ol", {class: "findings"}, ...items)
        : element("p", {}, page.trace.findings_none +
                  (longestWaits().length === 0 ? "" : ` The longest wait for a CPU took ${
                      formatSpan(longestWaits()[0].cycles)}; waits of 10ms or longer are findings.`));
}

function domainsPanel() {
    const rows = Object.entries(measures.domains)
        .sort((a, b) => b[1].cycles.running - a[1].cycles.running)
        .map(([domain, of]) => [
            formatDomain(domain), formatCount(of.vcpus),
            barCell(of.cycles.running / span, formatPercent(of.cycles.running, span)),
            formatPercent(of.cycles.runnable, span), formatSpan(of.latency.p50), formatSpan(of.latency.p99),
            formatSpan(of.latency.max), formatCount(of.wakes), formatCount(of.migrations),
            hasClass(HVM) ? formatCount(of.exits) : "-"]);
    return rows.length === 0 ? null : [
        makeTable([["Domain"], ["vCPUs", true], ["Running", true], ["Waiting", true], ["P50", true], ["P99", true],
                   ["Max", true], ["Wake-ups", true], ["Migrations", true], ["Exits", true]], rows),
        element("p", {class: "note"}, "Running, waiting: 100% is one CPU. P50, P99, max: length of waits for a CPU."),
        trimmedNote("measures.domains", "domains"), vcpusTable()];
}

function vcpusTable() {
    const rows = Object.entries(measures.vcpus).filter(([vcpu]) => isGuest(vcpu)).map(([vcpu, of]) => [
        formatVcpu(vcpu), ...[...STATES.map(state => of.cycles[state]), span - sumOf(of.cycles)].map(
            cycles => formatPercent(cycles, span)),
        formatCount(of.switches_in), formatCount(of.migrations)]);
    return element("details", {}, element("summary", {}, "By vCPU"),
        makeTable([["vCPU"], ...[...STATE_NAMES, "unknown"].map(name => [name[0].toUpperCase() + name.slice(1), true]),
                   ["Runs", true], ["Migrations", true]], rows),
        element("p", {class: "note"}, "100% is the time of the trace. Waiting and asleep are what Xen calls runnable and " +
            "blocked. Unknown: before the vCPU's first record, after a loss, and from its last record on: a state that had " +
            "not ended with the trace is not counted here. The timeline shows it."),
        trimmedNote("measures.vcpus", "vcpus"));
}

function waitsPanel(timeline) {
    const domains = Object.entries(page.waits).filter(([, kinds]) => Object.keys(kinds).length > 0);
    if (domains.length === 0)
        return null;
    const range = rangeOf(domains.flatMap(([, kinds]) => Object.values(kinds).map(entry => inNsec(entry))));
    const shown = domains.sort((a, b) => waitsOf(b[1]) - waitsOf(a[1])).slice(0, 12);
    const occurs = kind => shown.some(([, kinds]) => kinds[kind]);
    const rows = shown.flatMap(([domain, kinds]) => KINDS.filter(([kind]) => kinds[kind]).map(([kind, text]) => [
        formatDomain(domain), text, formatCount(kinds[kind].count),
        ...["p50", "p99", "p999", "max"].map(key => formatSpan(kinds[kind][key]))]));
    return [
        ...shown.map(([domain, kinds]) => element("div", {class: "distribution"},
            element("h3", {}, formatDomain(domain)),
            countsChart(`Waits of ${formatDomain(domain)}`,
                KINDS.filter(([kind]) => kinds[kind]).map(([kind]) => [kind, inNsec(kinds[kind])]), range))),
        element("p", {class: "legend"}, ...KINDS.filter(([kind]) => occurs(kind)).map(([kind, text]) =>
            element("span", {class: "key"}, element("i", {class: kind}), text)),
            (occurs("other") ? OTHER_WAITS + " " : "") +
            "Both scales are logarithmic. Lines: 50%, 99% and 99.9% of the waits are at most this long."),
        makeTable([["Domain"], ["Waits"], ["Number", true], ["P50", true], ["P99", true], ["P99.9", true], ["Max", true]], rows),
        domains.length > shown.length
            ? element("p", {class: "note"}, `${domains.length - shown.length} more domains: `, viewCommand("latency")) : null,
        element("h3", {}, "The longest waits"), longestTable(timeline)];
}
const waitsOf = kinds => Object.values(kinds).reduce((sum, entry) => sum + entry.count, 0);

const longestWaits = () => Object.values(measures.worst).flat().sort((a, b) => b.cycles - a.cycles).slice(0, 10);

function longestTable(timeline) {
    return makeTable([["Since"], ["vCPU"], ["Waited", true], ["CPU", true], ["Ran meanwhile"]], longestWaits().map(wait => {
        const place = {vcpu: wait.vcpu, at: wait.start - measures.span.first_tsc, cycles: wait.cycles};
        const ran = Object.entries(wait.ran).filter(([, ticks]) => ticks >= wait.cycles / 100)
            .sort((a, b) => b[1] - a[1]).slice(0, 3);
        return [element("a", {href: "#timeline", onclick: () => timeline.showPlace(place)}, formatWhen(place.at)),
                formatVcpu(wait.vcpu), formatSpan(wait.cycles), String(wait.cpu),
                ran.map(([vcpu, ticks]) => `${formatRan(vcpu, wait.cpu)} ${formatSpan(ticks)}`).join(", ")];
    }));
}

function cpusPanel() {
    const ran = {};
    for (const [vcpu, of] of Object.entries(measures.vcpus)) {
        if (isGuest(vcpu))
            for (const [cpu, cycles] of Object.entries(of.pcpu_cycles))
                (ran[cpu] = ran[cpu] || []).push([vcpu, cycles]);
    }
    const atEnd = of => of.at_end === undefined ? ""
        : `${formatVcpu(of.at_end.vcpu)} ${formatPercent(of.at_end.cycles, span)} since ${formatWhen(span - of.at_end.cycles)}`;
    const rows = Object.entries(measures.cpus).map(([cpu, of]) => [
        "CPU " + cpu, barCell(of.busy / span, formatPercent(of.busy, span)), formatPercent(of.idle, span),
        formatPercent(of.unknown - (of.at_end ? of.at_end.cycles : 0), span), (ran[cpu] || []).sort((a, b) => b[1] - a[1]).slice(0, 3)
            .map(([vcpu, cycles]) => `${formatVcpu(vcpu)} ${formatPercent(cycles, span)}`).join(", "), atEnd(of)]);
    return rows.length === 0 ? null : [
        makeTable([["CPU"], ["Busy", true], ["Idle", true], ["Unknown", true], ["Who ran most"], ["At the end"]], rows),
        element("p", {class: "note"}, "Unknown: records are missing, or the CPU was " +
            "offline. At the end: who ran since the last change; idle may mean offline."),
        trimmedNote("measures.cpus", "cpus")];
}

// Nested objects of {count, cycles, max}, or of counts, as rows, the largest first.
function tallyRows(object, nameOf, whatOf) {
    return Object.entries(object).flatMap(([who, entries]) => Object.entries(entries).map(([what, tally]) =>
        ({who, what, ...(typeof tally === "number" ? {count: tally} : tally)})))
        .sort((a, b) => (b.cycles || 0) - (a.cycles || 0) || b.count - a.count)
        .map(row => [nameOf(row.who), whatOf(row.what), formatCount(row.count),
                     ...(row.cycles === undefined ? [] : [formatSpan(row.cycles), formatSpan(row.cycles / Math.max(row.count, 1)),
                                                          formatSpan(row.max)])]);
}
const TIMES = [["Time", true], ["Mean", true], ["Max", true]];

function exitsPanel() {
    const reasons = Object.entries(measures.exits.reasons);
    if (reasons.length === 0)
        return null;
    const all = reasons.reduce((sum, [, of]) => sum + of.cycles, 0);
    const nameOf = code => measures.exits.reasons[code] ? measures.exits.reasons[code].name : code;
    const rows = reasons.sort((a, b) => b[1].cycles - a[1].cycles || b[1].count - a[1].count).map(([, of]) => [
        of.name, formatCount(of.count), barCell(all > 0 ? of.cycles / all : 0, formatSpan(of.cycles)),
        of.timed > 0 ? formatSpan(of.cycles / of.timed) : "", formatSpan(of.max)]);
    return [makeTable([["Reason"], ["Number", true], ...TIMES], rows),
            element("p", {class: "note"}, "Time: from the exit to the vCPU's next entry, without the time in which it did not run."),
            detailsOf("By vCPU", [["vCPU"], ["Reason"], ["Number", true], ...TIMES],
                      tallyRows(measures.exits.vcpus, formatVcpu, nameOf), "measures.exits.vcpus", "exits"),
            ...[["pio_read", "Ports read"], ["pio_write", "Ports written"], ["mmio_read", "Addresses read (MMIO)"],
                ["mmio_write", "Addresses written (MMIO)"]].map(([key, title]) =>
                detailsOf(title, [["Domain"], ["Address"], ["Number", true], ...TIMES],
                          tallyRows(measures.addresses[key], formatDomain, address => address),
                          "measures.addresses." + key, "mmio"))];
}

function detailsOf(title, columns, rows, path, view) {
    return rows.length === 0 ? null
        : element("details", {}, element("summary", {}, `${title} (${formatCount(rows.length)})`),
                  makeTable(columns, rows), trimmedNote(path, view));
}

function interruptsPanel() {
    const {cpus, injected, external} = measures.interrupts;
    const rows = tallyRows(cpus, cpu => "CPU " + cpu, irq => irq);
    const tables = [
        rows.length > 0 ? makeTable([["CPU"], ["IRQ"], ["Number", true], ...TIMES], rows) : null,
        detailsOf("Injected into vCPUs, by vector", [["vCPU"], ["Vector"], ["Number", true]],
                  tallyRows(injected, formatVcpu, vector => vector), "measures.interrupts.injected", "interrupts"),
        detailsOf("Exits for interrupts of the host, by vector", [["vCPU"], ["Vector"], ["Number", true]],
                  tallyRows(external, formatVcpu, vector => vector), "measures.interrupts.external", "interrupts"),
    ];
    return tables.some(Boolean) ? tables : null;
}

function powerPanel() {
    const states = tallyRows(measures.power.c_states, cpu => "CPU " + cpu, state => "C" + state);
    const frequencies = tallyRows(measures.power.frequencies, cpu => "CPU " + cpu, mhz => mhz + " MHz");
    if (states.length + frequencies.length === 0)
        return null;
    return [states.length > 0 ? makeTable([["CPU"], ["Idle state"], ["Number", true], ...TIMES], states) : null,
            frequencies.length > 0 ? makeTable([["CPU"], ["Frequency"], ["Number", true], ...TIMES], frequencies) : null];
}

const MATRIX_CPUS = 64;

function migrationsPanel() {
    const moves = {}, cpus = new Set();
    for (const of of Object.values(measures.migrations))
        for (const [from, targets] of Object.entries(of))
            for (const [to, count] of Object.entries(targets)) {
                moves[from + ">" + to] = (moves[from + ">" + to] || 0) + count;
                cpus.add(Number(from)).add(Number(to));
            }
    if (cpus.size === 0)
        return null;
    const names = [...cpus].sort((a, b) => a - b);
    const totals = Object.entries(measures.vcpus).filter(([, of]) => of.migrations > 0)
        .sort((a, b) => b[1].migrations - a[1].migrations)
        .map(([vcpu, of]) => [formatVcpu(vcpu), formatCount(of.migrations)]);
    return [names.length <= MATRIX_CPUS ? matrixChart(names, (from, to) => moves[from + ">" + to] || 0)
                : element("p", {}, `${names.length} CPUs are too many for a matrix: `, viewCommand("migrations")),
            makeTable([["vCPU"], ["Migrations", true]], totals), trimmedNote("measures.migrations", "migrations")];
}

function qualityPanel() {
    const {lost} = measures, ledger = page.trace.ledger;
    const facts = [["Records", formatCount(measures.records)], ["Lost", formatCount(lost.records)],
                   ["Gaps", formatCount(lost.gaps)], ["Contradicting runstate records", formatCount(measures.mismatches)]];
    const rows = lost.list.map(loss => ["CPU " + loss.cpu, formatWhen(loss.from - measures.span.first_tsc),
                                        formatSpan(loss.to - loss.from), loss.count > 0 ? formatCount(loss.count) : "unknown"]);
    return [
        makeTable([["In the file"], ["", true]], facts),
        page.timeline.gaps.length > 0 ? lossesChart(page.timeline.gaps, page.timeline.cpus, page.timeline.span) : null,
        rows.length > 0 ? makeTable([["Lost on"], ["From"], ["For", true], ["Records", true]], rows) : null,
        trimmedNote("measures.lost.list", "losses"),
        ledger ? makeTable([["Ledger of the capture"], ["", true]],
            ["produced", "delivered", "lost", "dropped", "evicted"].filter(key => ledger[key] !== undefined)
                .map(key => [key[0].toUpperCase() + key.slice(1), formatCount(ledger[key])])) : null];
}
