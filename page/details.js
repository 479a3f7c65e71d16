// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is known of an interval that was clicked: of a wait, who ran meanwhile and who ended the sleep.

function describeWaker(model, i) {
    const {from, cpu, wait} = model.intervals;
    const number = model.cpus[cpu[i]];
    const waker = model.whoRan(cpu[i], from[i] - 1);
    if (wait[i] === 0)
        return number === undefined ? "It was woken up."
            : `It was woken up from CPU ${number}` +
              (waker ? `, where ${formatVcpu(waker)} was running.` : ", where nothing is known to have run.");
    return wait[i] === 1 ? "Before that it ran, and was preempted or yielded."
        : "Before that it was offline, or its state was unknown.";
}

// What `why` knows of the wait: the scheduler's reasons.
function describeStory(vcpu, from) {
    const story = page.stories.find(one => one.vcpu === vcpu && one.at === from);
    if (!story)
        return null;
    const credit = value => (value / 1e6).toFixed(2) + "ms", times = nr => nr === 1 ? "once" : `${formatCount(nr)} times`;
    const texts = [], {credit2} = story;
    if (story.yielded)
        texts.push("It had yielded.");
    if (credit2 && credit2.decisions > 0)
        texts.push(`Credit2 took another vCPU ${times(credit2.decisions)}, the last time ${formatVcpu(credit2.last)} ` +
                   `with a credit of ${credit(credit2.last_credit)}` +
                   (credit2.credit === undefined ? "." : `, against ${credit(credit2.credit)} of ${formatVcpu(vcpu)}.`));
    if (credit2 && credit2.ratelimits > 0)
        texts.push(`Credit2's rate limit let the one that ran continue ${times(credit2.ratelimits)}.`);
    if (story.lock_holder)
        texts.push(`It probably held a lock: others of its domain yielded or paused ${times(story.spins)} meanwhile.`);
    return texts.length > 0 ? element("p", {class: "reasons"}, texts.join(" ")) : null;
}

function ranTable(model, i, cpu) {
    const {from, to} = model.intervals, length = to[i] - from[i];
    const ran = model.ranOn(cpu, from[i], to[i]);
    if (!ran)
        return element("p", {}, "Who ran meanwhile is not in this page as a whole.");
    const rows = [...ran].sort((a, b) => b[1] - a[1]);
    const rest = length - rows.reduce((sum, [, ticks]) => sum + ticks, 0);
    const shown = rows.slice(0, 10).map(([vcpu, ticks]) => [formatRan(vcpu, model.cpus[cpu]), ticks]);
    if (rest > length / 1000)
        shown.push(["unknown", rest]);
    return makeTable([["On CPU " + model.cpus[cpu] + " meanwhile"], ["Ran", true], ["Of the wait", true]],
                     shown.map(([who, ticks]) => [who, formatSpan(ticks), formatPercent(ticks, length)]));
}

function describeWait(model, i) {
    const intervals = model.intervals, vcpu = model.vcpus[intervals.vcpu[i]];
    const window = model.windows.find(
        one => one.rows && one.rows.some(row => row.first <= i && i < row.last));
    const row = window.rows[intervals.vcpu[i]];
    const cpu = model.awaitedCpu(i, row.first, row.last);
    const isOpen = intervals.flags[i] & 2;
    const length = intervals.to[i] - intervals.from[i];
    return [
        element("p", {class: "headline"}, element("strong", {}, formatVcpu(vcpu)),
                ` waited ${formatSpan(length)}` +
                (model.cpus[cpu] === undefined ? " for a CPU" : ` for CPU ${model.cpus[cpu]}`) +
                ` from ${formatWhen(intervals.from[i], 6)}` + (isOpen ? " until the trace ended. " : ". ") +
                describeWaker(model, i)),
        model.cpus[cpu] === undefined ? null : ranTable(model, i, cpu),
        describeStory(vcpu, intervals.from[i]),
        element("p", {}, "What came before and after: ", commandElement(
            commandFor(`why --at ${formatAt(intervals.from[i] + length / 2)} ${vcpu}`))),
    ];
}

