// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/host/xenstore.c over a libxenstore of the test's own: a store of names, and a list of
 * events that wait.
 */

#include "daemon/host/xenstore.h"

#include <errno.h>

#include <xenstore.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define EVENTS_FD 1234

static struct {
    int open_error;  /* that xs_open() fails with; 0: it works */
    int watch_error; /* that xs_watch() fails with */
    int read_error;  /* that xs_read() fails with, of domain 9 */
    int open;        /* handles */
    char watched[128];
    unsigned int events;
    int end_error; /* after the last event */
} store;

static int handle_memory;

struct xs_handle *xs_open(unsigned long flags)
{
    CHECK_UINT(flags, 0); /* the others are deprecated */
    errno = store.open_error;
    if (store.open_error)
        return NULL;
    store.open++;
    return (struct xs_handle *)&handle_memory;
}

void xs_close(struct xs_handle *xsh)
{
    CHECK(xsh);
    store.open--;
}

void *xs_read(struct xs_handle *h, xs_transaction_t t, const char *path, unsigned int *len)
{
    CHECK(h && t == XBT_NULL && !len);
    if (strcmp(path, "/local/domain/0/name") == 0)
        return strdup("Domain-0");
    if (strcmp(path, "/local/domain/7/name") == 0)
        return strdup("0123456789012345678901234567890123456789012345678901234567890123456789");
    if (strcmp(path, "/local/domain/8/name") == 0)
        return strdup("M\xfcnchen\x1b[31m\xc2\x9b");
    if (strcmp(path, "/local/domain/10/name") == 0) /* the 63rd byte is the second of three */
        return strdup("0123456789012345678901234567890123456789012345678901234567890\xe2\x82\xac"
                      "b");
    errno = strcmp(path, "/local/domain/9/name") == 0 ? store.read_error : ENOENT;
    return NULL;
}

int xs_fileno(struct xs_handle *h)
{
    CHECK(h);
    return EVENTS_FD;
}

bool xs_watch(struct xs_handle *h, const char *path, const char *token)
{
    size_t length = strlen(store.watched);

    CHECK(h && token);
    errno = store.watch_error;
    (void)snprintf(store.watched + length, sizeof(store.watched) - length, "%s ", path);
    return !store.watch_error;
}

char **xs_check_watch(struct xs_handle *h)
{
    CHECK(h);
    if (store.events > 0) {
        store.events--;
        return calloc(2, sizeof(char *));
    }
    errno = store.end_error;
    return NULL;
}

static void test_names(void)
{
    struct xen_domain domains[] = {
        {.domid = 0}, {.domid = 3, .name = "old"}, {.domid = 7}, {.domid = 8}, {.domid = 10},
    };
    struct xen_domain broken[] = {{.domid = 0}, {.domid = 9, .name = "old"}, {.domid = 7}};

    test_case("names");
    CHECK_INT(xenstore_name_domains(domains, ARRAY_SIZE(domains)), 0);
    CHECK_STR(domains[0].name, "Domain-0");
    CHECK_STR(domains[1].name, "");
    CHECK_UINT(strlen(domains[2].name), sizeof(domains[2].name) - 1);
    CHECK_INT(store.open, 0);

    test_case("a name that is not UTF-8, with control characters");
    CHECK_STR(domains[3].name, "M\xef\xbf\xbdnchen\\x1b[31m\\x9b");

    test_case("a name that is too long is cut at a character");
    CHECK_STR(domains[4].name, "012345678901234567890123456789012345678901234567890123456789…");

    test_case("the connection breaks while names are read");
    store.read_error = EPIPE;
    CHECK_INT(xenstore_name_domains(broken, ARRAY_SIZE(broken)), -EPIPE);
    CHECK_STR(broken[0].name, "Domain-0");
    CHECK_STR(broken[1].name, "");
    CHECK_STR(broken[2].name, "");
    CHECK_INT(store.open, 0);

    test_case("a name that we may not read");
    store.read_error = EACCES;
    CHECK_INT(xenstore_name_domains(broken, ARRAY_SIZE(broken)), 0);
    CHECK_STR(broken[1].name, "");
    CHECK(broken[2].name[0]);

    test_case("no xenstored");
    store.open_error = ECONNREFUSED;
    CHECK_INT(xenstore_name_domains(domains, ARRAY_SIZE(domains)), -ECONNREFUSED);
    CHECK_STR(domains[0].name, "");
    store.open_error = 0;
}

static void test_watch(void)
{
    struct xenstore_watch *watch = NULL;

    test_case("watch");
    CHECK_INT(xenstore_watch_new(&watch), 0);
    CHECK_STR(store.watched, "@releaseDomain @introduceDomain ");
    CHECK_INT(xenstore_watch_fd(watch), EVENTS_FD);
    store.events = 3;
    store.end_error = EAGAIN;
    CHECK_INT(xenstore_watch_read(watch), 3);
    CHECK_INT(xenstore_watch_read(watch), 0);

    test_case("no memory for one more");
    store.events = 1;
    store.end_error = ENOMEM;
    CHECK_INT(xenstore_watch_read(watch), 2);

    test_case("the connection is lost");
    store.end_error = EINVAL;
    CHECK_INT(xenstore_watch_read(watch), -EINVAL);
    xenstore_watch_free(watch);
    CHECK_INT(store.open, 0);

    test_case("no xenstored to watch");
    store.open_error = ENOENT;
    CHECK_INT(xenstore_watch_new(&watch), -ENOENT);
    store.open_error = 0;

    test_case("not allowed to watch");
    store.watch_error = EACCES;
    CHECK_INT(xenstore_watch_new(&watch), -EACCES);
    CHECK_INT(store.open, 0);
    CHECK(!xenstore_watch_free(NULL));
}

int main(void)
{
    test_names();
    test_watch();
    return test_end();
}
