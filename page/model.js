// SPDX-License-Identifier: GPL-2.0-or-later
//
// The timeline's lanes, made of the windows of the document: columns with sums, and intervals where
// the page has them. Later windows show what earlier ones do in more detail.

const RUNNING = 0, RUNNABLE = 1, BLOCKED = 2, OFFLINE = 3;
const STATES = ["running", "runnable", "blocked", "offline"];
const STATE_NAMES = ["running", "waiting", "asleep", "offline"]; // of all that the page shows
const WAITS = ["wake", "preempt", "other"];
// What a piece is, if it is no interval of a vCPU.
const COLUMN = -1, IDLE = -2;
const CPU_BYTES = 6, VCPU_BYTES = 5, NO_INDEX = 0xffff;

// The intervals of all windows, one after the other.
class Intervals {
    constructor(length) {
        this.length = 0;
        this.vcpu = new Uint16Array(length);
        this.from = new Float64Array(length);
        this.to = new Float64Array(length);
        this.state = new Uint8Array(length);
        this.wait = new Uint8Array(length);
        this.cpu = new Uint16Array(length); // where it ran; else the CPU that logged its beginning
        this.flags = new Uint8Array(length); // 1: it ends in a loss, 2: it is open
    }

    // Row VCPU of a window. Returns the first index.
    read(reader, vcpu, count) {
        const first = this.length;
        let end = 0;
        for (let i = 0; i < count; i++) {
            const at = this.length++, byte = reader.byte();
            this.vcpu[at] = vcpu;
            this.state[at] = byte & 3;
            this.wait[at] = byte >> 2 & 3;
            this.flags[at] = byte >> 5 & 3;
            this.from[at] = byte & 16 ? end : end + reader.number();
            end = this.to[at] = this.from[at] + reader.number();
            this.cpu[at] = reader.number();
        }
        return first;
    }
}

class Model {
    constructor(timeline) {
        this.span = Math.max(timeline.span, 1);
        this.cpus = timeline.cpus;
        this.vcpus = timeline.vcpus.map(([domain, number]) => `d${domain}v${number}`);
        this.gaps = timeline.gaps;
        this.windows = timeline.windows.map(window => ({...window}));
        const counts = this.windows.map(window => window.counts ? sumOf(window.counts) : 0);
        this.intervals = new Intervals(sumOf(counts));
        this.windows.forEach(window => window.counts
            ? this.#readIntervals(window) : this.#readColumns(window));
        this.#makePieces();
        this.vcpuLanes = this.vcpus.map((_, i) => this.#makeLane(4, (lane, window, from, until) =>
            window.counts ? this.#addIntervals(lane, window.rows[i], from, until)
                : this.#addVcpuColumns(lane, window, i, from, until)));
        this.cpuLanes = this.cpus.map((_, i) => this.#makeLane(2, (lane, window, from, until) =>
            window.counts ? this.#addRuns(lane, window.runs[i], window.seenOf[i], from, until)
                : this.#addCpuColumns(lane, window, i, from, until)));
        this.cpuWaits = this.cpus.map((_, i) => this.#makeLane(1, (lane, window, from, until) =>
            window.counts ? this.#addWaits(lane, window.waits[i], from, until)
                : this.#addWaitColumns(lane, window, i, from, until)));
    }

    // --- Windows. ---

    #readColumns(window) {
        window.cpuBytes = decodeBase64(window.cpus);
        window.vcpuBytes = decodeBase64(window.vcpus);
    }

    #readIntervals(window) {
        const reader = new ByteReader(decodeBase64(window.intervals));
        const intervals = this.intervals;
        window.rows = [];
        window.runs = this.cpus.map(() => []);
        window.waits = this.cpus.map(() => []);
        window.counts.forEach((count, vcpu) => {
            const first = intervals.read(reader, vcpu, count);
            window.rows.push({first, last: first + count});
            for (let i = first; i < first + count; i++) {
                const cpu = intervals.state[i] === RUNNING ? intervals.cpu[i] : NO_INDEX;
                if (cpu < this.cpus.length)
                    window.runs[cpu].push(i);
                const awaited = intervals.state[i] === RUNNABLE
                    ? this.awaitedCpu(i, first, first + count) : NO_INDEX;
                if (awaited < this.cpus.length)
                    window.waits[awaited].push(i);
            }
        });
        const byTime = (a, b) => intervals.from[a] - intervals.from[b];
        window.seenOf = this.cpus.map(() => []);
        for (const [cpu, from, to] of window.seen || [])
            if (cpu < this.cpus.length)
                window.seenOf[cpu].push([from, to]);
        window.runs.forEach(list => list.sort(byTime));
        window.waits.forEach(list => list.sort(byTime));
    }

    // Of the wait I, in a row from FIRST until LAST: the CPU on which the vCPU ran afterwards, or
    // before, if the wait is open.
    awaitedCpu(i, first, last) {
        const {state, from, to, cpu, flags} = this.intervals;
        if (i + 1 < last && state[i + 1] === RUNNING && from[i + 1] === to[i])
            return cpu[i + 1];
        for (let k = i - 1; flags[i] & 2 && k >= first; k--)
            if (state[k] === RUNNING)
                return cpu[k];
        return NO_INDEX;
    }

    // Of each moment, the last window that has it.
    #makePieces() {
        const limits = [...new Set(this.windows.flatMap(window => [window.from, window.until]))]
            .sort((a, b) => a - b);
        this.pieces = [];
        for (let i = 0; i + 1 < limits.length; i++) {
            const window = this.windows.findLast(
                one => one.from <= limits[i] && one.until >= limits[i + 1]);
            const before = this.pieces[this.pieces.length - 1];
            if (before && before.window === window && before.until === limits[i])
                before.until = limits[i + 1];
            else if (window)
                this.pieces.push({from: limits[i], until: limits[i + 1], window});
        }
    }

    // The columns that are shown at TICKS; null: it is the intervals.
    columnWidthAt(ticks) {
        const piece = this.pieces.find(one => ticks < one.until);
        return piece && piece.window.width ? piece.window.width : null;
    }

    // --- Lanes. ---

    #makeLane(kinds, add) {
        const lane = new Lane(kinds);
        for (const piece of this.pieces)
            add(lane, piece.window, piece.from, piece.until);
        return lane.finish();
    }

