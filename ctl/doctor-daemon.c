// SPDX-License-Identifier: GPL-2.0-or-later
/* What the daemon knows, by its status document. Keys that an older daemon lacks are no finding. */

#include <inttypes.h>
#include <string.h>

#include "common/protocol.h"
#include "common/units.h"
#include "ctl/doctor-internal.h"
#include "ctl/health.h"
#include "ctl/number.h"
#include "ctl/session.h"
#include "ctl/storage.h"

void doctor_check_daemon(const struct doctor_env *env, struct doctor_finding *finding)
{
    const char *version = doc_text(env->status, "daemon.version", "");

    if (!env->status && !env->is_running) {
        doctor_say(finding, DOCTOR_FAIL, "xentraced is not running.");
        doctor_advise(finding, "systemctl start xentraced; if it fails: journalctl -u xentraced");
    } else if (!env->status) {
        doctor_say(finding, DOCTOR_FAIL, "%s",
                   env->unreachable ? env->unreachable : "xentraced cannot be reached.");
    } else if (strcmp(version, PACKAGE_VERSION) != 0) {
        doctor_say(finding, DOCTOR_WARN, "xentraced %s is running, but xentracectl is %s.",
                   *version ? version : "of an unknown version", PACKAGE_VERSION);
        doctor_advise(finding, "systemctl restart xentraced (its history is kept)");
    } else {
        doctor_say(finding, DOCTOR_PASS, "xentraced %s is running, PID %" PRIu64 ".", version,
                   doc_number(env->status, "daemon.pid"));
    }
}

void doctor_check_recorder(const struct doctor_env *env, struct doctor_finding *finding)
{
    const char *state = doc_text(env->status, "recorder.state", "");

    if (strcmp(state, "failed") == 0) {
        doctor_say(finding, DOCTOR_FAIL,
                   "The flight recorder could not be started, or has failed.");
        doctor_advise(finding, "journalctl -u xentraced; then: xentracectl start %s",
                      PROTOCOL_RECORDER);
    } else if (strcmp(state, "stopped") == 0) {
        doctor_say(finding, DOCTOR_WARN, "The flight recorder was stopped on request.");
        doctor_advise(finding, "xentracectl start %s", PROTOCOL_RECORDER);
    } else if (strcmp(state, "off") == 0) {
        doctor_say(finding, DOCTOR_PASS, "The flight recorder is off by configuration.");
    } else if (*state) {
        doctor_say(finding, DOCTOR_PASS, "The flight recorder is %s.", state);
    }
}

void doctor_check_buffers(const struct doctor_env *env, struct doctor_finding *finding)
{
    uint64_t pages = doc_number(env->status, "xen.buffer_pages");
    uint64_t wanted = doc_number(env->status, "xen.buffer_pages_wanted");
    char size[UNITS_TEXT_MAX];

    if (!doc_find(env->status, "xen.buffer_pages"))
        return;
    if (!pages) {
        doctor_say(finding, DOCTOR_PASS,
                   "Xen has no trace buffers yet; the first capture allocates them.");
        return;
    }
    if (wanted && wanted != pages) {
        doctor_say(finding, DOCTOR_WARN,
                   "Xen's buffers have %" PRIu64 " pages per CPU, but buffer-pages= is %" PRIu64
                   ".",
                   pages, wanted);
        doctor_advise(finding, "Xen sets the size once per boot: reboot the host.");
    }
    doctor_say(finding, DOCTOR_PASS, "Xen's buffers have %" PRIu64 " pages (%s) per CPU.", pages,
               size_format(size, pages * PAGE_BYTES));
}

/* Calls SAY for each session that runs; returns how many there are. */
static size_t each_running(const struct doctor_env *env, struct doctor_finding *finding,
                           void (*say)(struct json_object *session, struct doctor_finding *finding))
{
    struct json_object *sessions = doc_array(env->status, "sessions");
    size_t count = 0;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        if (doc_session_has_ended(doc_at(sessions, i)))
            continue;
        count++;
        say(doc_at(sessions, i), finding);
    }
    return count;
}

static void say_cpus(struct json_object *session, struct doctor_finding *finding)
{
    const char *set_aside = doc_text(session, "buffers.set_aside", "");
    const char *missing = doc_text(session, "buffers.missing", "");
    const char *silent = doc_text(session, "buffers.silent", "");

    if (*set_aside) {
        doctor_say(finding, DOCTOR_FAIL,
                   "The trace buffers of these CPUs are damaged and not read: %s.", set_aside);
        doctor_advise(finding, "See: xl dmesg; reboot the host to allocate new ones.");
    }
    if (*missing) {
        doctor_say(finding, DOCTOR_WARN,
                   "These CPUs have no trace buffer and are not recorded: %s.", missing);
        doctor_advise(finding, "Xen allocates the buffers once per boot, for the CPUs that are "
                               "online: reboot the host.");
    }
    if (*silent) {
        doctor_say(finding, DOCTOR_WARN, "These CPUs are in use, but Xen does not record them: %s.",
                   silent);
        doctor_advise(finding, "CPUs that have been offline are not traced: reboot the host.");
    }
}

