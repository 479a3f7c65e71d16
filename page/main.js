// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fills the page.

function fill(id, content, nothing) {
    const section = document.getElementById(id);
    section.append(...(content ? [content].flat().filter(Boolean) : [element("p", {class: "none"}, nothing)]));
}

function addHead() {
    const {trace} = page;
    const host = [trace.hostname, trace.xen_version ? "Xen " + trace.xen_version : null, trace.scheduler].filter(Boolean);
    const name = trace.name.slice(trace.name.lastIndexOf("/") + 1);
    document.title = `${name} - Xen trace`;
    document.getElementById("title").textContent = name;
    document.getElementById("host").textContent = host.join(", ");
    document.getElementById("quality-lines").append(...trace.quality.map(
        line => element("p", {class: trace.cause && line.includes(trace.cause) ? "cause" : null}, line)));
}

const model = new Model(page.timeline);
const timeline = new Timeline(model, page.places);
const NO_SCHED = "Not in this trace: it has no sched records.";
addHead();
fill("findings", findingsPanel(timeline));
document.getElementById("timeline-help").before(timeline.element);
fill("domains", domainsPanel(), NO_SCHED);
fill("waits", waitsPanel(timeline), "No wait of a vCPU for a CPU is in this trace.");
fill("cpus", cpusPanel(), NO_SCHED);
fill("exits", exitsPanel(), "No VM exit is in this trace: no HVM or PVH guest ran, or it has no hvm records.");
fill("interrupts", interruptsPanel(), "No interrupt is in this trace.");
fill("power", powerPanel(), "No change of an idle state or a frequency is in this trace.");
fill("migrations", migrationsPanel(), "No vCPU ran on more than one CPU.");
fill("quality", qualityPanel());
timeline.layout();
// For tests, and for whoever is curious.
window.xentraced = {page, formatWhen, Model, Timeline, timeline};
