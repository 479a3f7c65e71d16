// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * draw-monitor ROWS COLS KEYS STATUS [BEFORE]: prints the picture that `xentracectl monitor` shows
 * of the document in the file STATUS, 1 s after BEFORE, when KEYS were pressed: characters, of
 * which u d l r p n b e are the arrows, page up and down, Home and End, unless a backslash stands
 * before them. "-": none.
 *
 * With COLORS=1 in the environment, colors are printed, too; with ERROR, that is why there is no
 * newer document. SECOND is the file of the newest second's trace, whose document is SECOND.json;
 * SECOND_BEFORE is that of the second before; SECOND_ERROR is why there is no newer one.
 */

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "ctl/ctl.h"
#include "ctl/frame.h"
#include "ctl/monitor.h"
#include "ctl/screen.h"
#include "ctl/top.h"

#define SECOND_MAX ((size_t)64 << 20)

/* Of main.c, which is not linked. */
void ctl_error(const char *format, ...)
{
    (void)format;
}

void ctl_error_sentence(const char *sentence)
{
    (void)sentence;
}

static int key_of(char letter)
{
    static const struct {
        char letter;
        int key;
    } keys[] = {
        {'u', SCREEN_KEY_UP},    {'d', SCREEN_KEY_DOWN},    {'l', SCREEN_KEY_LEFT},
        {'r', SCREEN_KEY_RIGHT}, {'p', SCREEN_KEY_PAGE_UP}, {'n', SCREEN_KEY_PAGE_DOWN},
        {'b', SCREEN_KEY_HOME},  {'e', SCREEN_KEY_END},     {'x', SCREEN_KEY_ESCAPE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (keys[i].letter == letter)
            return keys[i].key;
    }
    return letter;
}

static int read_document(const char *path, struct json_object **ret_doc)
{
    int r = doc_read_file(path, ret_doc);

    if (r < 0)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(-r));
    else
        doc_make_printable(*ret_doc);
    return r;
}

static int draw(unsigned int rows, unsigned int cols, struct monitor_view *view,
                const struct monitor_facts *facts)
{
    const char *colors = getenv("COLORS");
    _cleanup_frame_ struct frame frame = {0};

    if (frame_init(&frame, rows, cols) < 0)
        return 1;
    monitor_draw(&frame, facts, view, palette_of(colors && *colors == '1'));
    frame_print(&frame, stdout, "\n");
    return 0;
}

static int read_second(const char *path, struct top **ret_top)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_free_ char *json = NULL;
    _cleanup_free_ char *data = malloc(SECOND_MAX);
    FILE *file = fopen(path, "re");
    size_t bytes;

    if (!file || !data || asprintf(&json, "%s.json", path) < 0)
        return -errno;
    bytes = fread(data, 1, SECOND_MAX, file);
    (void)fclose(file);
    if (read_document(json, &doc) < 0)
        return -EBADMSG;
    return top_new(data, bytes, doc, ret_top);
}

int main(int argc, char **argv)
{
    _cleanup_doc_ struct json_object *status = NULL, *before = NULL;
    _cleanup_top_ struct top *top = NULL, *top_before = NULL;
    struct monitor_view view = {0};
    struct monitor_facts facts = {
        .elapsed_usec = USEC_PER_SEC,
        .disk = {.free_bytes = UINT64_C(12) << 30, .bytes = UINT64_C(40) << 30},
        .error = getenv("ERROR"),
        .time = "12:03:04 UTC",
        .top_error = getenv("SECOND_ERROR"),
    };
    unsigned int rows, cols;

    if (argc < 5)
        return 2;
    rows = (unsigned int)atoi(argv[1]);
    cols = (unsigned int)atoi(argv[2]);
    if (strcmp(argv[4], "-") != 0 && read_document(argv[4], &status) < 0)
        return 2;
    if (argc > 5 && read_document(argv[5], &before) < 0)
        return 2;
    if (getenv("SECOND") && read_second(getenv("SECOND"), &top) < 0)
        return 2;
    if (getenv("SECOND_BEFORE") && read_second(getenv("SECOND_BEFORE"), &top_before) < 0)
        return 2;
    if (top && top_follow(top, top_before) < 0)
        return 2;
    facts.top = top;
    facts.status = status;
    facts.before = before;
    for (const char *key = argv[3]; *key && strcmp(argv[3], "-") != 0; key++) {
        _cleanup_frame_ struct frame frame = {0}; /* keys mean what the picture before shows */
        bool is_itself = *key == '\\' && key[1];

        if (frame_init(&frame, rows, cols) < 0)
            return 1;
        monitor_draw(&frame, &facts, &view, palette_of(0));
        key += is_itself;
        if (monitor_press(&view, is_itself ? *key : key_of(*key)))
            return 0;
    }
    return draw(rows, cols, &view, &facts);
}
