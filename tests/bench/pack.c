// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compresses a trace as a snapshot is compressed: `pack TRACE FILE`, for tests/bench/compress.
 * Frames end where a round begins, after 1 MiB.
 */

#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/record.h"
#include "common/util.h"
#include "daemon/output/pack.h"
#include "trace/source.h"

#define FRAME_MIN_BYTES (UINT64_C(1) << 20)
#define BUFFER_BYTES    ((size_t)512 << 10)

struct packer {
    struct pack *pack;
    uint8_t *buffer;
    FILE *file;
};

static void flush(struct packer *packer)
{
    size_t bytes = pack_output_bytes(packer->pack);

    if (fwrite(packer->buffer, 1, bytes, packer->file) != bytes || pack_error(packer->pack) < 0)
        error(EXIT_FAILURE, errno, "writing");
    pack_set_output(packer->pack, packer->buffer, BUFFER_BYTES);
}

static void add(struct packer *packer, const uint8_t *p, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        at += pack_add(packer->pack, p + at, bytes - at);
        if (pack_output_bytes(packer->pack) == BUFFER_BYTES)
            flush(packer);
    }
}

int main(int argc, char **argv)
{
    struct packer packer = {.buffer = malloc(BUFFER_BYTES)};
    struct source *source = NULL;
    struct source_window window;
    struct window_header header;
    uint32_t last_cpu = UINT32_MAX;
    FILE *in = argc == 3 ? fopen(argv[1], "re") : NULL;

    packer.file = argc == 3 ? fopen(argv[2], "we") : NULL;
    if (!in || !packer.file || !packer.buffer || pack_new(&packer.pack) < 0 ||
        source_new_fd(dup(fileno(in)), &source) < 0)
        error(EXIT_FAILURE, errno, "pack TRACE FILE");
    pack_set_output(packer.pack, packer.buffer, BUFFER_BYTES);
    while (source_next(source, &window) > 0) {
        if (window.cpu <= last_cpu && pack_frame_bytes(packer.pack) >= FRAME_MIN_BYTES)
            while (!pack_end_frame(packer.pack))
                flush(&packer);
        last_cpu = window.cpu;
        header = (struct window_header){WINDOW_HEADER, window.cpu, window.bytes};
        add(&packer, (const uint8_t *)&header, sizeof(header));
        for (uint32_t at = 0, bytes; at < window.bytes; at += bytes)
            add(&packer, source_look(source, &window, at, &bytes), bytes);
    }
    while (!pack_end_frame(packer.pack))
        flush(&packer);
    while (!pack_end(packer.pack))
        flush(&packer);
    flush(&packer);
    source_free(source);
    pack_free(packer.pack);
    free(packer.buffer);
    return fclose(in) == 0 && fclose(packer.file) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
