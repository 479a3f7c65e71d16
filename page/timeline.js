// SPDX-License-Identifier: GPL-2.0-or-later
//
// The timeline on a canvas: zoomed and moved by wheel, mouse, touch and keyboard. Each redrawing costs
// as much as there are pixels, not as there are intervals (lane.js, raster.js).

const LIGHT = {
    paper: "#ffffff", row: "#f3f4f6", text: "#1f2328", dim: "#656d76", line: "#d0d7de", idle: "#e3e7eb",
    offline: "#9aa4ae", gap: "#8c6d00", mark: "#8250df", selected: "#0969da",
    runs: ["#2f81f7", "#2da44e", "#8a63d2", "#0f8b8d", "#b08800", "#5d6b7a", "#bf5fa8", "#4f6f2f"],
    waits: ["#f7b5a8", "#f0806c", "#e5402b", "#a30d00"],
};
const DARK = {
    paper: "#0d1117", row: "#161b22", text: "#e6edf3", dim: "#9aa4ae", line: "#30363d", idle: "#242b33",
    offline: "#57606a", gap: "#d4a72c", mark: "#bc8cff", selected: "#58a6ff",
    runs: ["#388bfd", "#3fb950", "#a371f7", "#39c5cf", "#d29922", "#8b98a5", "#db61a2", "#8ab85c"],
    waits: ["#a05a50", "#d9695a", "#ff8a6c", "#ffcdb8"],
};
// From these lengths on, a wait is drawn in the next of the four colors.
const WAIT_NSEC = [0, 1e6, 1e7, 1e8];

const CPU_HEIGHT = 24, CPU_BAR = 16, WAIT_BAR = 5, VCPU_HEIGHT = 20, VCPU_BAR = 16, AXIS_HEIGHT = 30;
const FEW_HEIGHT = 200;
const SHORTEST_NSEC = 1000; // that the picture shows
const ALL_ROWS = -1; // what is selected is a time

const rgbOf = color => [1, 3, 5].map(i => parseInt(color.slice(i, i + 2), 16));
// As an ImageData has it in its memory.
const pixelOf = color => {
    const [red, green, blue] = rgbOf(color);
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
};

class Timeline {
    constructor(model, places) {
        this.model = model;
        this.places = places;
        this.links = [];
        this.marks = [];
        this.by = "cpu";
        this.from = 0;
        this.until = model.span;
        this.top = 0;
        this.selected = null;
        this.domains = [...new Set(model.vcpus.map(domainOf))];
        this.#makeElements();
        this.#listen();
    }

    // --- Elements. ---

    #makeElements() {
        const button = (text, title, run) =>
            element("button", {type: "button", title, onclick: () => { run(); this.canvas.focus(); }}, text);
        this.byCpu = button("CPUs", "A lane for each physical CPU", () => this.show("cpu"));
        this.byVcpu = button("vCPUs", "A lane for each vCPU", () => this.show("vcpu"));
        this.canvas = element("canvas", {tabindex: "0", role: "application", "aria-describedby": "timeline-help",
                                         "aria-label": "Timeline"});
        this.spacer = element("div", {class: "spacer"}, this.canvas);
        this.box = element("div", {class: "lanes"}, this.spacer);
        this.note = element("p", {class: "note", id: "timeline-note"});
        this.details = element("div", {class: "details", id: "details", "aria-live": "polite"});
        this.element = element("div", {},
            element("div", {class: "controls"},
                element("span", {class: "switch"}, this.byCpu, this.byVcpu),
                element("span", {class: "switch"},
                    button("−", "Zoom out (-)", () => this.zoom(2)), button("+", "Zoom in (+)", () => this.zoom(0.5)),
                    button("←", "Earlier (left)", () => this.move(-0.25)),
                    button("→", "Later (right)", () => this.move(0.25)),
                    button("All", "The whole trace (0)", () => this.setRange(0, this.model.span)))),
            this.#makeLegend(), this.box, this.note, this.details);
    }