function describeInterval(model, i) {
    const {from, to, state, cpu, flags} = model.intervals;
    const vcpu = model.vcpus[model.intervals.vcpu[i]];
    if (state[i] === RUNNABLE)
        return describeWait(model, i);
    const words = {
        [RUNNING]: `ran on CPU ${model.cpus[cpu[i]]}`, [BLOCKED]: "was asleep", [OFFLINE]: "was offline",
    };
    const end = flags[i] & 2 ? ", when the trace ended" : flags[i] & 1 ? ", when records were lost" : "";
    return [
        element("p", {class: "headline"}, element("strong", {}, formatVcpu(vcpu)),
                ` ${words[state[i]]} for ${formatSpan(to[i] - from[i])}, from ${formatWhen(from[i], 6)} ` +
                `until ${formatWhen(to[i], 6)}${end}.`),
        element("p", {}, "What it did around that time: ",
                commandElement(commandFor(`why --at ${formatAt((from[i] + to[i]) / 2)} ${vcpu}`))),
    ];
}

// A column: sums, and the command that shows what they are of.
function describeColumn(lane, i, name) {
    const from = lane.from[i], to = lane.to[i], level = lane.levels[0];
    const parts = level.sums.length === 4
        ? STATE_NAMES.map((state, k) => [state, level.sums[k][i]])
        : level.sums.length === 2
            ? [["busy", level.sums[0][i]], ["idle", level.sums[1][i]]] : [["waiting", level.sums[0][i]]];
    const text = parts.filter(([, ticks]) => ticks > 0)
        .map(([state, ticks]) => `${state} ${formatPercent(ticks, to - from)}`).join(", ");
    const wait = level.wait[i] > 0 ? ` Its longest wait: about ${formatSpan(level.wait[i])}.` : "";
    return [
        element("p", {class: "headline"}, element("strong", {}, name),
                ` from ${formatWhen(from, 6)} for ${formatSpan(to - from)}: ${text || "unknown"}.${wait}`),
        element("p", {}, "Each interval of that time: ", commandElement(commandFor(
            `timeline --since ${formatAt(from)} --until ${formatAt(to)}`))),
    ];
}

function describeIdle(cpu, from, to) {
    return [
        element("p", {class: "headline"}, element("strong", {}, "CPU " + cpu),
                ` was idle for ${formatSpan(to - from)}, from ${formatWhen(from, 6)} until ${formatWhen(to, 6)}.`),
        element("p", {}, "The records of that time: ",
                commandElement(commandFor(`dump --cpu ${cpu} --since ${formatAt(from)} --until ${formatAt(to)}`))),
    ];
}

// [CPU, from, to, how many records; 0: unknown]
function describeGap(model, [cpu, from, to, count]) {
    const missing = count === 1 ? "1 record is" : `${count > 0 ? formatCount(count) : "an unknown number of"} records are`;
    return [
        element("p", {class: "headline"}, element("strong", {}, "CPU " + model.cpus[cpu]),
                ` lost records for ${formatSpan(to - from)}, from ${formatWhen(from, 6)} until ${formatWhen(to, 6)}: ` +
                `${missing} missing, and who ran there is unknown.`),
        element("p", {}, "All losses: ", commandElement(commandFor("report --view losses"))),
    ];
}

function describeCause() {
    return [element("p", {class: "headline"}, element("strong", {}, "Cause of the snapshot"),
                    `, seen at ${formatWhen(page.trace.cause_at, 6)}: ${page.trace.cause}`)];
}

function describeUnknown(name, at) {
    return [element("p", {class: "headline"}, element("strong", {}, name),
                    `: no record says what it did at ${formatWhen(at, 6)}.`)];
}
