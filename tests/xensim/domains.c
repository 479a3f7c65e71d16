// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * As xenstored does it: a watch fires once when it is set; @introduceDomain when a domain is there;
 * @releaseDomain when one has shut down, and again when it is gone. Nothing says which domain: who
 * watches looks at the list.
 *
 * A connection is a FIFO (fifo.h) through which whole events go, each below PIPE_BUF.
 */

#include "domains.h"
#include "fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define KIND       "store"
#define INTRODUCED "@introduceDomain"
#define RELEASED   "@releaseDomain"

#define HELD_INTRODUCED 1u
#define HELD_RELEASED   2u

void domains_init(struct sim *sim)
{
    static const struct sim_domain domains[] = {
        {.domid = 0, .vcpus = 4, .name = "Domain-0"},
        {.domid = 1, .vcpus = 2, .name = "web"},
        {.domid = 2, .vcpus = 2, .name = "db"},
    };

    memcpy(sim->shared->domains, domains, sizeof(domains));
    sim->shared->nr_domains = ARRAY_SIZE(domains);
}

uint32_t domains_list(struct sim *sim, struct sim_domain ret_domains[static SIM_MAX_DOMAINS])
{
    struct sim_shared *s = sim->shared;
    uint32_t n;

    sim_lock(&s->domains_lock);
    n = s->nr_domains;
    memcpy(ret_domains, s->domains, n * sizeof(*ret_domains));
    sim_unlock(&s->domains_lock);
    return n;
}

/* The lock is held. Where DOMID is, or where it would be. */
static uint32_t find(const struct sim_shared *s, uint32_t domid)
{
    uint32_t i = 0;

    while (i < s->nr_domains && s->domains[i].domid < domid)
        i++;
    return i;
}

static bool is_there(const struct sim_shared *s, uint32_t i, uint32_t domid)
{
    return i < s->nr_domains && s->domains[i].domid == domid;
}

