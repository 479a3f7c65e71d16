// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fills the page.

function fill(id, content, nothing) {
    const section = document.getElementById(id);
    section.append(...(content ? [content].flat().filter(Boolean) : [element("p", {class: "none"}, ...[nothing].flat())]));
}

// Of a panel without data, because no event of class NAME was recorded; with EVENTS, there will be. (Whose an exit is
// takes sched.)
const notRecorded = (name, events) => [`Not in this trace: it has no ${name} records. To record them: `,
                                       commandElement(`xentracectl start -e ${events}`)];

// Why a trigger took the snapshot: a link to that time, if the trace has it; the line says when, or the trigger saw it.
function causeLine(line, timeline) {
    const at = page.trace.cause_at, seen = line.endsWith(page.trace.cause) ? ` Seen at ${formatWhen(at)}.` : "";
    return element("p", {class: "cause"}, at === undefined ? line
        : element("a", {href: "#timeline", onclick: () => timeline.showCause()}, line + seen));
}

function addHead(timeline) {
    const {trace} = page;
    const host = [trace.hostname, trace.xen_version ? "Xen " + trace.xen_version : null, trace.scheduler].filter(Boolean);
    const name = trace.name.slice(trace.name.lastIndexOf("/") + 1);
    document.title = `${[name, formatDate(trace)].filter(Boolean).join(", ")} - Xen trace`;
    document.getElementById("title").textContent = name;
    document.getElementById("host").textContent = host.join(", ");
    document.getElementById("quality-lines").append(...trace.quality.map(
        line => trace.cause && line.includes(trace.cause) ? causeLine(line, timeline)
            : element("p", {class: line.startsWith("TSC frequency unknown") ? "warned" : null}, line)));
}

// The sections of a page about one trace or two, and links to them.
function addSections(id) {
    document.querySelector("header").after(document.getElementById(id).content);
    document.querySelector("nav").append(...[...document.querySelectorAll("section")].map(
        section => element("a", {href: "#" + section.id}, section.querySelector("h2").textContent)));
}

function fillReport() {
    const model = new Model(page.timeline), timeline = new Timeline(model, page.places);
    const noSched = () => notRecorded("sched", "sched"), noHw = () => notRecorded("hw", "hw");
    addSections("report-page");
    addHead(timeline);
    fill("findings", findingsPanel(timeline));
    document.getElementById("timeline-help").before(timeline.element);
    fill("domains", domainsPanel(), noSched());
    fill("waits", waitsPanel(timeline), "No wait of a vCPU for a CPU is in this trace.");
    fill("cpus", cpusPanel(), noSched());
    fill("exits", exitsPanel(), hasClass(HVM) ? "No VM exit is in this trace." : notRecorded("hvm", "sched,hvm"));
    fill("interrupts", interruptsPanel(), hasClass(HW) ? "No interrupt is in this trace." : noHw());
    fill("power", powerPanel(), hasClass(HW) ? "No change of an idle state or a frequency is in this trace."
        : noHw());
    fill("migrations", migrationsPanel(), "No vCPU ran on more than one CPU.");
    fill("quality", qualityPanel());
    timeline.layout();
    return {formatWhen, Model, Timeline, timeline};
}

function fillDiff() {
    addSections("diff-page");
    addDiffHead();
    fill("differences", differencesPanel());
    fill("run", runPanel(), "Neither trace has a sched record of a domain.");
    fill("waits", diffWaitsPanel(), "No wait of a vCPU for a CPU is in these traces.");
    fill("distributions", distributionsPanel(), "No wait after a wake-up or a preemption is in these traces.");
    fill("exits", diffExitsPanel(), "No VM exit is in these traces.");
    return {};
}

// For tests, and for whoever is curious.
window.xentraced = {page, ...(page.diff ? fillDiff() : fillReport())};
