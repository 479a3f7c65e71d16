// SPDX-License-Identifier: GPL-2.0-or-later
//
// What of a lane falls into each pixel of a picture: sums by kind, who ran most, the longest wait.

class Raster {
    constructor(kinds, width) {
        this.width = width;
        this.sums = Array.from({length: kinds}, () => new Float32Array(width));
        this.key = new Int32Array(width);
        this.most = new Float32Array(width);
        this.wait = new Float64Array(width);
    }

    // The time from FROM until UNTIL of LANE. Sums are parts of a pixel's time.
    draw(lane, from, until) {
        this.sums.forEach(sum => sum.fill(0));
        this.most.fill(0);
        this.wait.fill(0);
        this.lane = lane;
        this.from = from;
        this.until = until;
        this.scale = this.width / (until - from);
        if (lane.length > 0)
            this.#visit(lane.levels.length - 1, 0, TREE_WIDTH ** (lane.levels.length - 1));
    }

    // Node I of LEVEL, which has SIZE leaves.
    #visit(level, i, size) {
        const lane = this.lane;
        const from = lane.from[i * size], to = lane.to[Math.min((i + 1) * size, lane.length) - 1];
        if (to <= this.from || from >= this.until)
            return;
        if (level === 0 || (to - from) * this.scale <= 1) {
            this.#deposit(lane.levels[level], i, from, to);
            return;
        }
        const last = Math.min((i + 1) * TREE_WIDTH, lane.levels[level - 1].length);
        for (let child = i * TREE_WIDTH; child < last; child++)
            this.#visit(level - 1, child, size / TREE_WIDTH);
    }

    #deposit(level, i, from, to) {
        const begin = Math.max((from - this.from) * this.scale, 0);
        const end = Math.min((to - this.from) * this.scale, this.width);
        const first = Math.floor(begin), last = Math.min(Math.ceil(end), this.width) - 1;
        const length = Math.max(to - from, 1e-9), wait = level.wait[i];
        for (let x = first; x <= last; x++) {
            const covered = Math.min(end, x + 1) - Math.max(begin, x);
            const part = covered / length;
            for (let k = 0; k < level.sums.length; k++)
                this.sums[k][x] += level.sums[k][i] * part;
            const most = level.most[i] * part;
            if (most > this.most[x]) {
                this.most[x] = most;
                this.key[x] = level.key[i];
            }
            if (wait > this.wait[x])
                this.wait[x] = wait;
        }
    }
}
