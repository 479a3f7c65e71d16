// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ctl/record-key.h"
#include "ctl/str.h"
#include "trace/merge.h"
#include "trace/record-text.h"

#define TERMS_MAX 16u

#define OPTION "--where"

enum operator{
    IS,
    IS_NOT,
    LESS,
    AT_MOST,
    MORE,
    AT_LEAST,
    HAS_BITS,
};

enum value_kind {
    VALUE_NUMBER,
    VALUE_NEGATIVE, /* its two's complement */
    VALUE_VCPU,
    VALUE_TEXT,
};

struct term {
    struct record_key key;
    enum operator op;
    enum value_kind kind;
    uint64_t number;
    const char *text;
};

struct condition {
    char *text; /* the words of the terms */
    struct term terms[TERMS_MAX];
    size_t nr_terms;
};

struct condition *condition_free(struct condition *condition)
{
    if (!condition)
        return NULL;
    free(condition->text);
    free(condition);
    return NULL;
}

/* --- Parsing. --- */

static const struct {
    const char *text;
    enum operator op;
} operators[] = {
    /* those of two characters first */
    {"==", IS}, {"!=", IS_NOT}, {"<=", AT_MOST}, {">=", AT_LEAST},
    {"=", IS},  {"<", LESS},    {">", MORE},     {"&", HAS_BITS},
};

static char *skip_blanks(char *p)
{
    while (isblank((unsigned char)*p))
        p++;
    return p;
}

