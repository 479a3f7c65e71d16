// SPDX-License-Identifier: GPL-2.0-or-later
//
// Charts by D3, as SVG whose colors are those of the style.

// As wide as there is room when the page is opened.
const CHART_WIDTH = Math.min(Math.max(document.body.clientWidth - 30, 300), 800);
const CHART_HEIGHT = 130, MARGIN = {left: 52, right: 28, top: 24, bottom: 30};

function makeChart(label, height = CHART_HEIGHT) {
    const figure = element("figure", {class: "chart"});
    const svg = d3.select(figure).append("svg")
        .attr("viewBox", `0 0 ${CHART_WIDTH} ${height}`).attr("role", "img").attr("aria-label", label);
    return {figure, svg, height};
}

function addAxes(chart, x, y, formatX, formatY, xValues, yValues) {
    chart.svg.append("g").attr("class", "axis")
        .attr("transform", `translate(0,${chart.height - MARGIN.bottom})`)
        .call(d3.svg.axis().scale(x).orient("bottom").tickValues(xValues).tickFormat(formatX).tickSize(4));
    chart.svg.append("g").attr("class", "axis").attr("transform", `translate(${MARGIN.left},0)`)
        .call(d3.svg.axis().scale(y).orient("left").tickValues(yValues).tickFormat(formatY)
            .tickSize(-(CHART_WIDTH - MARGIN.left - MARGIN.right)));
}

const powersOf = (base, low, high) => {
    const result = [];
    for (let value = base ** Math.floor(Math.log(low) / Math.log(base) + 1e-9); value <= high * 1.0001; value *= base)
        if (value >= low * 0.9999)
            result.push(value);
    return result;
};

const KINDS = [["wake", "after a wake-up"], ["preempt", "after a preemption"], ["other", "other"]];

// The waits of one kind, as the document has them (docs/page.md), in nanoseconds.
function inNsec(entry, khz = page.trace.tsc_khz) {
    const lengths = ["p50", "p99", "p999", "max"].map(key => [key, nsecOf(entry[key], khz)]);
    return {...entry, ...Object.fromEntries(lengths)};
}

// From the shortest to the longest wait of ENTRIES, in full powers of ten.
function rangeOf(entries) {
    const lowest = Math.min(...entries.flatMap(entry => Object.keys(entry.bins).map(Number)));
    return [10 ** Math.floor(Math.log10(Math.max(2 ** (lowest / 4), 100))),
            10 ** Math.ceil(Math.log10(Math.max(...entries.map(entry => entry.max), 1e6)))];
}

// Distributions over one another: lengths to the right, VALUES from LOW to HIGH upwards, both logarithmic.
// Series: {className, entry, name, row: of its percentiles' names}. RANGE is that of all charts of a panel, so
// that they can be compared.
function distributionChart(label, series, range, {low, high, valueOf, format}) {
    const chart = makeChart(label);
    const x = d3.scale.log().domain(range).range([MARGIN.left, CHART_WIDTH - MARGIN.right]);
    const y = d3.scale.log().domain([0.7 * low, high]).range([chart.height - MARGIN.bottom, MARGIN.top]);
    addAxes(chart, x, y, formatNsec, format, powersOf(10, ...range), powersOf(10, low, high));
    for (const {className, entry, name, row} of series) {
        const bins = Object.entries(entry.bins).map(([bin, count]) => [Number(bin), count]);
        const left = bin => x(Math.max(2 ** (bin / 4), range[0])), top = count => y(valueOf(count, entry));
        chart.svg.append("g").attr("class", "waits " + className).selectAll("rect").data(bins).enter().append("rect")
            .attr("x", bin => left(bin[0]))
            .attr("width", bin => Math.max(x(2 ** ((bin[0] + 1) / 4)) - left(bin[0]) - 0.5, 1))
            .attr("y", bin => top(bin[1])).attr("height", bin => y(0.7 * low) - top(bin[1]))
            .append("title").text(bin => `${formatCount(bin[1])} waits from ${formatNsec(2 ** (bin[0] / 4))}, ${name}`);
        if (row !== null && entry.count >= 10) // a few waits have no percentiles to speak of
            addPercentiles(chart, x, y(0.7 * low), {className, entry, row});
    }
    return chart.figure;
}