    #makeLegend() {
        const item = (color, text, attributes = {}) =>
            element("span", {class: "key"}, element("i", {"data-color": color, ...attributes}), text);
        const {model} = this, has = state => model.vcpuLanes.some(lane => lane.total(state) > 0);
        const isIdle = model.cpuLanes.some(lane => lane.total(1) > 0);
        const longest = [...model.vcpuLanes, ...model.cpuWaits].flatMap(lane => [...new Set(lane.levels[0].wait)]);
        const classes = new Set(longest.filter(wait => wait > 0).map(wait => this.#classOf(wait)));
        const waits = WAIT_NSEC.map((nsec, i) => classes.has(i) ? item("waits." + i,
            i === 0 ? "waiting" : `waiting from ${nsec / 1e6} ms`) : null);
        return element("p", {class: "legend"},
            ...this.domains.slice(0, 12).map((domain, i) => item("runs." + i % LIGHT.runs.length, formatDomain(domain))),
            ...waits, model.gaps.length > 0 ? item("gap", "records lost", {class: "hatched"}) : null,
            isIdle || has(BLOCKED) ? item("idle", "idle, asleep") : null, has(OFFLINE) ? item("offline", "offline") : null,
            model.isPartlyUnknown ? item("dim", "unknown", {class: "dashed"}) : null,
            page.trace.cause_at === undefined ? null : item("mark", "cause of the snapshot"));
    }

    #colorLegend() {
        for (const sample of this.element.querySelectorAll("[data-color]")) {
            const [name, i] = sample.dataset.color.split(".");
            sample.style.backgroundColor = i === undefined ? this.colors[name] : this.colors[name][i];
        }
    }

    // --- Size and rows. ---

    get rows() {
        return this.by === "cpu" ? this.model.cpus.length : this.model.vcpus.length;
    }
    // A few rows may be higher.
    get rowScale() {
        const height = this.rows * (this.by === "cpu" ? CPU_HEIGHT : VCPU_HEIGHT);
        return Math.min(Math.max(FEW_HEIGHT / Math.max(height, 1), 1), 2);
    }
    get rowHeight() {
        return Math.round((this.by === "cpu" ? CPU_HEIGHT : VCPU_HEIGHT) * this.rowScale);
    }
    // Of the row's main bar.
    get barHeight() {
        return Math.round((this.by === "cpu" ? CPU_BAR : VCPU_BAR) * this.rowScale);
    }

    // After the page's width has changed, or what it shows.
    layout() {
        const ratio = window.devicePixelRatio || 1;
        this.width = Math.max(this.box.clientWidth, 200);
        this.gutter = Math.min(110, Math.round(this.width * 0.22));
        const all = AXIS_HEIGHT + this.rows * this.rowHeight;
        this.height = this.isPrinting ? all : Math.min(all, Math.max(Math.round(window.innerHeight * 0.6), 160));
        this.canvas.width = Math.round(this.width * ratio);
        this.canvas.height = Math.round(this.height * ratio);
        this.canvas.style.width = this.width + "px";
        this.canvas.style.height = this.height + "px";
        this.box.style.height = this.height + "px";
        this.spacer.style.height = all + "px";
        this.ratio = ratio;
        this.draw();
    }

    show(by) {
        this.by = by;
        this.box.scrollTop = 0;
        this.layout();
    }

    setRange(from, until) {
        const least = ticksOf(SHORTEST_NSEC), span = this.model.span;
        const length = Math.min(Math.max(until - from, least), span);
        const middle = (from + until) / 2;
        this.from = Math.min(Math.max(middle - length / 2, 0), span - length);
        this.until = this.from + length;
        this.scheduleDraw();
    }

    // AT: the part of the picture that stays where it is.
    zoom(factor, at = 0.5) {
        const length = this.until - this.from, next = Math.min(length * factor, this.model.span);
        const from = this.from + (length - next) * at;
        this.setRange(from, from + next);
    }
    move(part) {
        const by = (this.until - this.from) * part;
        this.setRange(this.from + by, this.until + by);
    }