/* Ends the word before END, and returns where it begins. */
static char *trim(char *p, char *end)
{
    p = skip_blanks(p);
    while (end > p && isblank((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return p;
}

/* "d1v2" */
static bool parse_vcpu(const char *text, uint64_t *ret_number)
{
    char *end;
    unsigned long domain, vcpu;

    if (text[0] != 'd' || !isdigit((unsigned char)text[1]))
        return false;
    domain = strtoul(text + 1, &end, 10);
    if (*end != 'v' || !isdigit((unsigned char)end[1]) || domain > 0xffff)
        return false;
    vcpu = strtoul(end + 1, &end, 10);
    if (*end || vcpu > 0xffff)
        return false;
    *ret_number = domain << 16 | vcpu;
    return true;
}

/* "-5", "0x1f", "1000" */
static bool parse_number(const char *text, struct term *term)
{
    bool is_negative = text[0] == '-';
    const char *digits = text + (is_negative ? 1 : 0);
    char *end;

    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    term->number = strtoull(digits, &end, digits[0] == '0' && digits[1] == 'x' ? 16 : 10);
    if (*end || errno)
        return false;
    if (is_negative)
        term->number = -term->number;
    term->kind = is_negative ? VALUE_NEGATIVE : VALUE_NUMBER;
    return true;
}

/* Seconds, with decimals: as nanoseconds. */
static bool parse_seconds(const char *text, struct term *term)
{
    char *end;
    double seconds;

    if (!isdigit((unsigned char)*text))
        return false;
    seconds = strtod(text, &end);
    if (*end || !(seconds < 1e9))
        return false;
    term->number = (uint64_t)(seconds * 1e9 + 0.5);
    term->kind = VALUE_NUMBER;
    return true;
}

static bool takes_text(const struct record_key *key)
{
    return key->kind == RECORD_KEY_NAME || key->kind == RECORD_KEY_EVENT ||
           record_key_has_type(key, EVENT_REASON) || record_key_has_type(key, EVENT_HYPERCALL) ||
           record_key_has_type(key, EVENT_SHUTDOWN) || record_key_has_type(key, EVENT_VCPU);
}

static int parse_value(const char *text, struct term *term, char **ret_error)
{
    term->text = text;
    term->kind = VALUE_TEXT;
    if (term->key.kind == RECORD_KEY_TIME && parse_seconds(text, term))
        return 0;
    if (term->key.kind != RECORD_KEY_NAME && parse_number(text, term))
        return 0;
    if (parse_vcpu(text, &term->number))
        term->kind = VALUE_VCPU;
    if (!takes_text(&term->key) ||
        (term->kind == VALUE_VCPU && !record_key_has_type(&term->key, EVENT_VCPU)))
        return str_refuse(-EINVAL, ret_error, OPTION ": \"%s\" is not a number, as %s is.", text,
                          term->key.label);
    if (term->op != IS && term->op != IS_NOT)
        return str_refuse(-EINVAL, ret_error,
                          OPTION ": \"%s\" is a name, which only = and != compare.", text);
    return 0;
}

static int parse_term(char *text, struct term *term, char **ret_error)
{
    char *at = text + strcspn(text, "=!<>&"), *value = NULL;
    const char *name;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(operators) && !value; i++) {
        if (strncmp(at, operators[i].text, strlen(operators[i].text)) == 0) {
            term->op = operators[i].op;
            value = at + strlen(operators[i].text);
        }
    }
    value = value ? trim(value, value + strlen(value)) : NULL;
    name = value ? trim(text, at) : NULL;
    if (!value || !*value || !*name)
        return str_refuse(-EINVAL, ret_error,
                          OPTION " needs a condition: FIELD OP VALUE, such as 'vcpu = d1v2' or "
                                 "'runtime >= 1000000 and cpu = 3'.");
    r = record_key_parse(OPTION, name, &term->key, ret_error);
    return r < 0 ? r : parse_value(value, term, ret_error);
}

/* Ends the term at TEXT, and returns the next one; NULL: it is the last. */
static char *cut_term(char *text)
{
    for (char *p = text; *p; p++) {
        if (isblank((unsigned char)p[0]) && strncasecmp(p + 1, "and", 3) == 0 &&
            isblank((unsigned char)p[4])) {
            *p = '\0';
            return p + 5;
        }
    }
    return NULL;
}

int condition_new(const char *text, struct condition **ret_condition, char **ret_error)
{
    _cleanup_condition_ struct condition *condition = calloc(1, sizeof(*condition));
    int r;

    if (!condition)
        return -ENOMEM;
    condition->text = strdup(text);
    if (!condition->text)
        return -ENOMEM;
    for (char *term = condition->text, *next; term; term = next) {
        next = cut_term(term);
        if (condition->nr_terms == TERMS_MAX)
            return str_refuse(-EINVAL, ret_error, OPTION " takes up to %u conditions.", TERMS_MAX);
        r = parse_term(term, &condition->terms[condition->nr_terms++], ret_error);
        if (r < 0)
            return r;
    }
    *ret_condition = TAKE_PTR(condition);
    return 0;
}

/* --- Matching. --- */

static bool compare_unsigned(uint64_t value, enum operator op, uint64_t with)
{
    switch (op) {
    case IS:
        return value == with;
    case IS_NOT:
        return value != with;
    case LESS:
        return value < with;
    case AT_MOST:
        return value <= with;
    case MORE:
        return value > with;
    case AT_LEAST:
        return value >= with;
    case HAS_BITS:
        return value & with;
    }
    return false;
}

static bool compare_signed(int64_t value, enum operator op, int64_t with)
{
    switch (op) {
    case LESS:
        return value < with;
    case AT_MOST:
        return value <= with;
    case MORE:
        return value > with;
    case AT_LEAST:
        return value >= with;
    case IS:
    case IS_NOT:
    case HAS_BITS:
        break;
    }
    return compare_unsigned((uint64_t)value, op, (uint64_t)with);
}

static bool matches_text(const struct term *term, const struct event_field *field, uint64_t value,
                         const struct merge_record *record, const struct record_text_style *style)
{
    char text[RECORD_VALUE_MAX];

    if (field)
        *record_value_text(text, field, value, style) = '\0';
    else
        *record_name_text(text, record, style) = '\0';
    return (strcasecmp(text, term->text) == 0) == (term->op == IS);
}

static bool term_matches(const struct term *term, const struct merge_record *record,
                         const struct record_text_style *style)
{
    const struct event_field *field = NULL;
    uint64_t value = 0;

    if (term->key.kind != RECORD_KEY_NAME &&
        !record_key_value(&term->key, record, style, &value, &field))
        return false;
    if (term->kind == VALUE_TEXT)
        return matches_text(term, field, value, record, style);
    if (term->kind == VALUE_VCPU && (!field || field->type != EVENT_VCPU))
        return false;
    if (field && field->type == EVENT_SIGNED)
        return compare_signed((int64_t)value, term->op, (int64_t)term->number);
    if (term->kind == VALUE_NEGATIVE) /* below all that are not signed */
        return term->op == IS_NOT || term->op == MORE || term->op == AT_LEAST;
    return compare_unsigned(value, term->op, term->number);
}

bool condition_matches(const struct condition *condition, const struct merge_record *record,
                       const struct record_text_style *style)
{
    for (size_t i = 0; i < condition->nr_terms; i++) {
        if (!term_matches(&condition->terms[i], record, style))
            return false;
    }
    return true;
}
