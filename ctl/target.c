// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/target.h"

int target_open(struct target *target, const struct output_options *options, bool is_bundle,
                char **ret_error)
{
    *target = (struct target){};
    if (!options->typed)
        return 0;
    if (is_bundle)
        return bundle_open(options, &target->bundle, &target->output, ret_error);
    return output_open(options, &target->output, ret_error);
}

int target_finish(struct target *target, struct json_object *doc, char **ret_error)
{
    int r;

    if (!target->output)
        return 0;
    r = output_finish(target->output, ret_error);
    if (r < 0 || !target->bundle)
        return r;
    return bundle_pack(target->bundle, target->output, doc, ret_error);
}

/* The members first: their directory is the bundle's. */
void target_done(struct target *target)
{
    target->output = output_free(target->output);
    target->bundle = bundle_free(target->bundle);
}
