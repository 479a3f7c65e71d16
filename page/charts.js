// SPDX-License-Identifier: GPL-2.0-or-later
//
// Charts by D3, as SVG whose colors are those of the style.

const CHART_HEIGHT = 134, CHART_MOST = 800, MARGIN = {left: 52, right: 28, top: 28, bottom: 30};

// DRAW(chart) draws it for the width that there is, anew when that changes: texts keep their size.
function makeChart(label, height, draw) {
    const figure = element("figure", {class: "chart"});
    const redraw = () => {
        const room = document.querySelector("header").clientWidth, width = Math.min(Math.max(room, 250), CHART_MOST);
        figure.replaceChildren();
        const svg = d3.select(figure).append("svg")
            .attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", label);
        draw({svg, height, width, right: width - MARGIN.right, bottom: height - MARGIN.bottom});
    };
    window.addEventListener("resize", redraw);
    redraw();
    return figure;
}

const widthOf = text => 8 * text.length; // at most, as the style has it

// Labels that would not be inside of the picture end, or begin, there.
function addTimeAxis(chart, axis, format) {
    const half = value => widthOf(format(value)) / 2, x = axis.scale();
    chart.svg.append("g").attr("class", "axis").attr("transform", `translate(0,${chart.bottom})`)
        .call(axis.orient("bottom").tickFormat(format).tickSize(4))
        .selectAll("text").style("text-anchor", value => x(value) + half(value) > chart.width ? "end"
            : x(value) < half(value) ? "start" : "middle");
}

function addLaneAxis(chart, axis) {
    chart.svg.append("g").attr("class", "axis").attr("transform", `translate(${MARGIN.left},0)`).call(axis.orient("left"));
}

const powersOf = (base, low, high) => {
    const result = [];
    for (let value = base ** Math.floor(Math.log(low) / Math.log(base) + 1e-9); value <= high * 1.0001; value *= base)
        if (value >= low * 0.9999)
            result.push(value);
    return result;
};

const KINDS = [["wake", "after a wake-up"], ["preempt", "after a preemption"], ["other", "other"]];
const OTHER_WAITS = "Other: before the wait, the vCPU was offline, or its state was unknown.";

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
    return makeChart(label, CHART_HEIGHT, chart => {
        const x = d3.scale.log().domain(range).range([MARGIN.left, chart.right]);
        const y = d3.scale.log().domain([0.7 * low, high]).range([chart.bottom, MARGIN.top]);
        const powers = powersOf(10, ...range), step = Math.ceil(powers.length * 50 / (chart.right - MARGIN.left));
        addTimeAxis(chart, d3.svg.axis().scale(x).tickValues(powers.filter((_, i) => i % step === 0)), formatNsec);
        addLaneAxis(chart, d3.svg.axis().scale(y).tickValues(powersOf(10, low, high)).tickFormat(format)
            .tickSize(MARGIN.left - chart.right));
        series.forEach(one => addSeries(chart, x, y, one, {range, low, valueOf}));
    });
}

function addSeries(chart, x, y, {className, entry, name, row}, {range, low, valueOf}) {
    const bins = Object.entries(entry.bins).map(([bin, count]) => [Number(bin), count]);
    const left = bin => x(Math.max(2 ** (bin / 4), range[0])), top = count => y(valueOf(count, entry));
    chart.svg.append("g").attr("class", "waits " + className).selectAll("rect").data(bins).enter().append("rect")
        .attr("x", bin => left(bin[0]))
        .attr("width", bin => Math.max(x(2 ** ((bin[0] + 1) / 4)) - left(bin[0]) - 0.5, 1))
        .attr("y", bin => top(bin[1])).attr("height", bin => y(0.7 * low) - top(bin[1]))
        .append("title").text(bin => `${formatCount(bin[1])} waits from ${formatNsec(2 ** (bin[0] / 4))}, ${name}`);
    if (row !== null && entry.count >= 10) // a few waits have no percentiles to speak of
        addPercentiles(chart, x, {className, entry, row});
}