    // The vCPU's lane, and its interval selected; or all CPUs, and the time, of which DESCRIPTION says what it is.
    showPlace(place, description) {
        const length = Math.max(place.cycles, ticksOf(2e6));
        const row = this.model.vcpus.indexOf(place.vcpu), lane = this.model.vcpuLanes[row];
        this.by = lane ? "vcpu" : "cpu";
        this.layout();
        this.setRange(place.at - length, place.at + 2 * length);
        if (!lane)
            return this.#selectTime(ALL_ROWS, place.at, place.at + place.cycles, description);
        this.box.scrollTop = Math.max(row * this.rowHeight - this.height / 2, 0);
        const i = lane.find(place.at + Math.min(place.cycles / 2, 1));
        if (i < lane.length)
            this.select(lane, i, row);
        else
            this.clear();
    }

    showCause() {
        this.showPlace({at: page.trace.cause_at, cycles: 0}, describeCause());
    }

    // A click on a link to a finding, or its mark, shows the finding's place, if it has one.
    follow(links) {
        this.links = links;
        links.forEach((link, i) => link.addEventListener("click", () => this.#showFinding(i)));
    }

    #showFinding(i) {
        const place = this.places.find(one => one.finding === i);
        if (place)
            this.showPlace(place, [element("p", {class: "headline"}, this.links[i].textContent)]);
        else
            this.clear();
        this.links[i].setAttribute("aria-current", "true");
        this.finding = i;
        return place;
    }

    #nextFinding(step) {
        const nr = this.links.length;
        if (nr === 0)
            return;
        const i = ((this.finding === undefined ? Math.min(-step, 0) : this.finding) + step + nr) % nr;
        if (this.#showFinding(i)) {
            this.element.parentElement.scrollIntoView();
            this.canvas.focus({preventScroll: true});
        } else {
            this.links[i].focus();
        }
    }

    // --- Drawing. ---

    scheduleDraw() {
        if (!this.isScheduled)
            requestAnimationFrame(() => { this.isScheduled = false; this.draw(); });
        this.isScheduled = true;
    }

    draw() {
        const dark = matchMedia("(prefers-color-scheme: dark)").matches && !this.isPrinting;
        const context = this.context = this.canvas.getContext("2d");
        this.colors = dark ? DARK : LIGHT;
        this.pixels = {
            waits: this.colors.waits.map(pixelOf), runs: this.colors.runs.map(pixelOf),
            row: pixelOf(this.colors.row), idle: pixelOf(this.colors.idle), offline: pixelOf(this.colors.offline),
        };
        this.top = this.box.scrollTop;
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.fillStyle = this.colors.paper;
        context.fillRect(0, 0, this.canvas.width, this.canvas.height);
        this.#drawLanes();
        context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        this.#drawTexts();
        this.#drawLabels();
        this.#drawGaps();
        this.#drawSelected();
        this.#drawAxis();
        this.#drawMarks();
        this.#colorLegend();
        this.#describe();
        this.byCpu.setAttribute("aria-pressed", this.by === "cpu");
        this.byVcpu.setAttribute("aria-pressed", this.by === "vcpu");
    }

