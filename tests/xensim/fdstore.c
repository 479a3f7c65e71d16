// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * systemd's rules, as its manual pages tell them and as version 252 was seen to act. Two
 * descriptors are the same if they are duplicates of one open file (kcmp(2)); another open() of the
 * same inode is another.
 */

#include "fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/util.h"

bool fdstore_name_is_valid(const char *name)
{
    if (strlen(name) >= sizeof(((struct fdstore_entry *)NULL)->name))
        return false;
    for (const char *p = name; *p; p++)
        if (*p < ' ' || *p >= 127 || *p == ':')
            return false;
    return true;
}

static bool is_same_file(int a, int b)
{
    pid_t pid = getpid();

    return syscall(SYS_kcmp, pid, pid, KCMP_FILE, (unsigned long)a, (unsigned long)b) == 0;
}

enum fdstore_result fdstore_add(struct fdstore *store, const char *name, bool poll, int fd)
{
    struct fdstore_entry *e;

    if (store->count >= store->max) {
        fd_close(&fd);
        return FDSTORE_FULL;
    }
    for (uint32_t i = 0; i < store->count; i++) {
        if (is_same_file(store->entries[i].fd, fd)) {
            fd_close(&fd);
            return FDSTORE_THERE;
        }
    }
    e = &store->entries[store->count++];
    *e = (struct fdstore_entry){.fd = fd, .poll = poll};
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    return FDSTORE_ADDED;
}

static void drop(struct fdstore *store, uint32_t i)
{
    fd_close(&store->entries[i].fd);
    store->count--;
    memmove(&store->entries[i], &store->entries[i + 1],
            (store->count - i) * sizeof(store->entries[0]));
}

uint32_t fdstore_remove(struct fdstore *store, const char *name)
{
    uint32_t removed = 0;

    for (uint32_t i = store->count; i-- > 0;) {
        if (strcmp(store->entries[i].name, name) != 0)
            continue;
        drop(store, i);
        removed++;
    }
    return removed;
}

bool fdstore_drop_hung_up(struct fdstore *store, char ret_name[static 256])
{
    for (uint32_t i = 0; i < store->count; i++) {
        struct pollfd p = {.fd = store->entries[i].fd};

        /* No events asked for: hang-up and error are told all the same. */
        if (!store->entries[i].poll || poll(&p, 1, 0) <= 0)
            continue;
        (void)snprintf(ret_name, 256, "%s", store->entries[i].name);
        drop(store, i);
        return true;
    }
    return false;
}

/* All out of the way first: the places 3, 4, ... may be taken by others of them. */
static int place(const struct fdstore *store)
{
    int moved[FDSTORE_MOST], above = 3 + (int)store->count;

    for (uint32_t i = 0; i < store->count; i++) {
        moved[i] = fcntl(store->entries[store->count - 1 - i].fd, F_DUPFD_CLOEXEC, above);
        if (moved[i] < 0)
            return -errno;
    }
    for (uint32_t i = 0; i < store->count; i++)
        if (dup2(moved[i], 3 + (int)i) < 0) /* without CLOEXEC */
            return -errno;
    return close_range((unsigned int)above, ~0u, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int set_environment(const struct fdstore *store)
{
    char names[FDSTORE_MOST * 256] = "", number[16];
    size_t n = 0;

    if (store->count == 0) {
        (void)unsetenv("LISTEN_FDS"); /* fails for bad names only */
        (void)unsetenv("LISTEN_PID");
        (void)unsetenv("LISTEN_FDNAMES");
        return 0;
    }
    for (uint32_t i = store->count; i-- > 0;)
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ":" : "",
                              store->entries[i].name);
    (void)snprintf(number, sizeof(number), "%u", store->count);
    if (setenv("LISTEN_FDS", number, 1) < 0 || setenv("LISTEN_FDNAMES", names, 1) < 0)
        return -errno;
    (void)snprintf(number, sizeof(number), "%d", getpid());
    return setenv("LISTEN_PID", number, 1) < 0 ? -errno : 0;
}

int fdstore_pass(const struct fdstore *store)
{
    int r = place(store);

    return r < 0 ? r : set_environment(store);
}

void fdstore_done(struct fdstore *store)
{
    while (store->count)
        drop(store, store->count - 1);
}
