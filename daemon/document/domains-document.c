// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/document/domains-document.h"

#include <json-c/json.h>

#include "common/util.h"
#include "daemon/base/json-put.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/domains.h"

#define UUID_TEXT_MAX 37u

/* "12345678-9abc-def0-1234-56789abcdef0"; "" if it has none. Returns BUFFER. */
static const char *uuid_format(char buffer[static UUID_TEXT_MAX],
                               const uint8_t uuid[DOMAIN_UUID_BYTES])
{
    size_t length = 0;
    uint8_t any = 0;

    for (size_t i = 0; i < DOMAIN_UUID_BYTES; i++) {
        any |= uuid[i];
        length += (size_t)snprintf(buffer + length, UUID_TEXT_MAX - length, "%s%02x",
                                   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    }
    if (!any)
        buffer[0] = '\0';
    return buffer;
}

static json *describe(const struct domain_seen *seen, uint64_t until_ns)
{
    json *object = json_object_new_object();
    char uuid[UUID_TEXT_MAX];

    json_put_count(object, "domid", seen->domain.domid);
    json_put_text(object, "name", seen->domain.name);
    json_put_text(object, "uuid", uuid_format(uuid, seen->domain.uuid));
    json_put_count(object, "first_seen_ns", seen->first_seen_ns);
    json_put_count(object, "last_seen_ns",
                   seen->is_gone ? seen->last_seen_ns : max_u64(seen->last_seen_ns, until_ns));
    return object;
}

void domains_put(json *document, const struct domains *domains, const struct domain_names *names,
                 uint64_t from_ns, uint64_t until_ns)
{
    json *list = json_object_new_array();
    bool has_all = true;

    for (size_t i = 0; i < domains->count; i++) {
        const struct domain_seen *seen = &domains->seen[i];

        if (seen->is_gone && seen->last_seen_ns < from_ns)
            continue;
        has_all = has_all && seen->domain.name[0];
        (void)json_object_array_add(list, describe(seen, until_ns));
    }
    json_put(document, "domains", list);
    json_put_text(document, "domain_names",
                  has_all                             ? "complete"
                  : domain_names_are_available(names) ? "incomplete"
                                                      : "unavailable");
}
