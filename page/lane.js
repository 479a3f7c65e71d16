// SPDX-License-Identifier: GPL-2.0-or-later
//
// A lane is a row of the timeline: pieces of time in order, each with sums. They are the leaves of a
// tree whose nodes have the sums of WIDTH nodes below, so that a pixel is drawn from few of them,
// however many pieces it covers.

const TREE_WIDTH = 2; // fewer children: fewer nodes that are narrower than a pixel

class Lane {
    // KINDS: how many sums a piece has.
    constructor(kinds) {
        this.kinds = kinds;
        this.from = [];
        this.to = [];
        this.sums = Array.from({length: kinds}, () => []);
        this.key = [];    // of who ran most, and for how long
        this.most = [];
        this.wait = [];   // the longest wait, in ticks
        this.what = [];   // what a click shows: the interval; null: this is a summary
    }

    // Pieces have to be added in order.
    add(from, to, sums, key, most, wait, what) {
        this.from.push(from);
        this.to.push(to);
        for (let i = 0; i < this.kinds; i++)
            this.sums[i].push(sums[i]);
        this.key.push(key);
        this.most.push(most);
        this.wait.push(wait);
        this.what.push(what);
    }

    finish() {
        this.length = this.from.length;
        this.from = Float64Array.from(this.from);
        this.to = Float64Array.from(this.to);
        this.what = Int32Array.from(this.what);
        this.levels = [{
            length: this.length,
            sums: this.sums.map(sum => Float64Array.from(sum)),
            key: Int32Array.from(this.key),
            most: Float64Array.from(this.most),
            wait: Float64Array.from(this.wait),
        }];
        this.sums = this.key = this.most = this.wait = null;
        while (this.levels[this.levels.length - 1].length > 1)
            this.levels.push(this.#levelAbove(this.levels[this.levels.length - 1]));
        return this;
    }

    #levelAbove(below) {
        const length = Math.ceil(below.length / TREE_WIDTH);
        const level = {
            length,
            sums: below.sums.map(() => new Float64Array(length)),
            key: new Int32Array(length),
            most: new Float64Array(length),
            wait: new Float64Array(length),
        };
        for (let i = 0; i < below.length; i++) {
            const parent = Math.floor(i / TREE_WIDTH);
            for (let k = 0; k < this.kinds; k++)
                level.sums[k][parent] += below.sums[k][i];
            if (below.key[i] === level.key[parent] && level.most[parent] > 0) {
                level.most[parent] += below.most[i];
            } else if (below.most[i] > level.most[parent]) {
                level.key[parent] = below.key[i];
                level.most[parent] = below.most[i];
            }
            level.wait[parent] = Math.max(level.wait[parent], below.wait[i]);
        }
        return level;
    }

    // Of all pieces, the sum of kind K.
    total(k) {
        return this.length > 0 ? this.levels[this.levels.length - 1].sums[k][0] : 0;
    }

    // The first piece that ends after TICKS.
    find(ticks) {
        let low = 0, high = this.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.to[middle] <= ticks)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
}
