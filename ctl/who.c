// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/who.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/suggest.h"
#include "common/text.h"
#include "common/util.h"
#include "ctl/input.h"
#include "ctl/str.h"
#include "trace/sidecar.h"
#include "trace/state.h"

#define NAMES_MAX   1024u /* among which the nearest is looked for */
#define NAMES_SHOWN 8u

/* The names of the sidecar's domains, each once. */
struct names {
    const char *list[NAMES_MAX];
    size_t nr;
};

static bool has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->nr; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static void find_names(const struct input *input, struct names *names)
{
    struct sidecar_domain domain;

    for (size_t i = 0; names->nr < NAMES_MAX && sidecar_domain_at(input->sidecar, i, &domain); i++)
        if (domain.name && !has_name(names, domain.name))
            names->list[names->nr++] = domain.name;
}

static char *join_names(const struct names *names)
{
    char *text = NULL;
    size_t bytes, shown = names->nr > NAMES_SHOWN ? NAMES_SHOWN : names->nr;
    FILE *file = open_memstream(&text, &bytes);

    if (!file)
        return NULL;
    for (size_t i = 0; i < shown; i++)
        (void)fprintf(file, "%s%s",
                      i == 0                                     ? ""
                      : i + 1 == names->nr && names->nr == shown ? " and "
                                                                 : ", ",
                      names->list[i]);
    if (names->nr > shown)
        (void)fprintf(file, " and %zu more", names->nr - shown);
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

char *who_list_domains(const struct input *input)
{
    struct names names = {.nr = 0};

    find_names(input, &names);
    return names.nr > 0 ? join_names(&names) : NULL;
}

static int refuse_domain(const struct input *input, const char *text, char **ret_error)
{
    struct names names = {.nr = 0};
    _cleanup_free_ char *list = NULL;
    const char *nearest;

    find_names(input, &names);
    nearest = names.nr > 0 ? suggest_nearest(text, names.list, names.nr) : NULL;
    if (nearest)
        return str_refuse(-ENOENT, ret_error, "%s has no domain \"%s\"; did you mean \"%s\"?",
                          input_name(input), text, nearest);
    if (names.nr == 0)
        return str_refuse(
            -ENOENT, ret_error,
            "%s has no domain \"%s\": it has no sidecar with names. Write a domain ID, "
            "such as 5.",
            input_name(input), text);
    list = join_names(&names);
    return str_refuse(-ENOENT, ret_error, "%s has no domain \"%s\". Its domains are %s.",
                      input_name(input), text, list ? list : "unknown");
}

/* "5", "d5" */
static bool parse_domid(const char *text, uint32_t *ret_domid)
{
    const char *digits = text + (*text == 'd');
    unsigned long number;
    char *end;

    if (!text_is_digit(*digits))
        return false;
    number = strtoul(digits, &end, 10);
    if (*end != '\0' || number >= STATE_DOMAIN_IDLE)
        return false;
    *ret_domid = (uint32_t)number;
    return true;
}

static bool find_domain(const struct input *input, const char *text, uint32_t *ret_domid)
{
    return sidecar_find_domain(input->sidecar, text, ret_domid) || parse_domid(text, ret_domid);
}

int who_find_domain(const struct input *input, const char *text, uint32_t *ret_domid,
                    char **ret_error)
{
    return find_domain(input, text, ret_domid) ? 0 : refuse_domain(input, text, ret_error);
}

/* Cuts TEXT before its vCPU, ".1" or "v1" of "d5v1", which is returned; -1: it has none. */
static int64_t cut_vcpu(char *text)
{
    char *dot = strrchr(text, '.'), *end;
    unsigned long number;

    if (!dot && text[0] == 'd')
        dot = strchr(text, 'v');
    if (!dot || !text_is_digit(dot[1]))
        return -1;
    number = strtoul(dot + 1, &end, 10);
    if (*end != '\0' || number > UINT16_MAX)
        return -1;
    *dot = '\0';
    return (int64_t)number;
}

int who_find_vcpu(const struct input *input, const char *text, uint32_t *ret_domid,
                  int64_t *ret_vcpu, char **ret_error)
{
    _cleanup_free_ char *domain = strdup(text);
    int64_t vcpu = -1;
    int r;

    if (!domain)
        return -ENOMEM;
    if (!sidecar_find_domain(input->sidecar, text, ret_domid)) { /* names may have dots */
        vcpu = cut_vcpu(domain);
        r = who_find_domain(input, domain, ret_domid, ret_error);
        if (r < 0)
            return r;
    }
    *ret_vcpu = vcpu;
    return 0;
}
