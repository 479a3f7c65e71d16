/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl info: looks at files, needs no daemon. */

#include <errno.h>

#include "ctl/args.h"
#include "ctl/info.h"
#include "ctl/str.h"

static int show(struct ctl *ctl, const char *path, bool is_first, struct json_object *files)
{
    _cleanup_info_ struct info *info = NULL;

    if (info_new(path, &info) < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        info_add_json(files, info);
    } else if (info->summary) {
        if (!is_first)
            (void)putchar('\n');
        info_print(stdout, info);
    }
    if (!info->summary)
        ctl_error_sentence(info->error);
    return info_is_sound(info) ? CTL_OK : CTL_FAILURE;
}

int cmd_info(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    struct json_object *files;
    char *error = NULL;
    int r, code = CTL_OK;

    r = args_parse_words(ctl, argc, argv, argc, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "info needs the name of a trace file.");
    if (r < 0)
        return args_exit("info", r, error);
    doc = doc_new("xentraced-info");
    files = doc_add_array(doc, "files");
    for (int i = optind; i < argc; i++) {
        if (show(ctl, argv[i], i == optind, files) != CTL_OK)
            code = CTL_FAILURE;
    }
    if (ctl->json)
        doc_print(stdout, doc);
    return code;
}
