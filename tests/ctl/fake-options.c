// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/ctl/fake-options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/protocol.h"

int fake_take_text(sd_bus_message *message, char *buffer, size_t bytes)
{
    const char *value;
    int r = sd_bus_message_read(message, "v", "s", &value);

    if (r >= 0)
        (void)snprintf(buffer, bytes, "%s", value);
    return r;
}

int fake_take_storage(struct fake_storage *storage, sd_bus_message *message, const char *key)
{
    if (strcmp(key, OPTION_MEMORY) == 0)
        return sd_bus_message_read(message, "v", "t", &storage->memory_bytes);
    if (strcmp(key, OPTION_MAX_AGE) == 0)
        return sd_bus_message_read(message, "v", "t", &storage->max_age_usec);
    if (strcmp(key, OPTION_SEGMENT_SIZE) == 0)
        return sd_bus_message_read(message, "v", "t", &storage->segment_size_bytes);
    if (strcmp(key, OPTION_SEGMENT_TIME) == 0)
        return sd_bus_message_read(message, "v", "t", &storage->segment_time_usec);
    if (strcmp(key, OPTION_KEEP_FILES) == 0)
        return sd_bus_message_read(message, "v", "u", &storage->keep_files);
    if (strcmp(key, OPTION_KEEP_SIZE) == 0)
        return sd_bus_message_read(message, "v", "t", &storage->keep_size_bytes);
    if (strcmp(key, OPTION_ON_RESERVE) == 0)
        return fake_take_text(message, storage->on_reserve, sizeof(storage->on_reserve));
    if (strcmp(key, OPTION_PERSIST) == 0)
        return sd_bus_message_read(message, "v", "b", &storage->persist);
    return -ENOENT;
}

int fake_take_file(sd_bus_message *message, int *ret_fd)
{
    int fd, r = sd_bus_message_read(message, "v", "h", &fd);

    if (r >= 0)
        *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return r;
}

int fake_read_options(sd_bus_message *message,
                      int (*take)(void *context, sd_bus_message *message, const char *key),
                      void *context)
{
    const char *key;
    int r;

    r = sd_bus_message_enter_container(message, 'a', "{sv}");
    if (r < 0)
        return r;
    while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
        r = sd_bus_message_read(message, "s", &key);
        if (r < 0)
            return r;
        r = take(context, message, key);
        if (r < 0)
            return r;
        r = sd_bus_message_exit_container(message);
        if (r < 0)
            return r;
    }
    return r;
}
