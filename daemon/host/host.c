// SPDX-License-Identifier: GPL-2.0-or-later
/* Of the processor dom0 sees the vendor and model of the real one. Source: proc(5). */

#include "daemon/host/host.h"

#include <limits.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "common/meminfo.h"
#include "common/utf8.h"
#include "common/util.h"
#include "daemon/host/memory-limit.h"

/* If LINE is "KEY : VALUE", cuts the line's end off and copies the value, once. */
static void take_value(char *line, const char *key, char *value, size_t size)
{
    char *colon = strchr(line, ':');

    if (!colon || value[0] || strncmp(line, key, strlen(key)) != 0)
        return;
    colon += 1 + strspn(colon + 1, " ");
    colon[strcspn(colon, "\n")] = '\0';
    (void)utf8_copy(value, size, colon);
}

void host_read(struct host *ret_host)
{
    _cleanup_file_ FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512], hostname[HOST_NAME_MAX + 1] = "";
    sd_id128_t boot_id;

    *ret_host = (struct host){0};
    (void)gethostname(hostname, sizeof(hostname) - 1);
    (void)utf8_copy(ret_host->hostname, sizeof(ret_host->hostname), hostname);
    if (sd_id128_get_boot(&boot_id) >= 0)
        (void)sd_id128_to_string(boot_id, ret_host->boot_id);
    while (file && fgets(line, sizeof(line), file)) {
        take_value(line, "vendor_id", ret_host->cpu_vendor, sizeof(ret_host->cpu_vendor));
        take_value(line, "model name", ret_host->cpu_model, sizeof(ret_host->cpu_model));
    }
}

uint64_t host_total_bytes(void)
{
    return min_u64(meminfo_bytes("MemTotal"), memory_limit_read("").max_bytes);
}

uint64_t host_available_bytes(void)
{
    uint64_t left_bytes = max_u64(memory_limit_read("").left_bytes, 1); /* it is known */

    return min_u64(meminfo_bytes("MemAvailable"), left_bytes);
}

bool host_can_spare(uint64_t bytes, uint32_t percent)
{
    uint64_t available_bytes = host_available_bytes();

    return available_bytes == 0 || bytes / 100 < available_bytes / 10000 * percent;
}
