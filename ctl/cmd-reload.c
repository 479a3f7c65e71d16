// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl reload: has xentraced read its configuration again. */

#include <string.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

static void print_change(struct json_object *change, const char *field)
{
    const char *key = doc_text(change, "key", ""), *kind = doc_text(change, "change", "");
    const char *section = doc_text(change, "section", "");

    if (*key)
        table_print_field(stdout, field, "[%s] %s=%s (%s)", section, key,
                          doc_text(change, "value", ""), doc_text(change, "origin", "-"));
    else
        table_print_field(stdout, field, "[%s] %s", section,
                          strcmp(kind, "added") == 0 ? "added" : "removed");
}

/* Those that were applied, or those that need a restart. Returns their number. */
static size_t print_changes(struct json_object *changes, bool applied)
{
    size_t count = 0;

    for (size_t i = 0; i < doc_length(changes); i++) {
        struct json_object *change = doc_at(changes, i);

        if (doc_says_no(change, "applied") == applied)
            continue;
        print_change(change, applied ? "Applied" : "Restart");
        count++;
    }
    return count;
}

static void print_reload(struct json_object *doc)
{
    struct json_object *files = doc_array(doc, "files"), *warnings = doc_array(doc, "warnings");
    struct json_object *changes = doc_array(doc, "changes");

    for (size_t i = 0; i < doc_length(files); i++)
        table_print_field(stdout, "File", "%s", json_object_get_string(doc_at(files, i)));
    for (size_t i = 0; i < doc_length(warnings); i++)
        table_print_field(stdout, "Warning", "%s", json_object_get_string(doc_at(warnings, i)));
    if (doc_length(changes) == 0)
        table_print_field(stdout, "Applied", "no changes");
    (void)print_changes(changes, true);
    if (print_changes(changes, false) > 0)
        table_print_field(stdout, "Next",
                          "systemctl restart xentraced (keeps the recorder's history)");
}

static int cmd_reload(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 0, NULL, NULL, &error);
    if (r < 0)
        return args_exit(&verb_reload, r, error);
    r = client_ask(ctl->socket, client_reload, "", &doc, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, doc);
    } else {
        doc_make_printable(doc);
        print_reload(doc);
    }
    return CTL_OK;
}

const struct verb verb_reload = {
    .name = "reload",
    .run = cmd_reload,
    .words = "",
    .summary = "reload the configuration of xentraced",
    .help = "Reloads the configuration of xentraced and lists the changes. Captures continue,\n"
            "and no record is lost. If a file has an error, nothing is changed, and the exit\n"
            "status is 1.\n",
};
