// SPDX-License-Identifier: GPL-2.0-or-later
/* The story of a wait is what `why` makes of it: the part that begins with the wait. */

#include "ctl/page-stories.h"

#include "common/units.h"
#include "common/util.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/story-text.h"
#include "trace/story.h"

/* So much before, runstates are followed, and the scheduler's credits. */
#define LEAD_USEC (100 * USEC_PER_MSEC)

static void story_freep(struct story **story)
{
    story_free(*story);
}

/* Of the parts of DOC, the wait that begins at TSC; NULL: there is none. Borrowed. */
static struct json_object *find_wait(struct json_object *doc, uint64_t tsc)
{
    struct json_object *parts = doc_array(doc, "parts");

    for (size_t i = 0; i < doc_length(parts); i++) {
        struct json_object *part = doc_at(parts, i);

        if (doc_number(part, "from_tsc") == tsc && doc_find(part, "wait"))
            return part;
    }
    return NULL;
}

static int add_story(struct json_object *list, struct input *input, const struct page_wait *wait,
                     uint64_t first_tsc, bool is_svm, char **ret_error)
{
    const struct story_options options = {wait->key, wait->tsc, wait->tsc + wait->cycles + 1,
                                          is_svm};
    uint64_t lead = input_ticks(input, LEAD_USEC);
    const struct merge_part part = {
        .from = max_u64(wait->tsc > lead ? wait->tsc - lead : 0, first_tsc),
        .until = wait->tsc + wait->cycles + lead,
    };
    _cleanup_(story_freep) struct story *story = NULL;
    _cleanup_doc_ struct json_object *doc = json_object_new_object();
    struct json_object *found;
    int r;

    if (part.until < wait->tsc) /* at the end of all times: it is damaged */
        return 0;
    r = input_begin(input, part, ret_error);
    if (r < 0)
        return r;
    r = story_new(&input->merge, &options, &story);
    if (r < 0)
        return r;
    story_doc_add(doc, input, story);
    found = find_wait(doc, wait->tsc);
    if (!found)
        return 0;
    doc_add_text(found, "vcpu", doc_text(doc, "vcpu", ""));
    doc_add_number(found, "at", wait->tsc - first_tsc);
    (void)json_object_array_add(list, json_object_get(found));
    return 0;
}

int page_stories_add(struct json_object *doc, struct input *input, const struct page_wait *waits,
                     size_t nr_waits, uint64_t first_tsc, bool is_svm, char **ret_error)
{
    struct json_object *list = doc_add_array(doc, "stories");
    int r = 0;

    for (size_t i = 0; i < nr_waits && r == 0; i++)
        r = add_story(list, input, &waits[i], first_tsc, is_svm, ret_error);
    return r;
}