function addPercentiles(chart, x, bottom, {className, entry, row}) {
    const marks = [["p50", "50%"], ["p99", "99%"], ["p999", "99.9%"]].filter(([key]) => entry[key] > 0);
    const group = chart.svg.append("g").attr("class", "percentiles " + className);
    let before = null;
    for (const [key, text] of marks) {
        const at = Math.max(x(entry[key]), MARGIN.left);
        group.append("line").attr("x1", at).attr("x2", at).attr("y1", MARGIN.top - 4).attr("y2", bottom);
        if (before && at - before.attr("x") < 40)
            before.text(before.text() + ", " + text);
        else
            before = group.append("text").attr("x", at).attr("y", 8 + 10 * row).attr("text-anchor", "middle").text(text);
    }
}

// A domain's waits of each kind: [kind, entry].
function countsChart(label, kinds, range) {
    const most = Math.max(...kinds.flatMap(([, entry]) => Object.values(entry.bins)));
    return distributionChart(label, kinds.map(([kind, entry]) => ({
        className: kind, entry, name: kind, row: kind === "other" ? null : Number(kind === "preempt")})), range,
        {low: 1, high: Math.max(most, 10), valueOf: count => count, format: formatCount});
}

// A domain's waits of one kind in two traces, of which one may have more: [class, name, entry].
function sharesChart(label, traces, range) {
    const shareOf = (count, entry) => count / entry.count;
    const least = Math.min(...traces.flatMap(([, , entry]) => Object.values(entry.bins).map(count => shareOf(count, entry))));
    return distributionChart(label, traces.map(([className, name, entry]) => ({
        className, entry, name, row: Number(className === "b")})), range,
        {low: 10 ** Math.floor(Math.log10(Math.min(least, 0.1)) + 1e-9), high: 1, valueOf: shareOf,
         format: share => Number((100 * share).toPrecision(1)) + "%"});
}

// Records lost in each part of the time, a row for each CPU that lost any.
function lossesChart(gaps, cpus, span) {
    const lost = [...new Set(gaps.map(gap => gap[0]))].sort((a, b) => a - b);
    const chart = makeChart("Losses per CPU over time", MARGIN.top + MARGIN.bottom + 18 * lost.length);
    const offset = page.trace.realtime_nsec ? 0 : nsecOf(page.trace.offset);
    const x = d3.scale.linear().domain([offset, offset + nsecOf(span)]).range([MARGIN.left, CHART_WIDTH - MARGIN.right]);
    const xOf = ticks => x(offset + nsecOf(ticks));
    const y = d3.scale.ordinal().domain(lost).rangeBands([MARGIN.top, chart.height - MARGIN.bottom], 0.2);
    chart.svg.append("g").attr("class", "axis").attr("transform", `translate(0,${chart.height - MARGIN.bottom})`)
        .call(d3.svg.axis().scale(x).orient("bottom").ticks(CHART_WIDTH / 140)
            .tickFormat(nsec => formatWhen(ticksOf(nsec - offset + 1))).tickSize(4));
    chart.svg.append("g").attr("class", "axis").attr("transform", `translate(${MARGIN.left},0)`)
        .call(d3.svg.axis().scale(y).orient("left").tickFormat(i => "CPU " + cpus[i]).tickSize(0));
    chart.svg.append("g").attr("class", "losses").selectAll("rect").data(gaps).enter().append("rect")
        .attr("x", gap => xOf(gap[1])).attr("width", gap => Math.max(xOf(gap[2]) - xOf(gap[1]), 1.5))
        .attr("y", gap => y(gap[0])).attr("height", y.rangeBand())
        .append("title").text(gap => `CPU ${cpus[gap[0]]}: ${gap[3] > 0 ? formatCount(gap[3]) : "an unknown number of"} ` +
            `records lost from ${formatWhen(gap[1])} for ${formatSpan(gap[2] - gap[1])}`);
    return chart.figure;
}

// A matrix of numbers: from each CPU to each other.
function matrixChart(names, valueOf) {
    const most = Math.max(...names.flatMap(from => names.map(to => valueOf(from, to))));
    const cell = (from, to) => {
        const value = valueOf(from, to);
        const result = element("td", {class: "number"}, value > 0 ? formatCount(value) : "");
        if (value > 0)
            result.style.setProperty("--part", Math.round(12 + 68 * value / most) + "%");
        return result;
    };
    return element("div", {class: "table"}, element("table", {class: "matrix"},
        element("thead", {}, element("tr", {}, element("th", {}, "from \\ to"),
            ...names.map(name => element("th", {scope: "col", class: "number"}, name)))),
        element("tbody", {}, ...names.map(from => element("tr", {},
            element("th", {scope: "row"}, "CPU " + from), ...names.map(to => cell(from, to)))))));
}
