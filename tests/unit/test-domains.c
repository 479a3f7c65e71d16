// SPDX-License-Identifier: GPL-2.0-or-later
/* daemon/host/domains.c: what a session remembers of the domains that it has seen. */

#include "daemon/host/domains.h"

#include "common/util.h"
#include "daemon/host/domain-names.h"
#include "tests/unit/test.h"

#define DOMAIN(id, text)                                                                           \
    {                                                                                              \
        .domid = (id), .name = text                                                                \
    }

static struct xen_domain running[8];
static unsigned int nr_running;

unsigned int domain_names_read(const struct domain_names *names,
                               const struct xen_domain **ret_domains)
{
    CHECK(!names);
    *ret_domains = running;
    return nr_running;
}

static void runs(unsigned int count, const struct xen_domain domains[])
{
    nr_running = count;
    memcpy(running, domains, count * sizeof(*domains));
}

/* "3=web@1-5! ": domain 3, first seen at 1, last at 5, gone */
static const char *seen(const struct domains *domains)
{
    static char text[256];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < domains->count; i++)
        length += (size_t)snprintf(
            text + length, sizeof(text) - length, "%u=%s@%u-%u%s ", domains->seen[i].domain.domid,
            domains->seen[i].domain.name, (unsigned int)domains->seen[i].first_seen_ns,
            (unsigned int)domains->seen[i].last_seen_ns, domains->seen[i].is_gone ? "!" : "");
    return text;
}

static void test_no_room(struct domains *domains)
{
    test_case("many come and go: the newest are known");
    for (uint32_t domid = 10; domid < 10 + 20000; domid++) {
        runs(1, (struct xen_domain[]){DOMAIN(domid, "short")});
        domains_update(domains, NULL, domid);
    }
    CHECK_UINT(domains->count, 16384);
    CHECK_UINT(domains->seen[16383].domain.domid, 10 + 20000 - 1);
    CHECK(!domains->seen[16383].is_gone);
    CHECK(domains->seen[16382].is_gone);
}

int main(void)
{
    struct domains domains = {0};

    test_case("names that are not known yet");
    runs(2, (struct xen_domain[]){DOMAIN(0, ""), DOMAIN(3, "")});
    domains_update(&domains, NULL, 1);
    domains_update(&domains, NULL, 2);
    CHECK_STR(seen(&domains), "0=@1-2 3=@1-2 ");

    test_case("a name becomes known: the entry without one is given it");
    runs(2, (struct xen_domain[]){DOMAIN(0, ""), DOMAIN(3, "web")});
    domains_update(&domains, NULL, 3);
    CHECK_STR(seen(&domains), "0=@1-3 3=web@1-3 ");

    test_case("one that has a name at once");
    runs(3, (struct xen_domain[]){DOMAIN(0, "Domain-0"), DOMAIN(3, "web"), DOMAIN(4, "db")});
    domains_update(&domains, NULL, 4);
    CHECK_STR(seen(&domains), "0=Domain-0@1-4 3=web@1-4 4=db@4-4 ");

    test_case("renamed: an entry for each name");
    runs(2, (struct xen_domain[]){DOMAIN(0, "Domain-0"), DOMAIN(3, "web-2")});
    domains_update(&domains, NULL, 5);
    CHECK_STR(seen(&domains), "0=Domain-0@1-5 3=web@1-5! 4=db@4-5! 3=web-2@5-5 ");

    test_case("an id is used again, under the same name: the UUID tells");
    runs(2, (struct xen_domain[]){DOMAIN(0, "Domain-0"), DOMAIN(3, "web-2")});
    running[1].uuid[15] = 1;
    domains_update(&domains, NULL, 7);
    CHECK_STR(seen(&domains), "0=Domain-0@1-7 3=web@1-5! 4=db@4-5! 3=web-2@5-7! 3=web-2@7-7 ");

    test_case("one that comes back is a new entry");
    runs(3, (struct xen_domain[]){DOMAIN(0, "Domain-0"), DOMAIN(3, "web-2"), DOMAIN(4, "db")});
    running[1].uuid[15] = 1;
    domains_update(&domains, NULL, 8);
    CHECK_STR(seen(&domains),
              "0=Domain-0@1-8 3=web@1-5! 4=db@4-5! 3=web-2@5-7! 3=web-2@7-8 4=db@8-8 ");

    test_case("gone");
    runs(0, running);
    domains_update(&domains, NULL, 9);
    CHECK_STR(seen(&domains),
              "0=Domain-0@1-9! 3=web@1-5! 4=db@4-5! 3=web-2@5-7! 3=web-2@7-9! 4=db@8-9! ");
    test_no_room(&domains);

    domains_done(&domains);
    CHECK_UINT(domains.count, 0);
    return test_end();
}