/* Only what is recorded shows which buffers there are. */
void doctor_check_cpus(const struct doctor_env *env, struct doctor_finding *finding)
{
    if (each_running(env, finding, say_cpus) > 0)
        doctor_say(finding, DOCTOR_PASS, "All recorded CPUs have a trace buffer.");
}

static void say_losses(struct json_object *session, struct doctor_finding *finding)
{
    const char *name = doc_text(session, "name", "-");
    uint64_t lost = doc_number(session, "ledger.lost");
    uint64_t dropped = doc_number(session, "ledger.dropped");
    enum drop_cause most = DROP_SLOW_OUTPUT; /* of an older daemon, too */
    char by_xen[NUMBER_MAX], by_us[NUMBER_MAX];

    if (!lost && !dropped)
        return;
    doctor_say(finding, health_loses_now(session) ? DOCTOR_FAIL : DOCTOR_WARN,
               "%s %s records: %s by Xen, %s by xentraced.", name,
               health_loses_now(session) ? "is losing" : "has lost", number_format(by_xen, lost),
               number_format(by_us, dropped));
    for (unsigned int i = 0; i < DROP_CAUSES; i++)
        if (session_drops(session, i) > session_drops(session, most))
            most = i;
    if (dropped > lost)
        doctor_advise(finding, "Most were dropped because %s. %s", drop_causes[most].why,
                      drop_causes[most].advice);
    else
        doctor_advise(finding, "Xen's buffers are too small: record fewer events (-e), or set a "
                               "higher buffer-pages= and reboot the host.");
}

void doctor_check_losses(const struct doctor_env *env, struct doctor_finding *finding)
{
    (void)each_running(env, finding, say_losses);
    doctor_say(finding, DOCTOR_PASS, "No records were lost.");
}

static void say_locked(struct json_object *session, struct doctor_finding *finding)
{
    if (!storage_memory_bytes(session) || !doc_says_no(session, "ring.locked"))
        return;
    doctor_say(finding, DOCTOR_WARN, "The memory of %s is not locked and may be paged out.",
               doc_text(session, "name", "-"));
    doctor_advise(finding, "Set LimitMEMLOCK= of xentraced.service to pool-max= plus memory= plus "
                           "64M.");
}

void doctor_check_locked(const struct doctor_env *env, struct doctor_finding *finding)
{
    if (!doc_find(env->status, "daemon.memory_locked"))
        return;
    if (doc_says_no(env->status, "daemon.memory_locked")) {
        doctor_say(
            finding, DOCTOR_WARN,
            "Not all memory of xentraced is locked: it may be paged out, and records may be lost.");
        doctor_advise(finding, "Set LimitMEMLOCK= of xentraced.service to pool-max= plus memory= "
                               "plus 64M.");
    }
    (void)each_running(env, finding, say_locked);
    doctor_say(finding, DOCTOR_PASS, "All memory needed for recording is locked.");
}

static void say_output(struct json_object *session, struct doctor_finding *finding)
{
    const char *name = doc_text(session, "name", "-");

    if (doc_number(session, "output.waiting_since_ns")) {
        doctor_say(finding, DOCTOR_FAIL, "The disk or the reader of %s does not answer.", name);
        doctor_advise(finding, "xentracectl status %s", name);
    }
    if (doc_flag(session, "output.paused") || doc_flag(session, "segments.paused")) {
        doctor_say(finding, DOCTOR_WARN, "%s is paused: its disk has reached the reserve.", name);
        doctor_advise(finding, "Free some space on that disk.");
    }
}

void doctor_check_outputs(const struct doctor_env *env, struct doctor_finding *finding)
{
    (void)each_running(env, finding, say_output);
    doctor_say(finding, DOCTOR_PASS, "No capture is waiting for its disk.");
}

void doctor_check_triggers(const struct doctor_env *env, struct doctor_finding *finding)
{
    struct json_object *triggers = doc_array(env->status, "triggers");
    size_t count = doc_length(triggers);

    for (size_t i = 0; i < count; i++) {
        struct json_object *trigger = doc_at(triggers, i);
        const char *error = doc_text(trigger, "last_error", "");
        const char *name = doc_text(trigger, "name", "-");

        if (*error)
            doctor_say(finding, DOCTOR_WARN, "The last snapshot of the trigger %s failed: %s", name,
                       error);
        if (strcmp(doc_text(trigger, "state", ""), "off") == 0) {
            doctor_say(finding, DOCTOR_WARN, "The trigger %s has no ring to take a snapshot of.",
                       name);
            doctor_advise(finding, "xentracectl start %s", PROTOCOL_RECORDER);
        }
    }
    if (count)
        doctor_say(finding, DOCTOR_PASS, "%zu trigger%s configured.", count,
                   count == 1 ? " is" : "s are");
    else
        doctor_say(finding, DOCTOR_PASS, "No trigger is configured.");
}