/* A connection whose holder is gone, or that has no room for more, misses it. */
static void send_event(const struct sim *sim, uint32_t connection, const struct sim_watch *watch)
{
    _cleanup_fd_ int fd =
        fifo_open(sim->directory, KIND, connection, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    struct domains_event event = {0};

    if (fd < 0)
        return;
    memcpy(event.path, watch->path, sizeof(event.path));
    memcpy(event.token, watch->token, sizeof(event.token));
    (void)!write(fd, &event, sizeof(event));
}

/* The lock is held. */
static void fire_locked(struct sim *sim, const char *path)
{
    struct sim_shared *s = sim->shared;

    for (uint32_t i = 0; i < SIM_MAX_STORES; i++)
        for (uint32_t j = 0; j < s->stores[i].nr_watches; j++)
            if (strcmp(s->stores[i].watches[j].path, path) == 0)
                send_event(sim, i, &s->stores[i].watches[j]);
}

/* A watch has no memory: however often it would have fired, it does so once. */
static void fire(struct sim *sim, const char *path)
{
    struct sim_shared *s = sim->shared;

    sim_lock(&s->domains_lock);
    if (sim_has_fault(sim, SIM_FAULT_XENSTORE_HANGS))
        s->held_events |= strcmp(path, RELEASED) == 0 ? HELD_RELEASED : HELD_INTRODUCED;
    else
        fire_locked(sim, path);
    sim_unlock(&s->domains_lock);
}

void domains_fire_held(struct sim *sim)
{
    struct sim_shared *s = sim->shared;

    sim_lock(&s->domains_lock);
    if (s->held_events & HELD_INTRODUCED)
        fire_locked(sim, INTRODUCED);
    if (s->held_events & HELD_RELEASED)
        fire_locked(sim, RELEASED);
    s->held_events = 0;
    sim_unlock(&s->domains_lock);
}

static int add_locked(struct sim_shared *s, uint32_t domid, const char *name)
{
    uint32_t i = find(s, domid);

    if (is_there(s, i, domid))
        return -EEXIST;
    if (s->nr_domains == SIM_MAX_DOMAINS)
        return -ENOSPC;
    if (strlen(name) >= sizeof(s->domains[i].name))
        return -ENAMETOOLONG;
    memmove(&s->domains[i + 1], &s->domains[i], (s->nr_domains - i) * sizeof(s->domains[0]));
    s->domains[i] = (struct sim_domain){.domid = domid, .vcpus = 1};
    (void)snprintf(s->domains[i].name, sizeof(s->domains[i].name), "%s", name);
    s->nr_domains++;
    return 0;
}

int domains_add(struct sim *sim, uint32_t domid, const char *name)
{
    int r;

    sim_lock(&sim->shared->domains_lock);
    r = add_locked(sim->shared, domid, name);
    sim_unlock(&sim->shared->domains_lock);
    if (r == 0)
        fire(sim, INTRODUCED);
    return r;
}

int domains_shut_down(struct sim *sim, uint32_t domid, uint32_t reason)
{
    struct sim_shared *s = sim->shared;
    uint32_t i;
    int r = 0;

    sim_lock(&s->domains_lock);
    i = find(s, domid);
    if (!is_there(s, i, domid))
        r = -ESRCH;
    else if (s->domains[i].has_shut_down)
        r = -EALREADY;
    if (r == 0) {
        s->domains[i].has_shut_down = 1;
        s->domains[i].reason = reason;
    }
    sim_unlock(&s->domains_lock);
    if (r == 0)
        fire(sim, RELEASED);
    return r;
}

int domains_remove(struct sim *sim, uint32_t domid)
{
    struct sim_shared *s = sim->shared;
    uint32_t i;
    int r = -ESRCH;

    sim_lock(&s->domains_lock);
    i = find(s, domid);
    if (is_there(s, i, domid)) {
        s->nr_domains--;
        memmove(&s->domains[i], &s->domains[i + 1], (s->nr_domains - i) * sizeof(s->domains[0]));
        r = 0;
    }
    sim_unlock(&s->domains_lock);
    if (r == 0)
        fire(sim, RELEASED);
    return r;
}

static int connect_locked(struct sim *sim, uint32_t *ret_connection)
{
    for (uint32_t i = 0; i < SIM_MAX_STORES; i++) {
        int fd;

        if (fifo_is_held(sim->directory, KIND, i))
            continue;
        fd = fifo_open(sim->directory, KIND, i, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return fd;
        fifo_drain(fd);
        sim->shared->stores[i].nr_watches = 0;
        *ret_connection = i;
        return fd;
    }
    return -EMFILE;
}

int domains_connect(struct sim *sim, uint32_t *ret_connection)
{
    int r;

    sim_lock(&sim->shared->domains_lock);
    r = connect_locked(sim, ret_connection);
    sim_unlock(&sim->shared->domains_lock);
    return r;
}

/* The lock is held. The watch, or the place after the last. */
static uint32_t find_watch(const struct sim_store *store, const char *path, const char *token)
{
    uint32_t i = 0;

    while (i < store->nr_watches && (strcmp(store->watches[i].path, path) != 0 ||
                                     strcmp(store->watches[i].token, token) != 0))
        i++;
    return i;
}

int domains_watch(struct sim *sim, uint32_t connection, const char *path, const char *token)
{
    struct sim_store *store = &sim->shared->stores[connection];
    struct sim_watch watch = {0};
    int r = 0;

    if (strlen(path) >= sizeof(watch.path) || strlen(token) >= sizeof(watch.token))
        return -E2BIG;
    (void)snprintf(watch.path, sizeof(watch.path), "%s", path);
    (void)snprintf(watch.token, sizeof(watch.token), "%s", token);
    sim_lock(&sim->shared->domains_lock);
    if (find_watch(store, path, token) < store->nr_watches)
        r = -EEXIST;
    else if (store->nr_watches == SIM_MAX_WATCHES)
        r = -E2BIG;
    if (r == 0) {
        store->watches[store->nr_watches++] = watch;
        send_event(sim, connection, &watch);
    }
    sim_unlock(&sim->shared->domains_lock);
    return r;
}

int domains_unwatch(struct sim *sim, uint32_t connection, const char *path, const char *token)
{
    struct sim_store *store = &sim->shared->stores[connection];
    int r = -ENOENT;
    uint32_t i;

    sim_lock(&sim->shared->domains_lock);
    i = find_watch(store, path, token);
    if (i < store->nr_watches) {
        store->watches[i] = store->watches[--store->nr_watches];
        r = 0;
    }
    sim_unlock(&sim->shared->domains_lock);
    return r;
}

int domains_starve(struct sim *sim, uint32_t domid, uint32_t by, uint32_t msec)
{
    struct sim_shared *s = sim->shared;
    uint32_t i, j;
    int r = 0;

    if (domid == by)
        return -EINVAL;
    sim_lock(&s->domains_lock);
    i = find(s, domid);
    j = find(s, by);
    if (i == s->nr_domains || s->domains[i].domid != domid || j == s->nr_domains ||
        s->domains[j].domid != by)
        r = -ESRCH;
    if (r == 0)
        s->starve = (struct sim_starve){s->starve.number + 1, domid, by, msec};
    sim_unlock(&s->domains_lock);
    return r;
}
