// SPDX-License-Identifier: GPL-2.0-or-later
//
// The document that the page is made from (docs/page.md), and what is encoded in it.

const page = JSON.parse(document.getElementById("data").textContent);
// Null: it is about two traces.
const report = page.report || null;
const measures = report && report.measures;

const decodeBase64 = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));

// Reads the numbers of a stream, seven bits a byte.
class ByteReader {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
    }
    byte() {
        return this.bytes[this.at++];
    }
    number() {
        let value = 0, scale = 1, byte;
        do {
            byte = this.bytes[this.at++];
            value += (byte & 0x7f) * scale;
            scale *= 128;
        } while (byte & 0x80);
        return value;
    }
}

// "d1v0" is domain 1, vCPU 0.
const domainOf = vcpu => vcpu.slice(0, vcpu.indexOf("v"));
const isGuest = vcpu => domainOf(vcpu) !== "d32767" && domainOf(vcpu) !== "d32768";
const sumOf = object => Object.values(object).reduce((sum, value) => sum + value, 0);

// How many entries of a list did not fit into the page.
const trimmedOf = path => {
    const entry = page.trimmed.find(one => one.path === path);
    return entry ? entry.of - entry.kept : 0;
};