    #drawLanes() {
        const width = Math.max(Math.round((this.width - this.gutter) * this.ratio), 1);
        const first = Math.floor(this.top / this.rowHeight);
        const last = Math.min(first + Math.ceil(this.height / this.rowHeight) + 1, this.rows);
        if (!this.raster || this.raster.width !== width)
            this.raster = new Raster(4, width);
        for (let row = first; row < last; row++) {
            const y = Math.round((AXIS_HEIGHT + row * this.rowHeight - this.top) * this.ratio);
            if (this.by === "cpu")
                this.#drawCpu(row, y, width);
            else
                this.#drawVcpu(row, y, width);
        }
    }

    // PAINT(image, width, height) fills the words of a picture, which is put at Y.
    #drawImage(y, width, height, paint) {
        const image = this.context.createImageData(width, height);
        paint(new Uint32Array(image.data.buffer), width, height);
        this.context.putImageData(image, Math.round(this.gutter * this.ratio), y);
    }

    // From 0, the shortest ones, to 3.
    #classOf(ticks) {
        const nsec = nsecOf(ticks);
        return nsec >= WAIT_NSEC[3] ? 3 : nsec >= WAIT_NSEC[2] ? 2 : nsec >= WAIT_NSEC[1] ? 1 : 0;
    }

    #runPixel(vcpu) {
        const domain = vcpu < this.model.vcpus.length ? this.domains.indexOf(domainOf(this.model.vcpus[vcpu])) : 5;
        return this.pixels.runs[domain % this.pixels.runs.length];
    }

    #drawCpu(row, y, width) {
        const raster = this.raster;
        raster.draw(this.model.cpuLanes[row], this.from, this.until);
        this.#drawImage(y, width, Math.round(this.barHeight * this.ratio), (words, w, h) => {
            for (let x = 0; x < w; x++) {
                const busy = raster.sums[0][x];
                const full = busy > 0 ? Math.max(Math.round(Math.min(busy, 1) * h), 1) : 0;
                const run = full > 0 ? this.#runPixel(raster.key[x]) : 0;
                const isKnown = busy + raster.sums[1][x] > 0.5;
                for (let k = 0, at = x; k < h; k++, at += w)
                    words[at] = k >= h - full ? run : isKnown ? this.pixels.idle
                        : k === h >> 1 && (x >> 2) % 2 ? this.pixels.offline : this.pixels.row;
            }
        });
        raster.draw(this.model.cpuWaits[row], this.from, this.until);
        this.#drawImage(y + Math.round(this.barHeight * this.ratio), width, Math.round(WAIT_BAR * this.rowScale * this.ratio), (words, w, h) => {
            for (let x = 0; x < w; x++) {
                const of = this.#classOf(raster.wait[x]), pixel = this.pixels.waits[of];
                const height = raster.wait[x] > 0 ? Math.round(h * (of + 1) / 4) : 0;
                for (let k = 0, at = x; k < height; k++, at += w)
                    words[at] = pixel;
            }
        });
    }

    // From below: running, waiting; then offline or, as a thin line, asleep.
    #drawVcpu(row, y, width) {
        const raster = this.raster, run = this.#runPixel(row), [runningOf, waitingOf, asleepOf, offlineOf] = raster.sums;
        raster.draw(this.model.vcpuLanes[row], this.from, this.until);
        this.#drawImage(y, width, Math.round(this.barHeight * this.ratio), (words, w, h) => {
            for (let x = 0; x < w; x++) {
                const running = runningOf[x], waiting = waitingOf[x], asleep = asleepOf[x], offline = offlineOf[x];
                const wait = this.pixels.waits[this.#classOf(raster.wait[x])];
                const runs = running > 0 ? Math.max(Math.round(running * h), 1) : 0;
                const waits = waiting > 0 ? Math.max(Math.round(waiting * h), 1) : 0;
                const rest = offline > 0 ? this.pixels.offline : asleep > 0 ? this.pixels.idle : this.pixels.row;
                for (let k = 0, at = x; k < h; k++, at += w) {
                    const height = h - k;
                    words[at] = height <= waits && runs + waits > h ? wait
                        : height <= runs ? run : height <= runs + waits ? wait
                        : rest === this.pixels.idle && height > h / 2 ? this.pixels.row
                        : rest === this.pixels.row && k === h >> 1 && (x >> 2) % 2 ? this.pixels.offline : rest;
                }
            }
        });
    }

    xOf(ticks) {
        return this.gutter + (ticks - this.from) / (this.until - this.from) * (this.width - this.gutter);
    }
    ticksAt(x) {
        return this.from + (x - this.gutter) / (this.width - this.gutter) * (this.until - this.from);
    }
    yOf(row) {
        return AXIS_HEIGHT + row * this.rowHeight - this.top;
    }

    // Into what is wide enough: who ran, where, and how long a wait took.
    #drawTexts() {
        const context = this.context, last = Math.min(this.rows, Math.ceil((this.top + this.height) / this.rowHeight));
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "middle";
        for (let row = Math.floor(this.top / this.rowHeight); row < last; row++) {
            const lane = this.by === "cpu" ? this.model.cpuLanes[row] : this.model.vcpuLanes[row];
            const first = lane.find(this.from), end = Math.min(lane.find(this.until) + 1, lane.length);
            for (let i = first; i < end && end - first < 300; i++)
                this.#drawText(lane, i, this.yOf(row) + this.barHeight / 2);
        }
    }

    #drawText(lane, i, y) {
        const {state, from, to, cpu, vcpu} = this.model.intervals, what = lane.what[i];
        const x = Math.max(this.xOf(lane.from[i]), this.gutter), width = Math.min(this.xOf(lane.to[i]), this.width) - x;
        if (what < 0 || width < 30 || state[what] === BLOCKED || state[what] === OFFLINE)
            return;
        const texts = state[what] === RUNNABLE ? [formatSpan(to[what] - from[what])]
            : this.by === "cpu" ? [formatVcpu(this.model.vcpus[vcpu[what]])]
            : ["CPU " + this.model.cpus[cpu[what]], String(this.model.cpus[cpu[what]])];
        const text = texts.find(one => this.context.measureText(one).width < width - 8);
        const length = this.#classOf(to[what] - from[what]), isWait = state[what] === RUNNABLE;
        const isBright = this.colors === DARK ? !isWait || length > 0 : isWait && length < 2;
        this.context.fillStyle = isBright ? "#0d1117" : "#ffffff";
        if (text)
            this.context.fillText(text, x + 4, y);
    }

    #drawLabels() {
        const context = this.context;
        context.fillStyle = this.colors.paper;
        context.fillRect(0, 0, this.gutter - 1, this.height);
        context.fillStyle = this.colors.text;
        context.font = "12px system-ui, sans-serif";
        context.textBaseline = "middle";
        for (let row = Math.floor(this.top / this.rowHeight); row < this.rows && this.yOf(row) < this.height; row++) {
            let text = this.by === "cpu" ? "CPU " + this.model.cpus[row] : formatVcpu(this.model.vcpus[row]);
            while (text.length > 4 && context.measureText(text).width > this.gutter - 8)
                text = text.replace(/.…?( v\d+)?$/u, (_, vcpu) => "…" + (vcpu || ""));
            context.fillText(text, 2, this.yOf(row) + this.barHeight / 2);
        }
    }

    #hatch(x, y, width, height) {
        const context = this.context;
        context.save();
        context.beginPath();
        context.rect(x, y, width, height);
        context.clip();
        context.strokeStyle = this.colors.gap;
        context.lineWidth = 1;
        context.beginPath();
        for (let at = x - height - (x - height) % 6; at < x + width; at += 6) {
            context.moveTo(at, y + height);
            context.lineTo(at + height, y);
        }
        context.stroke();
        context.restore();
    }

    #drawGaps() {
        let before = -1;
        for (const [cpu, from, to] of this.model.gaps) {
            const x = Math.max(this.xOf(from), this.gutter), end = Math.min(this.xOf(to), this.width);
            if (end < this.gutter || x > this.width || (end <= before + 1 && this.by === "cpu" && this.beforeCpu === cpu))
                continue;
            before = Math.max(end, x + 2);
            this.beforeCpu = cpu;
            if (this.by === "cpu")
                this.#hatch(x, this.yOf(cpu), Math.max(end - x, 2), this.barHeight);
            else
                this.#hatch(x, AXIS_HEIGHT, Math.max(end - x, 2), this.height);
        }
    }

    #drawSelected() {
        const {by, row, from, to} = this.selected || {};
        if (!this.selected || by !== this.by && row !== ALL_ROWS)
            return;
        const x = Math.max(this.xOf(from), this.gutter + 1), end = Math.min(this.xOf(to), this.width - 1);
        const [y, height] = row === ALL_ROWS ? [AXIS_HEIGHT, this.height - AXIS_HEIGHT - 1]
            : [this.yOf(row), this.rowHeight - 2];
        this.context.strokeStyle = this.colors.selected;
        this.context.lineWidth = 2;
        if (end >= this.gutter && x <= this.width)
            this.context.strokeRect(x, y, Math.max(end - x, 2), height);
    }

    #drawAxis() {
        const context = this.context, length = nsecOf(this.until - this.from);
        const wanted = length / Math.max((this.width - this.gutter) / 110, 1);
        const power = 10 ** Math.floor(Math.log10(wanted));
        const step = [1, 2, 5, 10].find(k => k * power >= wanted) * power;
        const digits = Math.min(Math.max(9 - Math.floor(Math.log10(step) + 1e-9), 0), 9);
        context.fillStyle = this.colors.paper;
        context.fillRect(0, 0, this.width, AXIS_HEIGHT - 2);
        context.fillStyle = context.strokeStyle = this.colors.dim;
        context.lineWidth = 1;
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "alphabetic";
        let free = 0;
        for (const piece of clockPieces) {
            const nsecAt = ticks => piece.nsec + (ticks - piece.from) * piece.rate;
            const begin = nsecAt(Math.max(piece.from, this.from)), end = nsecAt(Math.min(piece.until, this.until));
            if (piece.rate <= 0 || end - begin > length * 100) // a clock that leaps between two pairs
                continue;
            for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
                const ticks = piece.from + (at - piece.nsec) / piece.rate, x = this.xOf(ticks);
                context.fillRect(x, AXIS_HEIGHT - 8, 1, 6);
                const text = formatWhen(ticks + ticksOf(0.5), digits), half = context.measureText(text).width / 2;
                const left = Math.max(x - half, 0);
                if (x + half <= this.width && left >= free) {
                    context.fillText(text, left, 11);
                    free = x + half + 4;
                }
            }
        }
    }

    #drawMarks() {
        const context = this.context;
        this.marks = this.places.map(place => ({at: this.xOf(place.at), show: () => this.#showFinding(place.finding)}))
            .filter(({at}) => at >= this.gutter && at <= this.width)
            .map(mark => ({...mark, left: mark.at - 8, right: mark.at + 8, bottom: AXIS_HEIGHT}));
        for (const {at: x} of this.marks) {
            context.fillStyle = this.colors.waits[2];
            context.beginPath();
            context.moveTo(x - 4, AXIS_HEIGHT - 11);
            context.lineTo(x + 4, AXIS_HEIGHT - 11);
            context.lineTo(x, AXIS_HEIGHT - 3);
            context.fill();
        }
        const at = this.xOf(page.trace.cause_at);
        if (page.trace.cause_at !== undefined && at >= this.gutter && at <= this.width + 1)
            this.#drawCause(Math.min(at, this.width) - 2);
    }

    // The line, and its name on the side that has no mark of a finding.
    #drawCause(x) {
        const context = this.context;
        context.font = "bold 10px system-ui, sans-serif";
        const width = context.measureText("cause").width + 6, findings = this.marks;
        const left = [x - width, x + 3].find(one => one >= this.gutter && one + width <= this.width &&
            findings.every(({at}) => at + 4 < one || at - 4 > one + width));
        const mark = {at: x + 1, left: x - 2, right: x + 4, bottom: this.height, show: () => this.#showCause()};
        context.fillStyle = this.colors.mark;
        context.fillRect(x, AXIS_HEIGHT - 12, 2, this.height);
        this.marks = [...findings, mark];
        if (left !== undefined) {
            context.fillText("cause", left + 3, AXIS_HEIGHT - 4);
            this.marks.push({...mark, left, right: left + width, bottom: AXIS_HEIGHT});
        }
    }

    #showCause() {
        this.#selectTime(ALL_ROWS, page.trace.cause_at, page.trace.cause_at, describeCause());
    }

    // The mark at X and Y, if there is one.
    #markAt(x, y) {
        return this.marks.filter(({left, right, bottom}) => left <= x && x <= right && y <= bottom)
            .sort((a, b) => Math.abs(a.at - x) - Math.abs(b.at - x))[0];
    }

    // What people who see no picture need, and what the page does not have.
    #describe() {
        const length = this.until - this.from;
        const widths = this.model.pieces
            .filter(piece => piece.window.width && piece.from < this.until && piece.until > this.from)
            .map(piece => piece.window.width);
        const widest = Math.max(0, ...widths), pixel = length / (this.width - this.gutter);
        this.canvas.setAttribute("aria-label", `Timeline by ${this.by === "cpu" ? "CPU" : "vCPU"} from ` +
            `${formatWhen(this.from)} for ${formatSpan(length)}, ${this.rows} lanes`);
        this.note.replaceChildren(`${formatSpan(length)} from ${formatWhen(this.from, 6)}. `);
        if (widest > 3 * pixel)
            this.note.append(`Here the page has sums of ${formatSpan(widest)}. Each interval: `,
                commandElement(commandFor(`timeline --since ${formatAt(this.from)} --until ${formatAt(this.until)}`)) ||
                    "xentracectl timeline");
    }

    // --- What was clicked. ---

    #nameOf(row) {
        return this.by === "cpu" ? "CPU " + this.model.cpus[row] : formatVcpu(this.model.vcpus[row]);
    }

    select(lane, i, row) {
        const model = this.model, what = lane.what[i], name = this.#nameOf(row);
        const {from, to} = what >= 0 ? {from: model.intervals.from[what], to: model.intervals.to[what]}
            : {from: lane.from[i], to: lane.to[i]};
        this.#selectTime(row, from, to, what >= 0 ? describeInterval(model, what)
            : what === IDLE ? describeIdle(model.cpus[row], from, to) : describeColumn(lane, i, name));
    }

    #selectTime(row, from, to, description) {
        this.clear();
        this.selected = {by: this.by, row, from, to};
        this.details.replaceChildren(...description.filter(Boolean));
        this.scheduleDraw();
    }

    clear() {
        this.selected = null;
        this.links.forEach(link => link.removeAttribute("aria-current"));
        this.details.replaceChildren();
        this.scheduleDraw();
    }

    // Of what is within two pixels, waits first, then the longest.
    clickAt(x, y) {
        const mark = this.#markAt(x, y);
        if (mark)
            return mark.show();
        const row = Math.floor((y - AXIS_HEIGHT + this.top) / this.rowHeight);
        if (x < this.gutter || y < AXIS_HEIGHT || row < 0 || row >= this.rows)
            return this.clear();
        const inRow = (y - AXIS_HEIGHT + this.top) - row * this.rowHeight;
        const lane = this.by === "vcpu" ? this.model.vcpuLanes[row]
            : inRow > this.barHeight ? this.model.cpuWaits[row] : this.model.cpuLanes[row];
        const until = this.ticksAt(x + 2), from = this.ticksAt(x - 2);
        let best = -1, most = -1;
        for (let i = lane.find(from), tries = 0; i < lane.length && lane.from[i] < until && tries < 10000; i++, tries++) {
            const isWait = lane.levels[0].wait[i] > 0;
            const value = (lane.to[i] - lane.from[i]) * (isWait ? 1e6 : 1);
            if (value > most) {
                best = i;
                most = value;
            }
        }
        const isWaits = this.by === "cpu" && lane === this.model.cpuWaits[row], at = this.ticksAt(x);
        const gap = this.model.gaps.find(([cpu, begin, end]) =>
            begin <= at && at < end && (this.by === "vcpu" || cpu === row));
        // Columns have times that are lost, and intervals may be next to them. Waits come first.
        if (gap && (best < 0 || this.by === "cpu" && !isWaits))
            return this.#selectTime(row, gap[1], gap[2], describeGap(this.model, gap));
        if (best >= 0)
            return this.select(lane, best, row);
        return isWaits ? this.clear()
            : this.#selectTime(row, from, until, describeUnknown(this.#nameOf(row), at));
    }

    // --- Input. ---

    #listen() {
        const canvas = this.canvas;
        this.box.addEventListener("scroll", () => this.scheduleDraw());
        canvas.addEventListener("wheel", event => this.#onWheel(event), {passive: false});
        canvas.addEventListener("keydown", event => this.#onKey(event, this.#keys()));
        canvas.addEventListener("pointerdown", event => this.#onPress(event));
        canvas.addEventListener("pointermove", event => this.#onDrag(event));
        canvas.addEventListener("pointerup", event => this.#onRelease(event));
        canvas.addEventListener("pointercancel", () => { this.pressed = null; });
        canvas.addEventListener("dblclick", event => this.zoom(0.25, this.#partAt(event.offsetX)));
        window.addEventListener("resize", () => this.layout());
        document.addEventListener("keydown", event =>
            this.#onKey(event, {n: () => this.#nextFinding(1), p: () => this.#nextFinding(-1)}));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.scheduleDraw());
        window.addEventListener("beforeprint", () => { this.isPrinting = true; this.layout(); });
        window.addEventListener("afterprint", () => { this.isPrinting = false; this.layout(); });
    }

    #partAt(x) {
        return Math.min(Math.max((x - this.gutter) / (this.width - this.gutter), 0), 1);
    }

    // The page is scrolled by the wheel unless the timeline was clicked, or Ctrl is held.
    #onWheel(event) {
        if (document.activeElement !== this.canvas && !event.ctrlKey)
            return;
        event.preventDefault();
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
            this.move(event.deltaX / 1000);
        else
            this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 200) / 300),
                      this.#partAt(event.offsetX));
    }

    #keys() {
        return {
            ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2),
            a: () => this.move(-0.2), d: () => this.move(0.2),
            "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), w: () => this.zoom(0.5),
            "-": () => this.zoom(2), s: () => this.zoom(2),
            "0": () => this.setRange(0, this.model.span), Home: () => this.setRange(0, this.model.span),
            ArrowUp: () => { this.box.scrollTop -= this.rowHeight; },
            ArrowDown: () => { this.box.scrollTop += this.rowHeight; },
            c: () => this.show("cpu"), v: () => this.show("vcpu"),
            Escape: () => this.clear(),
        };
    }

    #onKey(event, keys) {
        const run = keys[event.key];
        if (!run || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        run();
    }

    #onPress(event) {
        if (event.button !== 0)
            return;
        this.pressed = {x: event.offsetX, from: this.from, until: this.until, moved: false};
        this.canvas.setPointerCapture(event.pointerId);
    }

    #onDrag(event) {
        this.canvas.style.cursor = this.#markAt(event.offsetX, event.offsetY) ? "pointer" : "";
        if (!this.pressed)
            return;
        const by = event.offsetX - this.pressed.x;
        this.pressed.moved = this.pressed.moved || Math.abs(by) > 4;
        if (!this.pressed.moved)
            return;
        const ticks = by / (this.width - this.gutter) * (this.until - this.from);
        this.setRange(this.pressed.from - ticks, this.pressed.until - ticks);
    }

    #onRelease(event) {
        if (this.pressed && !this.pressed.moved)
            this.clickAt(event.offsetX, event.offsetY);
        this.pressed = null;
    }
}
