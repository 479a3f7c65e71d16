/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/config.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/util.h"
#include "tests/unit/test.h"

/* A file with TEXT. */
static int write_file(const char *text)
{
    int fd = memfd_create("config", MFD_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(EXIT_FAILURE);
    return fd;
}

static int load_text(const char *text, struct config *ret_config, char **ret_error)
{
    char path[64];
    _cleanup_fd_ int fd = write_file(text);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return config_load(path, true, ret_config, ret_error);
}

struct good_case {
    const char *name;
    const char *text;
    struct config config;
};

#define DEFAULT_POOL (UINT64_C(64) << 20)

static const struct good_case good_cases[] = {
    {"empty", "", {DEFAULT_POOL, "", 32, 0}},
    {"comments", "# one\n; two\n\n[daemon]\n", {DEFAULT_POOL, "", 32, 0}},
    {"all keys",
     "[daemon]\npool = 128M\ncontrol-group = wheel\n[capture]\nbuffer-pages = 64\nreserve=1G\n",
     {UINT64_C(128) << 20, "wheel", 64, UINT64_C(1) << 30}},
    {"the smallest pool", "[daemon]\npool=1M\n", {UINT64_C(1) << 20, "", 32, 0}},
    {"the largest pool", "[daemon]\npool=64G\n", {UINT64_C(64) << 30, "", 32, 0}},
    {"the smallest buffers", "[capture]\nbuffer-pages=1\n", {DEFAULT_POOL, "", 1, 0}},
    {"the largest buffers", "[capture]\nbuffer-pages=65535\n", {DEFAULT_POOL, "", 65535, 0}},
    {"a number alone is MiB",
     "[capture]\nreserve=512\n",
     {DEFAULT_POOL, "", 32, UINT64_C(512) << 20}},
    {"no reserve", "[capture]\nreserve=0\n", {DEFAULT_POOL, "", 32, 0}},
    {"no group", "[daemon]\ncontrol-group=\n", {DEFAULT_POOL, "", 32, 0}},
    {"the last one counts", "[daemon]\npool=2M\npool=4M\n", {UINT64_C(4) << 20, "", 32, 0}},
    {"DOS line ends", "[daemon]\r\npool=2M\r\n", {UINT64_C(2) << 20, "", 32, 0}},
};

static void test_good(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(good_cases); i++) {
        const struct good_case *c = &good_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {0};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), 0);
        CHECK_STR(error, NULL);
        CHECK_UINT(config.pool_bytes, c->config.pool_bytes);
        CHECK_STR(config.control_group, c->config.control_group);
        CHECK_UINT(config.buffer_pages, c->config.buffer_pages);
        CHECK_UINT(config.reserve_bytes, c->config.reserve_bytes);
    }
}

struct bad_case {
    const char *name;
    const char *text;
    const char *line;    /* that the sentence names */
    const char *problem; /* what it says */
};

static const struct bad_case bad_cases[] = {
    {"not a size", "[daemon]\npool = much\n", "line 2", "'much' is not a size from 1M to 64G"},
    {"a pool too small", "[daemon]\npool=1048575\n", "line 2", "'1048575' is not a size"},
    {"a pool too large", "[daemon]\n\n\npool=65G\n", "line 4", "'65G' is not a size"},
    {"an empty pool", "[daemon]\npool=\n", "line 2", "'' is not a size"},
    {"no pages", "[capture]\nbuffer-pages=0\n", "line 2", "'0' is not a number of pages"},
    {"too many pages", "[capture]\nbuffer-pages=65536\n", "line 2", "from 1 to 65535"},
    {"negative pages", "[capture]\nbuffer-pages=-1\n", "line 2", "'-1' is not a number of pages"},
    {"a negative reserve", "[capture]\nreserve=-1M\n", "line 2", "'-1M' is not a size"},
    {"a group too long",
     "[daemon]\n"
     "control-group=0123456789012345678901234567890123456789012345678901234567890123\n",
     "line 2", "the group's name is too long"},
    {"an unknown key", "[daemon]\npoool=1M\n", "line 2",
     "there is no key 'poool' in [daemon]; did you mean 'pool'?"},
    {"a key unlike any", "[daemon]\ncolour=red\n", "line 2",
     "there is no key 'colour' in [daemon];"},
    {"another section's key", "[capture]\npool=2M\n", "line 2", "'pool' belongs in [daemon]"},
    {"an unknown section", "[deamon]\npool=2M\n", "line 2", "'pool' belongs in [daemon]"},
    {"no section", "pool=2M\n", "line 1", "'pool' belongs in [daemon]"},
    {"no equals sign", "[daemon]\npool 2M\n", "line 2", "this is not 'key = value'"},
    {"the first of two", "[daemon]\npool=x\nbogus=1\n", "line 2", "'x' is not a size"},
    {"no equals sign, then a bad value", "[daemon]\npool 2M\n\npool=x\n", "line 2",
     "this is not 'key = value'"},
    {"a bad value, then no equals sign", "[daemon]\npool=x\npool 2M\n", "line 2",
     "'x' is not a size"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
        const struct bad_case *c = &bad_cases[i];
        _cleanup_free_ char *error = NULL;
        struct config config = {.pool_bytes = 77};

        test_case(c->name);
        CHECK_INT(load_text(c->text, &config, &error), -EINVAL);
        CHECK_UINT(config.pool_bytes, 77); /* written on success only */
        if (!CHECK(error))
            continue;
        CHECK(strncmp(error, "/proc/self/fd/", 14) == 0);
        if (!CHECK(strstr(error, c->line)) || !CHECK(strstr(error, c->problem)))
            fprintf(stderr, "    %s\n", error);
    }
}

static void test_files(void)
{
    _cleanup_free_ char *missing = NULL, *unreadable = NULL;
    struct config config = {0};

    test_case("missing");
    CHECK_INT(config_load("/nonexistent/xentraced.conf", false, &config, &missing), 0);
    CHECK_UINT(config.buffer_pages, 32);
    CHECK_UINT(config.pool_bytes, DEFAULT_POOL);
    CHECK_STR(missing, NULL);
    CHECK_INT(config_load("/nonexistent/xentraced.conf", true, &config, &missing), -ENOENT);
    CHECK(missing && strstr(missing, "/nonexistent/xentraced.conf"));

    test_case("a directory");
    CHECK_INT(config_load("/", false, &config, &unreadable), -EIO);
    CHECK(unreadable && strstr(unreadable, "Cannot read the configuration /: "));
}

int main(void)
{
    test_good();
    test_bad();
    test_files();
    return test_end();
}
