// SPDX-License-Identifier: GPL-2.0-or-later

/* Archives, read by the system's tar(1); and headers that take too large a file for that. */

#include "ctl/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/test.h"

static char folder[] = "/tmp/test-tar-XXXXXX";

static bool shell(const char *command)
{
    return system(command) == 0;
}

/* A file with BYTES of its own. */
static int make_file(const char *path, uint64_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    for (uint64_t i = 0; i < bytes; i++)
        if (write(fd, &(uint8_t){(uint8_t)(i * 7 + bytes)}, 1) != 1)
            exit(EXIT_FAILURE);
    return fd;
}

static void check_member(const char *name, uint64_t bytes)
{
    _cleanup_fd_ int archive_fd = open("a.tar", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    _cleanup_fd_ int fd = make_file("source", bytes);
    _cleanup_fd_ int second_fd = make_file("second", 3);
    char command[1024];
    struct stat st;

    CHECK_INT(tar_write_file(archive_fd, name, fd), 0);
    CHECK_INT(tar_write_file(archive_fd, "second.json", second_fd), 0);
    CHECK_INT(tar_write_end(archive_fd), 0);
    CHECK(fstat(archive_fd, &st) == 0 && st.st_size % TAR_BLOCK_BYTES == 0);
    (void)snprintf(command, sizeof(command), "tar -xOf a.tar '%s' | cmp - source", name);
    CHECK(shell(command));
    CHECK(shell("tar -xOf a.tar second.json | cmp - second"));
    CHECK(shell("test \"$(tar -tf a.tar | wc -l)\" -eq 2"));
    (void)snprintf(
        command, sizeof(command),
        "mkdir out && tar -C out -xpf a.tar && test \"$(stat -c '%%a %%Y %%u' 'out/%s')\""
        " = \"$(stat -c '%%a %%Y %%u' source)\" && rm -r out",
        name);
    CHECK(shell(command));
}

static void test_members(void)
{
    static const uint64_t sizes[] = {0, 1, 511, 512, 513, 65536, 70000};
    char name[TAR_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        test_case("sizes");
        check_member("f.xentrace", sizes[i]);
    }
    for (size_t length = 98; length <= TAR_NAME_MAX; length += length < 102 ? 1 : 17) {
        test_case("long names");
        memset(name, 'n', length);
        name[length] = '\0';
        check_member(name, 5);
    }
    test_case("a name that is not ASCII");
    check_member("gr\xc3\xbc\xc3\x9f", 600);
}

static void test_errors(void)
{
    _cleanup_fd_ int full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    _cleanup_fd_ int fd = make_file("source", 5);
    char name[TAR_NAME_MAX + 2];

    test_case("errors");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_INT(tar_write_file(full_fd, name, fd), -ENAMETOOLONG);
    CHECK_INT(tar_write_file(full_fd, "f", fd), -ENOSPC);
    CHECK_INT(tar_write_end(full_fd), -ENOSPC);
    CHECK_INT(tar_write_file(full_fd, "f", -1), -EBADF);
}

/* From 8 GiB on: the size is in an extended header. */
static void test_large(void)
{
    struct tar_member member = {.name = "f", .size = UINT64_C(077777777777), .mode = 0640};
    uint8_t header[TAR_HEADER_MAX];

    test_case("8 GiB less a byte");
    CHECK_UINT(tar_format_header(&member, header), TAR_BLOCK_BYTES);
    CHECK_STR((const char *)header + 124, "77777777777");
    CHECK(memcmp(header + 257,
                 "ustar\0"
                 "00",
                 8) == 0);

    test_case("8 GiB");
    member.size++;
    CHECK_UINT(tar_format_header(&member, header), 3 * TAR_BLOCK_BYTES);
    CHECK_INT(header[156], 'x');
    CHECK_STR((const char *)header + TAR_BLOCK_BYTES, "19 size=8589934592\n");
    CHECK_STR((const char *)header + 124, "00000000023");
    CHECK_INT(header[2 * TAR_BLOCK_BYTES + 156], '0');

    test_case("the largest of all, with the longest name");
    member.size = UINT64_MAX;
    member.name = "0123456789012345678901234567890123456789012345678901234567890123456789"
                  "0123456789012345678901234567890123456789012345678901234567890123456789"
                  "0123456789012345678901234567890123456789012345678901234567890123456789"
                  "012345678901234567890123456789012345678901234";
    CHECK_UINT(strlen(member.name), TAR_NAME_MAX);
    CHECK_UINT(tar_format_header(&member, header), 3 * TAR_BLOCK_BYTES);
    CHECK(strstr((const char *)header + TAR_BLOCK_BYTES, "\n29 size=18446744073709551615\n"));
}

int main(void)
{
    if (!shell("tar --version >/dev/null")) {
        printf("# there is no tar\n");
        return TEST_SKIPPED;
    }
    if (!mkdtemp(folder) || chdir(folder) < 0)
        return EXIT_FAILURE;
    test_members();
    test_errors();
    test_large();
    (void)unlink("a.tar");
    (void)unlink("source");
    (void)unlink("second");
    CHECK_INT(chdir("/"), 0);
    (void)rmdir(folder);
    return test_end();
}
