// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The arguments of a command are written as in its help page, "[NAME] [-- COMMAND [ARGUMENT]...]".
 * A bracket at the beginning of a line is the macro .Op, one inside a line is Op ... Oc.
 */

#include "ctl/synopsis.h"

#include <string.h>

#include "ctl/args-table.h"
#include "ctl/ctl.h"

/* One word, such as "NAME", "FILE...", "--all" or "--". */
static void print_word(FILE *file, const char *word, size_t length)
{
    bool repeats = length > 3 && strncmp(word + length - 3, "...", 3) == 0;

    if (repeats)
        length -= 3;
    if (length >= 2 && strncmp(word, "--", 2) == 0)
        (void)fprintf(file, " Fl -%.*s", (int)(length - 2), word + 2);
    else if (strncmp(word, "|", length) == 0)
        (void)fputs(" |", file);
    else
        (void)fprintf(file, " Ar %.*s", (int)length, word);
    if (repeats)
        (void)fputs(" ...", file);
}

/* The words up to the end, or to the bracket that closes them; returns where it stopped. */
static const char *print_words(FILE *file, const char *text)
{
    while (*text && *text != ']') {
        size_t length = strcspn(text, " []");

        if (*text == '[') {
            (void)fputs(" Oo", file);
            text = print_words(file, text + 1);
            if (strncmp(text, "]...", 4) == 0) {
                (void)fputs(" Oc ...", file);
                text += 4;
            } else {
                (void)fputs(" Oc", file);
                text += *text == ']';
            }
            continue;
        }
        if (length)
            print_word(file, text, length);
        text += length + strspn(text + length, " ");
    }
    return text;
}

/* Each argument has a line of its own. */
static void print_arguments(FILE *file, const char *text)
{
    while (*text) {
        if (*text == '[') {
            (void)fputs(".Op", file);
            text = print_words(file, text + 1);
            text += *text == ']';
        } else {
            size_t length = strcspn(text, " ");

            (void)fputc('.', file);
            /* a macro begins the line: without the blank that print_word() writes */
            (void)fprintf(file, "Ar %.*s", (int)strcspn(text, ". "), text);
            (void)fputs(length > 3 && strncmp(text + length - 3, "...", 3) == 0 ? " ..." : "",
                        file);
            text += length;
        }
        (void)fputc('\n', file);
        text += strspn(text, " ");
    }
}

static void print_globals(FILE *file)
{
    for (size_t i = 0; i < args_count(args_global_options); i++) {
        const struct args_option *option = &args_global_options[i];

        if (option->letter)
            (void)fprintf(file, ".Op Fl %c", option->letter);
        else
            (void)fprintf(file, ".Op Fl -%s", option->name);
        if (option->argument)
            (void)fprintf(file, " Ar %s", option->argument);
        (void)fputc('\n', file);
    }
}

void synopsis_print(FILE *file)
{
    size_t count;
    const struct verb *const *verbs = verbs_all(&count);

    (void)fputs(".Nm\n", file);
    print_globals(file);
    (void)fputs(".Ar COMMAND\n.Op Ar ARGUMENT ...\n", file);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, ".Nm\n.Cm %s\n", verbs[i]->name);
        if (verbs[i]->options)
            (void)fputs(".Op Ar OPTION ...\n", file);
        print_arguments(file, verbs[i]->words);
    }
}