function addPercentiles(chart, x, {className, entry, row}) {
    const group = chart.svg.append("g").attr("class", "percentiles " + className), labels = [];
    for (const [key, text] of [["p50", "50%"], ["p99", "99%"], ["p999", "99.9%"]].filter(([of]) => entry[of] > 0)) {
        const at = Math.max(x(entry[key]), MARGIN.left), before = labels[labels.length - 1];
        group.append("line").attr("x1", at).attr("x2", at).attr("y1", MARGIN.top - 4).attr("y2", chart.bottom);
        if (before && before.value === entry[key])
            before.text += ", " + text;
        else
            labels.push({at, text, value: entry[key]});
    }
    spread(labels, chart.width);
    for (const {at, text} of labels)
        group.append("text").attr("x", at).attr("y", 9 + 12 * row).attr("text-anchor", "middle").text(text);
}

// Moves labels that are on one another apart, and from the edge.
function spread(labels, width) {
    const least = (a, b) => (widthOf(a.text) + widthOf(b.text)) / 2 + 4;
    for (let turn = 0; turn < 30; turn++)
        for (let i = 1; i < labels.length; i++) {
            const [a, b] = [labels[i - 1], labels[i]], by = Math.max(least(a, b) - (b.at - a.at), 0) / 2;
            a.at -= by;
            b.at += by;
        }
    for (let i = labels.length - 1, right = width; i >= 0; i--) {
        labels[i].at = Math.min(labels[i].at, right - widthOf(labels[i].text) / 2);
        right = labels[i].at - widthOf(labels[i].text) / 2 - 4;
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
    return makeChart("Losses per CPU over time", MARGIN.top + MARGIN.bottom + 18 * lost.length, chart => {
        const offset = page.trace.realtime_nsec ? 0 : nsecOf(page.trace.offset);
        const x = d3.scale.linear().domain([offset, offset + nsecOf(span)]).range([MARGIN.left, chart.right]);
        const xOf = ticks => x(offset + nsecOf(ticks));
        const y = d3.scale.ordinal().domain(lost).rangeBands([MARGIN.top, chart.bottom], 0.2);
        addTimeAxis(chart, d3.svg.axis().scale(x).tickValues(x.ticks(chart.width / 160)),
            nsec => formatWhen(ticksOf(nsec - offset + 1)));
        addLaneAxis(chart, d3.svg.axis().scale(y).tickFormat(i => "CPU " + cpus[i]).tickSize(0));
        chart.svg.append("g").attr("class", "losses").selectAll("rect").data(gaps).enter().append("rect")
            .attr("x", gap => xOf(gap[1])).attr("width", gap => Math.max(xOf(gap[2]) - xOf(gap[1]), 1.5))
            .attr("y", gap => y(gap[0])).attr("height", y.rangeBand())
            .append("title").text(gap => `CPU ${cpus[gap[0]]}: ${gap[3] > 0 ? formatCount(gap[3]) : "an unknown number of"} ` +
                `records lost from ${formatWhen(gap[1])} for ${formatSpan(gap[2] - gap[1])}`);
    });
}

// A matrix of numbers: from each CPU to each other. The color is the part of all, of which there are 100 at least, so
// that few of them are pale; its root, so that small parts differ, too.
function matrixChart(names, valueOf) {
    const all = sumOf(names.flatMap(from => names.map(to => valueOf(from, to))));
    const cell = (from, to) => {
        const value = valueOf(from, to);
        const result = element("td", {class: "number"}, value > 0 ? formatCount(value) : "");
        if (value > 0)
            result.style.setProperty("--part", Math.round(8 + 52 * Math.sqrt(value / Math.max(all, 100))) + "%");
        return result;
    };
    return element("div", {class: "table"}, element("table", {class: "matrix"},
        element("thead", {}, element("tr", {}, element("th", {}, "from \\ to"),
            ...names.map(name => element("th", {scope: "col", class: "number"}, name)))),
        element("tbody", {}, ...names.map(from => element("tr", {},
            element("th", {scope: "row"}, "CPU " + from), ...names.map(to => cell(from, to)))))));
}
