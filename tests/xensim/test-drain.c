// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Help for the tests of xensim.
 */

#include "test-drain.h"

#include <string.h>

#include "common/record.h"
#include "numbered.h"

struct sim test_sim_new(uint32_t nr_cpus, uint32_t pages)
{
    char directory[] = "/tmp/xensim-test.XXXXXX";
    struct sim sim;

    CHECK(mkdtemp(directory));
    CHECK(sim_create(directory, nr_cpus, &sim) == 0);
    memcpy(sim.shared->kinds, numbered_default_kinds,
           numbered_default_kinds_count * sizeof(uint32_t));
    sim.shared->nr_kinds = numbered_default_kinds_count;
    if (pages)
        CHECK(test_control(&sim, XEN_SYSCTL_TBUFOP_set_size, pages) == 0);
    return sim;
}

void test_sim_free(struct sim *sim)
{
    sim_remove_files(sim->directory);
    CHECK(rmdir(sim->directory) == 0);
    sim_done(sim);
}

int test_control(struct sim *sim, uint32_t command, uint32_t value)
{
    struct xen_sysctl_tbuf_op op = {.cmd = command, .size = value, .evt_mask = value};

    return tbuf_control(sim, &op);
}

static void append(struct test_file *file, const void *p, size_t bytes)
{
    while (file->bytes + bytes > file->room) {
        file->room = file->room ? 2 * file->room : PAGE_BYTES;
        file->data = realloc(file->data, file->room);
        CHECK(file->data);
    }
    memcpy(file->data + file->bytes, p, bytes);
    file->bytes += bytes;
}

uint32_t test_drain(struct sim *sim, uint32_t cpu, uint32_t bytes, struct test_file *file)
{
    struct t_buf *buf = tbuf_of_cpu(sim, cpu);
    uint32_t data_size = sim->shared->data_size;
    uint32_t window = (buf->prod + 2 * data_size - buf->cons) % (2 * data_size);
    struct window_header header = {.header = WINDOW_HEADER, .cpu = cpu};
    uint32_t end = 0;

    CHECK(window <= data_size);
    append(file, &header, sizeof(header));
    /* Word by word, since records straddle pages; whole records only. */
    for (uint32_t at = 0; at < window; at += 4) {
        uint32_t word, x = (buf->cons + at) % data_size + (uint32_t)sizeof(*buf);

        memcpy(&word, tbuf_byte(sim, cpu, x), sizeof(word));
        if (at == end) {
            if (at + record_bytes(word) > bytes)
                break;
            end += record_bytes(word);
        }
        append(file, &word, sizeof(word));
    }
    CHECK(end <= window);
    memcpy(file->data + file->bytes - end - 4, &end, sizeof(end));
    buf->cons = (buf->cons + end) % (2 * data_size);
    return end;
}
