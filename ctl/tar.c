// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block". */

#include "ctl/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "common/write-all.h"

#define COPY_BYTES     65536u
#define USTAR_NAME_MAX 100u
#define USTAR_SIZE_MAX UINT64_C(077777777777)
#define USTAR_ID_MAX   UINT32_C(07777777)
#define TYPE_FILE      '0'
#define TYPE_EXTENDED  'x'

struct header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char padding[12];
};

_Static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a file format");

/* Octal digits, as many as there is room for, and a NUL. */
static void put_number(char *field, size_t bytes, uint64_t value)
{
    field[--bytes] = '\0';
    for (; bytes > 0; value >>= 3)
        field[--bytes] = (char)('0' + (value & 7));
}

static void put_checksum(struct header *header)
{
    const uint8_t *bytes = (const uint8_t *)header;
    uint32_t sum = 0;

    memset(header->checksum, ' ', sizeof(header->checksum));
    for (size_t i = 0; i < sizeof(*header); i++)
        sum += bytes[i];
    put_number(header->checksum, sizeof(header->checksum) - 1, sum); /* the last one stays ' ' */
}

static void put_header(uint8_t *block, const struct tar_member *member, char type)
{
    struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    size_t length = strlen(member->name);

    memcpy(header.name, member->name, length < USTAR_NAME_MAX ? length : USTAR_NAME_MAX);
    put_number(header.mode, sizeof(header.mode), member->mode & 07777);
    put_number(header.uid, sizeof(header.uid), member->uid <= USTAR_ID_MAX ? member->uid : 0);
    put_number(header.gid, sizeof(header.gid), member->gid <= USTAR_ID_MAX ? member->gid : 0);
    put_number(header.size, sizeof(header.size), min_u64(member->size, USTAR_SIZE_MAX));
    put_number(header.mtime, sizeof(header.mtime), member->mtime > 0 ? (uint64_t)member->mtime : 0);
    put_number(header.major, sizeof(header.major), 0);
    put_number(header.minor, sizeof(header.minor), 0);
    put_checksum(&header);
    memcpy(block, &header, sizeof(header));
}

static bool is_plain(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++)
        if (name[i] < 0x20 || name[i] > 0x7e)
            return false;
    return length <= USTAR_NAME_MAX;
}

/* "30 path=NAME\n": the number is the length of all of it. */
static size_t put_record(char *buffer, size_t bytes, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3; /* " ", "=", "\n" */
    size_t length = rest + 1;

    while ((size_t)snprintf(NULL, 0, "%zu", length) + rest != length)
        length++;
    (void)snprintf(buffer, bytes, "%zu %s=%s\n", length, key, value);
    return length;
}

size_t tar_format_header(const struct tar_member *member, uint8_t buffer[static TAR_HEADER_MAX])
{
    struct tar_member extended = {.name = "PaxHeader", .mode = 0644, .mtime = member->mtime};
    char *records = (char *)buffer + TAR_BLOCK_BYTES, size[24];
    size_t bytes = 0, room = 2 * (size_t)TAR_BLOCK_BYTES;

    memset(buffer, 0, TAR_HEADER_MAX);
    if (!is_plain(member->name))
        bytes += put_record(records, room, "path", member->name);
    if (member->size > USTAR_SIZE_MAX) {
        (void)snprintf(size, sizeof(size), "%llu", (unsigned long long)member->size);
        bytes += put_record(records + bytes, room - bytes, "size", size);
    }
    if (bytes == 0) {
        put_header(buffer, member, TYPE_FILE);
        return TAR_BLOCK_BYTES;
    }
    extended.size = bytes;
    put_header(buffer, &extended, TYPE_EXTENDED);
    memset(records + bytes, 0, room - bytes);
    bytes = align_up(bytes, TAR_BLOCK_BYTES);
    put_header(buffer + TAR_BLOCK_BYTES + bytes, member, TYPE_FILE);
    return 2 * TAR_BLOCK_BYTES + bytes;
}

static int write_content(int archive_fd, int fd, uint64_t size)
{
    uint8_t buffer[COPY_BYTES];
    ssize_t n;
    int r;

    for (uint64_t at = 0; at < size; at += (uint64_t)n) {
        n = pread(fd, buffer, min_u64(size - at, sizeof(buffer)), (off_t)at);
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        r = write_all(archive_fd, buffer, (size_t)n);
        if (r < 0)
            return r;
    }
    memset(buffer, 0, TAR_BLOCK_BYTES);
    return write_all(archive_fd, buffer, align_up(size, TAR_BLOCK_BYTES) - size);
}

int tar_write_file(int archive_fd, const char *name, int fd)
{
    uint8_t header[TAR_HEADER_MAX];
    struct tar_member member = {.name = name};
    struct stat st;
    int r;

    if (strlen(name) > TAR_NAME_MAX)
        return -ENAMETOOLONG;
    if (fstat(fd, &st) < 0)
        return -errno;
    member.size = (uint64_t)st.st_size;
    member.mode = st.st_mode;
    member.uid = st.st_uid;
    member.gid = st.st_gid;
    member.mtime = st.st_mtim.tv_sec;
    r = write_all(archive_fd, header, tar_format_header(&member, header));
    return r < 0 ? r : write_content(archive_fd, fd, member.size);
}

int tar_write_end(int archive_fd)
{
    static const uint8_t end[2 * TAR_BLOCK_BYTES];

    return write_all(archive_fd, end, sizeof(end));
}