    // Calls FN(k, from, until) for each column of a time.
    #eachColumn(window, from, until, fn) {
        const first = Math.floor((from - window.from) / window.width);
        for (let k = first; k < window.columns; k++) {
            const begin = window.from + k * window.width;
            if (begin >= until)
                break;
            fn(k, Math.max(begin, from), Math.min(begin + window.width, until));
        }
    }

    #addVcpuColumns(lane, window, row, from, until) {
        const bytes = window.vcpuBytes;
        this.#eachColumn(window, from, until, (k, begin, end) => {
            const at = (row * window.columns + k) * VCPU_BYTES, scale = (end - begin) / 255;
            lane.add(begin, end, STATES.map((_, i) => bytes[at + i] * scale), row,
                     bytes[at] * scale, Model.lengthOf(bytes[at + 4]), COLUMN);
        });
    }

    #addCpuColumns(lane, window, row, from, until) {
        const bytes = window.cpuBytes;
        this.#eachColumn(window, from, until, (k, begin, end) => {
            const at = (row * window.columns + k) * CPU_BYTES, scale = (end - begin) / 255;
            lane.add(begin, end, [bytes[at + 3] * scale, bytes[at + 4] * scale],
                     bytes[at] | bytes[at + 1] << 8, bytes[at + 2] * scale, 0, COLUMN);
        });
    }

    #addWaitColumns(lane, window, row, from, until) {
        const bytes = window.cpuBytes;
        this.#eachColumn(window, from, until, (k, begin, end) => {
            const wait = Model.lengthOf(bytes[(row * window.columns + k) * CPU_BYTES + 5]);
            if (wait > 0)
                lane.add(begin, end, [Math.min(wait, end - begin)], 0, 0, wait, COLUMN);
        });
    }

    // As the document has lengths: 2^((code - 1) / 4) ns.
    static lengthOf(code) {
        return code > 0 ? ticksOf(2 ** ((code - 1) / 4)) : 0;
    }

    #addIntervals(lane, row, from, until) {
        const intervals = this.intervals;
        for (let i = row.first; i < row.last; i++) {
            const begin = Math.max(intervals.from[i], from), end = Math.min(intervals.to[i], until);
            if (begin >= end)
                continue;
            const sums = [0, 0, 0, 0], state = intervals.state[i];
            sums[state] = end - begin;
            lane.add(begin, end, sums, intervals.vcpu[i], state === RUNNING ? end - begin : 0,
                     state === RUNNABLE ? intervals.to[i] - intervals.from[i] : 0, i);
        }
    }

    // In between, the CPU is idle where it is SEEN: pieces without an interval of a vCPU.
    #addRuns(lane, list, seen, from, until) {
        const intervals = this.intervals;
        let now = from, k = 0;
        const idleUntil = to => {
            for (; k < seen.length && seen[k][0] < to; k++) {
                const begin = Math.max(seen[k][0], now), end = Math.min(seen[k][1], to);
                if (begin < end)
                    lane.add(begin, end, [0, end - begin], 0, 0, 0, IDLE);
                if (seen[k][1] > to)
                    break;
            }
            now = Math.max(now, to);
        };
        for (const i of list) {
            const begin = Math.max(intervals.from[i], from), end = Math.min(intervals.to[i], until);
            if (begin >= end)
                continue;
            idleUntil(begin);
            lane.add(begin, end, [end - begin, 0], intervals.vcpu[i], end - begin, 0, i);
            now = end;
        }
        idleUntil(until);
    }

    // Waits for a CPU overlap: of each moment, the longest of them.
    #addWaits(lane, list, from, until) {
        const intervals = this.intervals;
        let begin = 0, end = 0, longest = -1;
        const put = to => {
            const a = Math.max(begin, from), b = Math.min(to, until);
            if (longest >= 0 && a < b)
                lane.add(a, b, [b - a], intervals.vcpu[longest], 0,
                         intervals.to[longest] - intervals.from[longest], longest);
        };
        for (const i of list) {
            const start = Math.max(intervals.from[i], begin), stop = intervals.to[i];
            if (longest >= 0 && start < end) {
                if (stop <= end) // it is within the longer one
                    continue;
                put(start);
                begin = start;
            } else {
                put(end);
                begin = start;
            }
            end = stop;
            longest = i;
        }
        put(end);
    }

    // --- Questions. ---

    // Who ran on CPU (an index) from FROM until UNTIL, where the page has intervals: a Map of ticks
    // by vCPU, also the idle one; null if it has not.
    ranOn(cpu, from, until) {
        const lane = this.cpuLanes[cpu], ran = new Map();
        if (!this.hasIntervals(from, until))
            return null;
        for (let i = lane.find(from); i < lane.length && lane.from[i] < until; i++) {
            const vcpu = lane.what[i] === IDLE ? "d32767v" + this.cpus[cpu] : this.vcpus[lane.levels[0].key[i]];
            const ticks = Math.min(lane.to[i], until) - Math.max(lane.from[i], from);
            ran.set(vcpu, (ran.get(vcpu) || 0) + ticks);
        }
        return ran;
    }

    // Of some lane, a time is not known: no piece has it, or one that has sums of less than half of it. Switches of
    // up to 50 us are none.
    get isPartlyUnknown() {
        const least = ticksOf(5e4);
        return [...this.cpuLanes, ...this.vcpuLanes].some(lane => {
            const {sums} = lane.levels[0];
            let end = 0;
            for (let i = 0; i < lane.length; end = lane.to[i++])
                if (lane.from[i] - end > least ||
                    sums.reduce((sum, of) => sum + of[i], 0) < (lane.to[i] - lane.from[i]) / 2)
                    return true;
            return this.span - end > least;
        });
    }

    hasIntervals(from, until) {
        return this.pieces.every(
            piece => piece.until <= from || piece.from >= until || !piece.window.width);
    }

    // The vCPU that ran on CPU at TICKS; null: none, or unknown.
    whoRan(cpu, ticks) {
        const lane = this.cpuLanes[cpu];
        if (!lane)
            return null;
        const i = lane.find(ticks);
        return i < lane.length && lane.from[i] <= ticks && lane.what[i] >= 0
            ? this.vcpus[lane.levels[0].key[i]] : null;
    }
}
